import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { duration } from '../../../base/format.ts'
import { lookup } from '../../../base/lookup.ts'
import { useSession } from '../context/session.ts'
import { isLive, type Run } from '../data/records.ts'
import { Transcript, type TranscriptEntry } from '../data/transcript.ts'
import { useLoad } from '../data/use-load.ts'
import { Json } from '../parts/code.tsx'
import { Icon } from '../parts/icons.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { Empty, Problem } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { type ChatMessage, type ChatPart, messagesOf } from './messages.ts'
import { fieldOf } from './payload.ts'
import type { RunModel } from './run-model.ts'

/** Messages with their roles, markdown, tool calls and results. */
export function Conversation({ messages }: { readonly messages: readonly ChatMessage[] }) {
  return (
    <ol class="conversation" aria-label="Conversation">
      {messages.map(({ role, parts }, index) => (
        <Message key={index} from={role}>
          {parts.map((part, at) => (
            <Part key={at} part={part} />
          ))}
        </Message>
      ))}
    </ol>
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

function Part({ part }: { readonly part: ChatPart }) {
  if (part.type === 'text') return <Markdown text={part.text} />
  if (part.type === 'call') return <ToolCall {...part} />
  return <Json title={part.type === 'result' ? 'Result' : 'Content'} value={part.value} level="h4" />
}

interface ToolCallProps {
  readonly name: string
  readonly input?: unknown
  readonly output?: unknown
  readonly phase?: string
  readonly duration_ms?: number
}

/** A call of a tool: its name, and on demand its arguments and result. */
function ToolCall({ name, input, output, phase, duration_ms }: ToolCallProps) {
  return (
    <details class="tool-call">
      <summary>
        <Icon name="tool" />
        <code>{name}</code>
        {phase !== undefined && <Status name={phase} />}
        {duration_ms !== undefined && <span class="hint">{duration(duration_ms)}</span>}
      </summary>
      {input !== undefined && <Json title="Arguments" value={input} isExact level="h4" />}
      {output !== undefined && <Json title="Result" value={output} level="h4" />}
    </details>
  )
}

/** What a hosted run says and does, as it happens. */
export function TranscriptEntries({ entries }: { readonly entries: readonly TranscriptEntry[] }) {
  return (
    <>
      {entries.map(({ key, ...entry }) => (
        <Message key={key} from={entry.type === 'text' ? 'assistant' : 'tool'}>
          {entry.type === 'text' ? <Markdown text={entry.text} /> : <ToolCall {...entry} />}
        </Message>
      ))}
    </>
  )
}

/**
 * A run as a conversation: the messages of its last model call if those were reported, else what a hosted run said, else its
 * input and output.
 */
export function RunConversation({ model, run }: { readonly model: RunModel; readonly run: Run }) {
  const { directory } = useSession()
  const events = model.barEvents.value
  const messages = useMemo(() => {
    const call = events.findLast((event) => event.type === 'llm.call' && messagesOf(event.payload).length > 1)
    return call === undefined ? [] : messagesOf(call.payload)
  }, [events])
  if (messages.length > 0) return <Conversation messages={messages} />
  if (directory.find(run.agent_id)?.runtime_type === 'hosted') return <HostedConversation run={run} />
  return <InputAndOutput run={run} />
}

function HostedConversation({ run }: { readonly run: Run }) {
  const { api } = useSession()
  const [transcript, setTranscript] = useState<Transcript | null>(null)
  const { run_id: runId } = run
  // A run that has ended while it was shown has said everything already.
  const { problem } = useLoad(
    (signal) => {
      const next = new Transcript()
      setTranscript(next)
      return next.follow(api, runId, signal)
    },
    [runId],
  )
  const entries = transcript?.entries.value ?? []
  if (problem !== undefined) return <Problem problem={problem} />
  return (
    <ol class="conversation" aria-label="Conversation" aria-live={isLive(run) ? 'polite' : undefined}>
      <Content from="user" value={run.input} member="message" title="Input" />
      <TranscriptEntries entries={entries} />
      {entries.length === 0 && <Content from="assistant" value={run.output} member="text" title="Output" />}
    </ol>
  )
}

function InputAndOutput({ run }: { readonly run: Run }) {
  if (JSON.stringify(run.input) === '{}' && run.output === null)
    return <Empty title="This run has reported no conversation, input or output." icon="sessions" />
  return (
    <ol class="conversation" aria-label="Conversation">
      <Content from="input" value={run.input} member="message" title="Input" />
      <Content from="output" value={run.output} member="text" title="Output" />
    </ol>
  )
}

interface ContentProps {
  readonly from: string
  readonly value: unknown
  readonly member: string
  readonly title: string
}

/** A message, unless it is null. An object with nothing but a text is shown as that text. */
function Content({ from, value, member, title }: ContentProps) {
  if (value === null) return null
  const text = fieldOf(value, member)
  const isAlone = typeof value === 'object' && Object.keys(value as object).length === 1
  return (
    <Message from={from}>
      {typeof text === 'string' && isAlone ? <Markdown text={text} /> : <Json title={title} value={value} />}
    </Message>
  )
}
