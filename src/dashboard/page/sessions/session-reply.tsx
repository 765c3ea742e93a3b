import { placeholdersOf } from '../../../base/placeholders.ts'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Session } from '../data/records.ts'
import { TextField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'

interface SessionReplyProps {
  readonly session: Session
  readonly onSent: () => void
}

/** Continues a session that the service itself runs: the next message begins its next run. */
export function SessionReply({ session, onSent }: SessionReplyProps) {
  const { api, directory } = useSession()
  const { session_id, agent_id, active_run_id } = session
  const form = useForm({ message: '' })
  const { message } = form.draft
  const agent = directory.find(agent_id)
  if (agent?.status !== 'active') return null
  if (placeholdersOf(agent.prompt ?? '').length > 0) {
    return (
      <p class="hint">
        The prompt of <a href={hrefOf('agents', [agent_id])}>{agent.name}</a> has placeholders: continue this session
        through the API.
      </p>
    )
  }
  const send = async () => {
    await api.post(`/api/v1/agents/${agent_id}/invoke`, { session_id, input: { message }, background: true })
    form.set({ message: '' })
    onSent()
  }
  return (
    <Form
      form={form}
      class="session-reply"
      submit={send}
      needs="admin"
      icon="play"
      action="Send"
      disabled={message.trim() === ''}
      foot={
        active_run_id !== null && (
          <span class="hint">
            It waits for <a href={hrefOfRun(active_run_id)}>the current run</a>.
          </span>
        )
      }
    >
      <TextField {...form.field('message', 'input')} label="Continue the session" rows={2} required />
    </Form>
  )
}
