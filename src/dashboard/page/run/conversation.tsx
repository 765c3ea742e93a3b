import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { mediaText, withoutBlobs } from '../../../base/conventions/messages/blobs.ts'
import type { ChatPart } from '../../../base/conventions/messages/message-parts.ts'
import { answered, messagesIn } from '../../../base/conventions/messages/messages.ts'
import { counted, dollars, duration } from '../../../base/format.ts'
import { lookup } from '../../../base/lookup.ts'
import type { TranscriptEntry } from '../data/transcript.ts'
import { Json } from '../parts/code.tsx'
import { Icon } from '../parts/controls.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { Status } from '../parts/states.tsx'
import { Thumbs } from '../scores/thumbs.tsx'
import { LongText, Value } from './long-text.tsx'
import { stepHref } from './step-address.ts'
import { tokensText } from './summary.ts'
import type { Answer, Turn } from './threads.ts'

/** Of a longer conversation, the beginning and the end are shown until the user asks for the rest. */
const FIRST_SHOWN = 3
const LAST_SHOWN = 9
const SYSTEM_LENGTH_MAX = 220

interface ConversationProps {
  readonly messages: readonly Turn[]
  /** The headings before the turns at which another conversation begins. */
  readonly titles?: ReadonlyMap<Turn, string>
}

/** Messages with their roles, Markdown, tool calls with their results, and what each answer cost. */
export function Conversation({ messages: turns, titles }: ConversationProps) {
  const [isWhole, setWhole] = useState(false)
  const left = isWhole ? 0 : turns.length - FIRST_SHOWN - LAST_SHOWN
  const isFolded = left > 2
  const first = isFolded ? turns.slice(0, FIRST_SHOWN) : turns
  const last = isFolded ? turns.slice(-LAST_SHOWN) : []
  const turn = (each: Turn, index: number) => <TurnItem key={index} turn={each} title={titles?.get(each)} />
  return (
    <ol class="conversation" aria-label="Conversation">
      {first.map(turn)}
      {isFolded && (
        <li key="left" class="message-note left-out">
          <button type="button" class="small" onClick={() => setWhole(true)}>
            Show {counted(left, 'message')} between
          </button>
        </li>
      )}
      {last.map((each, index) => turn(each, turns.length - last.length + index))}
    </ol>
  )
}

interface ReportedProps {
  readonly title: string
  readonly value: unknown
  /** The role of parts that stand outside of a message. */
  readonly from: 'user' | 'assistant'
  readonly level?: 'h2' | 'h3'
}

/** An input or an output: messages as a conversation, a text as a text, anything else as JSON. */
export function Reported({ title, value, from, level: Heading = 'h3' }: ReportedProps) {
  const turns = useMemo(() => answered(messagesIn(value, from) ?? []), [value, from])
  if (turns.length === 0) return <Value title={title} value={value} level={Heading} />
  return (
    <section class="text-block">
      <Heading>{title}</Heading>
      <Conversation messages={turns} />
    </section>
  )
}

function TurnItem({
  turn: { role, parts, answer },
  title,
}: {
  readonly turn: Turn
  readonly title?: string | undefined
}) {
  const isInstruction = SIDES.get(role) === 'system'
  return (
    <>
      {title !== undefined && <li class="message-title">{title}</li>}
      <Message from={role}>
        {parts.map((part, at) => (
          <Part key={at} part={part} isInstruction={isInstruction} />
        ))}
        {answer !== undefined && <AnswerFoot answer={answer} />}
      </Message>
    </>
  )
}

/** The model, tokens, cost and time of an answer, as a link to the call. */
function AnswerFoot({ answer: { stepId, usage, durationMs } }: { readonly answer: Answer }) {
  const { model, costUsd } = usage
  const figures = [tokensText(usage), costUsd > 0 && dollars(costUsd), durationMs > 0 && duration(durationMs)]
  const shown = figures.filter((each) => each !== '' && each !== false)
  return (
    <div class="hint message-foot">
      <a href={stepHref(stepId)}>{model ?? 'model call'}</a>
      {shown.map((each) => ` · ${each}`)}
      <Thumbs of={{ event: stepId }} noun="answer" />
    </div>
  )
}

