import { useEffect, useState } from 'preact/hooks'
import { parseIntact } from '../../../base/intact-json.ts'
import { placeholdersOf } from '../../../base/placeholders.ts'
import { hrefOfRun } from '../context/router.ts'
import { useRefusal, useSession } from '../context/session.ts'
import { failureOf } from '../data/loading.ts'
import type { Agent } from '../data/records.ts'
import { isSaid, Transcript } from '../data/transcript.ts'
import { Json } from '../parts/code.tsx'
import { CheckField, TextField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { PromptFields } from '../parts/prompt-fields.tsx'
import { ProblemText, Status } from '../parts/states.tsx'
import { Message, TranscriptEntries } from '../run/conversation.tsx'
import { NamedPauseCard } from '../waiting/pause-card.tsx'

interface Turn {
  readonly message: string
  readonly transcript: Transcript
}

/** An agent with an input schema may need more than a message: then the text can be the whole input, as JSON. */
function inputOf({ input_schema }: Agent, text: string): object {
  if (input_schema === null || !text.trim().startsWith('{')) return { message: text }
  try {
    return parseIntact(text) as object
  } catch {
    return { message: text }
  }
}

/** Invokes a hosted agent, and shows its answer while the model writes it. With a session, it is a conversation. */
export function AgentTry({ agent }: { readonly agent: Agent }) {
  const { api, signal } = useSession()
  const [turns, setTurns] = useState<readonly Turn[]>([])
  const form = useForm({ message: '', values: {} as Readonly<Record<string, string>>, inSession: false })
  const { message, values, inSession } = form.draft
  const names = placeholdersOf(agent.prompt ?? '')
  const last = turns.at(-1)?.transcript
  const isBusy = last !== undefined && !last.isOver && last.wait.value === null
  const sessionId = turns.findLast(({ transcript }) => transcript.sessionId.value !== null)?.transcript.sessionId.value
  const missing = names.filter((name) => (values[name] ?? '') === '')
  const refusal = useRefusal('admin')
  const canSend = refusal === undefined && !isBusy && message.trim() !== '' && agent.status === 'active'
  const [closing] = useState(() => new AbortController())
  useEffect(() => () => closing.abort(), [closing])
  const send = async () => {
    const transcript = new Transcript()
    setTurns([...turns, { message, transcript }])
    form.set({ message: '' })
    void invoke(transcript, {
      input: inputOf(agent, message),
      prompt_variables: Object.fromEntries(names.map((name) => [name, values[name] ?? ''])),
      ...(inSession && (sessionId ? { session_id: sessionId } : { start_session: true })),
      // An agent with an output schema answers with an object, which cannot be streamed.
      ...(agent.output_schema === null ? { stream: true } : { background: true }),
    })
  }
  async function invoke(transcript: Transcript, body: object): Promise<void> {
    const either = AbortSignal.any([signal, closing.signal])
    try {
      const response = await api.raw(`/api/v1/agents/${agent.agent_id}/invoke`, body, either)
      if ('stream' in body) await transcript.read(response)
      else transcript.runId.value = ((await response.json()) as { data: { run_id: string } }).data.run_id
      // The stream ends at a pause; the rest comes from the stream of the run.
      const runId = transcript.runId.value
      if (runId !== null && !transcript.isOver) await transcript.follow(api, runId, either)
    } catch (error) {
      if (!either.aborted) transcript.problem.value = failureOf(error).message
    }
  }
  return (
    <div class="try">
      <ol class="conversation" aria-label="Conversation" aria-live="polite">
        {turns.map((turn, index) => (
          <TurnOutput key={index} turn={turn} />
        ))}
      </ol>
      <Form
        form={form}
        submit={send}
        needs="admin"
        icon="play"
        action={isBusy ? 'Running…' : 'Invoke'}
        disabled={!canSend}
        foot={
          <>
            <span class="hint">or Ctrl+Enter</span>
            <CheckField {...form.field('inSession')}>Remember the conversation (a session)</CheckField>
            {refusal && <span class="hint">{refusal}</span>}
            {missing.length > 0 && <span class="hint">Still to fill in: {missing.join(', ')}</span>}
            {agent.status === 'paused' && <span class="bad-text">The agent is paused.</span>}
          </>
        }
      >
        <PromptFields {...form.field('values')} names={names} refusedAt={form.refusedAt} />
        <TextField
          {...form.field('message')}
          label="Message"
          hint={agent.input_schema === null ? undefined : 'Or the whole input, as a JSON object.'}
          class="try-message"
          rows={3}
          required
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit()
          }}
        />
      </Form>
    </div>
  )
}

function TurnOutput({ turn: { message, transcript } }: { readonly turn: Turn }) {
  const { waiting } = useSession()
  const wait = transcript.wait.value
  const isDecided = (waiting.known.value.get(wait?.id ?? '')?.status ?? 'pending') !== 'pending'
  useEffect(() => {
    if (isDecided) transcript.resume()
  }, [isDecided, wait?.id])
  const output = transcript.output.value
  const problem = transcript.problem.value
  const runId = transcript.runId.value
  return (
    <>
      <Message from="user">
        <Markdown text={message} />
      </Message>
      <TranscriptEntries entries={transcript.entries.value} />
      {wait !== null && (
        <li key={wait.id} class="try-pause">
          <NamedPauseCard kind={wait.kind} id={wait.id} />
        </li>
      )}
      <li class="message-note output">
        <Status name={transcript.status.value} />
        {runId !== null && <a href={hrefOfRun(runId)}>run …{runId.slice(-8)}</a>}
        {output !== undefined && !isSaid(output) && <Json title="Output" value={output} />}
        <ProblemText text={problem ?? ''} />
      </li>
    </>
  )
}
