import type { ComponentChildren } from 'preact'
import { duration } from '../../../base/format.ts'
import { lookup } from '../../../base/lookup.ts'
import type { TranscriptEntry } from '../data/transcript.ts'
import { Json } from '../parts/code.tsx'
import { Icon } from '../parts/controls.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { Status } from '../parts/states.tsx'
import type { ChatMessage, ChatPart } from './messages.ts'

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
  if (part.type === 'call') return <ToolCall name={part.name} input={part.input} />
  return <Json title={part.type === 'result' ? 'Result' : 'Content'} value={part.value} level="h4" />
}

interface ToolCallProps {
  readonly name: string
  readonly input?: unknown
  readonly output?: unknown
  readonly phase?: string
  readonly durationMs?: number
}

/** A call of a tool: its name, and on demand its arguments and result. */
function ToolCall({ name, input, output, phase, durationMs }: ToolCallProps) {
  return (
    <details class="tool-call">
      <summary>
        <Icon name="tool" />
        <code>{name}</code>
        {phase !== undefined && <Status name={phase} />}
        {durationMs !== undefined && <span class="hint">{duration(durationMs)}</span>}
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
      {entries.map((entry) =>
        entry.type === 'text' ? (
          <Message key={entry.key} from="assistant">
            <Markdown text={entry.text} />
          </Message>
        ) : (
          <Message key={entry.key} from="tool">
            <ToolCall
              name={entry.name}
              input={entry.input}
              output={entry.output}
              phase={entry.phase}
              durationMs={entry.duration_ms}
            />
          </Message>
        ),
      )}
    </>
  )
}
