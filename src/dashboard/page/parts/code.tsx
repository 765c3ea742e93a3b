import { useMemo, useState } from 'preact/hooks'
import { count } from '../../../base/format.ts'
import { plain, pretty } from '../data/json.ts'
import { CopyButton } from './controls.tsx'
import { Scrollable } from './scrollable.tsx'

/** Longer texts are cut until the user asks for the whole. */
const SHOWN_LENGTH_MAX = 20_000
/** Colours of a longer text would slow the page down. */
const COLOURED_LENGTH_MAX = 100_000

interface JsonProps extends Omit<TextBlockProps, 'text' | 'isJson'> {
  readonly value: unknown
  /** Shows invisible characters as escapes, so that nothing looks like something else. */
  readonly isExact?: boolean
}

/** JSON with its digits and order as they were sent, under a title. */
export function Json({ value, isExact = false, ...block }: JsonProps) {
  const text = useMemo(() => (isExact ? plain(value) : pretty(value)), [value, isExact])
  return <TextBlock {...block} text={text} isJson />
}

interface TextBlockProps {
  readonly title: string
  readonly text: string
  readonly isJson?: boolean
  readonly level?: 'h2' | 'h3' | 'h4'
}

/** A text under a title, with a button to copy it. Text of agents is only ever a text node. */
export function TextBlock({ title, text, isJson = false, level: Heading = 'h3' }: TextBlockProps) {
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? text : text.slice(0, SHOWN_LENGTH_MAX)
  return (
    <section class="text-block">
      <div class="text-block-head">
        <Heading>{title}</Heading>
        <CopyButton text={() => text} label={`Copy ${title.toLowerCase()}`} />
      </div>
      <Scrollable as="pre" label={title}>
        {isJson && shown.length <= COLOURED_LENGTH_MAX ? <Coloured json={shown} /> : shown}
      </Scrollable>
      {shown.length < text.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </section>
  )
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|-?\d[\d.eE+-]*/g

/** JSON with coloured keys and values. */
function Coloured({ json }: { readonly json: string }) {
  const parts = useMemo(() => {
    const found = []
    let end = 0
    for (const match of json.matchAll(TOKEN)) {
      const [text, string, colon, word] = match
      if (match.index > end) found.push(json.slice(end, match.index))
      const kind = string === undefined ? (word === undefined ? 'json-number' : 'json-word') : 'json-string'
      const own = colon === undefined ? text : (string as string)
      found.push(
        <span key={match.index} class={colon === undefined ? kind : 'json-key'}>
          {own}
        </span>,
      )
      if (colon !== undefined) found.push(colon)
      end = match.index + text.length
    }
    found.push(json.slice(end))
    return found
  }, [json])
  return <>{parts}</>
}
