import { useMemo, useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import { isLive, type Run } from '../data/records.ts'
import { Transcript } from '../data/transcript.ts'
import { Json } from '../parts/code.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { Empty, Problem } from '../parts/states.tsx'
import { Conversation, Message, TranscriptEntries } from './conversation.tsx'
import { messagesOf } from './messages.ts'
import { fieldOf } from './payload.ts'
import type { RunModel } from './run-model.ts'

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
      <Message from="user">
        <Content value={run.input} member="message" title="Input" />
      </Message>
      <TranscriptEntries entries={entries} />
      {entries.length === 0 && run.output !== null && (
        <Message from="assistant">
          <Content value={run.output} member="text" title="Output" />
        </Message>
      )}
    </ol>
  )
}

function InputAndOutput({ run }: { readonly run: Run }) {
  if (JSON.stringify(run.input) === '{}' && run.output === null)
    return <Empty title="This run has reported no conversation, input or output." icon="sessions" />
  return (
    <ol class="conversation" aria-label="Conversation">
      <Message from="input">
        <Content value={run.input} member="message" title="Input" />
      </Message>
      {run.output !== null && (
        <Message from="output">
          <Content value={run.output} member="text" title="Output" />
        </Message>
      )}
    </ol>
  )
}

/** An object with nothing but a text is shown as that text. */
function Content({
  value,
  member,
  title,
}: {
  readonly value: unknown
  readonly member: string
  readonly title: string
}) {
  const text = fieldOf(value, member)
  const isAlone = typeof value === 'object' && value !== null && Object.keys(value).length === 1
  return typeof text === 'string' && isAlone ? <Markdown text={text} /> : <Json title={title} value={value} />
}