const SIDES = lookup<string>({
  user: 'user',
  human: 'user',
  system: 'system',
  developer: 'system',
  tool: 'tool',
})

export function Message({ from: role, children }: { readonly from: string; readonly children: ComponentChildren }) {
  return (
    <li class={`message ${SIDES.get(role) ?? 'assistant'}`}>
      <span class="role">{role}</span>
      <div class="message-body">{children}</div>
    </li>
  )
}

function Part({ part, isInstruction }: { readonly part: ChatPart; readonly isInstruction: boolean }) {
  switch (part.type) {
    case 'text':
      return isInstruction ? (
        <LongText text={part.text} lengthMax={SYSTEM_LENGTH_MAX} linesMax={4} />
      ) : (
        <LongText text={part.text} />
      )
    case 'reasoning':
      return (
        <details class="reasoning">
          <summary>Thinking</summary>
          <LongText text={part.text} />
        </details>
      )
    case 'call':
      return <ToolCall {...part} phase={part.isRejected ? 'rejected' : part.isFailed ? 'failed' : undefined} />
    case 'media':
      return (
        <p class="media">
          <Icon name="file" />
          {part.media.href === null ? (
            mediaText(part.media)
          ) : (
            <a href={part.media.href} target="_blank" rel="noopener noreferrer">
              {mediaText(part.media)}
            </a>
          )}
        </p>
      )
    case 'result':
      return <Value title={part.isFailed ? 'Error' : 'Result'} value={part.value} level="h4" />
    case 'other':
      return <Value title="Content" value={part.value} level="h4" />
  }
}

interface ToolCallProps {
  readonly name: string
  readonly input?: unknown
  readonly output?: unknown
  readonly phase?: string | undefined
  readonly duration_ms?: number
}

/** A tool call: name and arguments on one line; it opens to show arguments and result in full. */
function ToolCall({ name, input, output, phase, duration_ms }: ToolCallProps) {
  const [isOpen, setOpen] = useState(false)
  const preview = useMemo(() => previewOf(input), [input])
  return (
    <details class="tool-call" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <Icon name="tool" />
        <code>{name}</code>
        {phase !== undefined && <Status name={phase} />}
        {duration_ms !== undefined && <span class="hint">{duration(duration_ms)}</span>}
        <span class="preview">{preview}</span>
      </summary>
      {isOpen && input !== undefined && <Json title="Arguments" value={withoutBlobs(input)} isExact level="h4" />}
      {isOpen && output !== undefined && <Value title="Result" value={output} level="h4" />}
    </details>
  )
}

const PREVIEW_LENGTH_MAX = 120

/** `city: Rome, days: 3`. */
function previewOf(input: unknown): string {
  if (typeof input !== 'object' || input === null)
    return typeof input === 'string' ? input.slice(0, PREVIEW_LENGTH_MAX) : ''
  const text = Object.entries(input).slice(0, 8)
  return text
    .map(
      ([name, value]) =>
        `${name}: ${typeof value === 'string' ? value.slice(0, 60) : typeof value === 'object' && value !== null ? '…' : String(value)}`,
    )
    .join(', ')
    .slice(0, PREVIEW_LENGTH_MAX)
}

interface TranscriptEntriesProps {
  readonly entries: readonly TranscriptEntry[]
  /** The calls of the model, by the step that they made. */
  readonly answers?: ReadonlyMap<string, Answer>
}

/** What a hosted run says and does, as it happens. */
export function TranscriptEntries({ entries, answers }: TranscriptEntriesProps) {
  return (
    <>
      {entries.map(({ key, ...entry }) => {
        const answer = answers?.get(key)
        return (
          <Message key={key} from={entry.type === 'text' ? 'assistant' : 'tool'}>
            {entry.type === 'text' ? <Markdown text={entry.text} /> : <ToolCall {...entry} />}
            {answer !== undefined && <AnswerFoot answer={answer} />}
          </Message>
        )
      })}
    </>
  )
}
