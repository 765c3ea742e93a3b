import { useState } from 'preact/hooks'
import { placeholdersOf } from '../../../base/placeholders.ts'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useAttempt } from '../data/loading.ts'
import type { Session } from '../data/records.ts'
import { Button } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'

interface SessionReplyProps {
  readonly session: Session
  readonly onSent: () => void
}

/** Continues a session that the service itself runs: the next message begins its next run. */
export function SessionReply({ session, onSent }: SessionReplyProps) {
  const { api, directory } = useSession()
  const { session_id, agent_id, active_run_id } = session
  const [message, setMessage] = useState('')
  const [isSending, setSending] = useState(false)
  const { problem, submit } = useAttempt()
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
  const send = submit(async () => {
    setSending(true)
    try {
      const body = { session_id, input: { message }, background: true }
      await api.post(`/api/v1/agents/${agent_id}/invoke`, body)
      setMessage('')
      onSent()
    } finally {
      setSending(false)
    }
  })
  return (
    <form class="session-reply" onSubmit={send}>
      <Field label="Continue the session" problem={problem}>
        <textarea rows={2} required value={message} onInput={({ currentTarget }) => setMessage(currentTarget.value)} />
      </Field>
      <div class="actions">
        <Button
          needs="admin"
          type="submit"
          class="primary"
          icon="play"
          text="Send"
          disabled={isSending || message.trim() === ''}
        />
        {active_run_id !== null && (
          <span class="hint">
            It waits for <a href={hrefOfRun(active_run_id)}>the current run</a>.
          </span>
        )}
      </div>
    </form>
  )
}
