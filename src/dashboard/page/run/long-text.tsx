import { useMemo, useState } from 'preact/hooks'
import { withoutBlobs } from '../../../base/conventions/messages/blobs.ts'
import { plainParts } from '../../../base/conventions/messages/messages.ts'
import { count } from '../../../base/format.ts'
import { textOf } from '../data/json.ts'
import { Json } from '../parts/code.tsx'
import { CopyButton } from '../parts/controls.tsx'
import { Markdown } from '../parts/markdown.tsx'

/** Of a longer text, the start is shown until the user asks for the rest. */
const LENGTH_MAX = 1_600
const LINES_MAX = 26

interface LongTextProps {
  readonly text: string
  readonly lengthMax?: number
  readonly linesMax?: number
  /** Shows the text as it was written; by default it is read as Markdown. */
  readonly isPlain?: boolean
}

/** A text that folds if it is long. */
export function LongText({ text, lengthMax = LENGTH_MAX, linesMax = LINES_MAX, isPlain = false }: LongTextProps) {
  const [isWhole, setWhole] = useState(false)
  const start = useMemo(() => startOf(text, lengthMax, linesMax), [text, lengthMax, linesMax])
  const shown = isWhole ? text : start
  return (
    <>
      {isPlain ? <div class="plain-text">{shown}</div> : <Markdown text={shown} />}
      {start.length < text.length && (
        <button type="button" class="quiet small show-all" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show less' : `Show all ${count(text.length)} characters`}
        </button>
      )}
    </>
  )
}

/** The start of a text that is longer than that. A text that is only a little longer stays whole: it is not worth a click. */
export function startOf(text: string, lengthMax: number, linesMax: number): string {
  let end = text.length > lengthMax * 1.2 ? lengthMax : text.length
  let lines = 0
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1)) {
    if (++lines === linesMax) end = at
  }
  if (end >= text.length) return text
  const space = lines === linesMax ? end : text.lastIndexOf(' ', end)
  return `${text
    .slice(0, space > end * 0.8 ? space : end)
    .trimEnd()
    .toWellFormed()} …`
}

interface ValueProps {
  readonly title: string
  readonly value: unknown
  readonly level?: 'h2' | 'h3' | 'h4'
  /** Shows a text as JSON, too. */
  readonly isJson?: boolean
}

/** What was reported as an input or an output: a text as a text, anything else as JSON, without encoded bytes. */
export function Value({ title, value, level: Heading = 'h3', isJson = false }: ValueProps) {
  const shown = useMemo(() => withoutBlobs(value), [value])
  const [part] = useMemo(() => plainParts(shown), [shown])
  if (isJson || part?.type !== 'text') return <Json title={title} value={shown} level={Heading} />
  return (
    <section class="text-block">
      <div class="text-block-head">
        <Heading>{title}</Heading>
        <CopyButton text={() => textOf(value)} label={`Copy ${title.toLowerCase()}`} />
      </div>
      <div class="value-text">
        <LongText text={part.text} />
      </div>
    </section>
  )
}

/** What went wrong; a long message folds. */
export function ErrorText({ text }: { readonly text: string }) {
  return (
    <div class="problem run-error" role="alert">
      <LongText text={text} lengthMax={320} linesMax={4} isPlain />
    </div>
  )
}

/** JSON on demand. */
export function Raw({ title, value }: { readonly title: string; readonly value: unknown }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="raw" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && <Value title="JSON" value={value} isJson />}
    </details>
  )
}
