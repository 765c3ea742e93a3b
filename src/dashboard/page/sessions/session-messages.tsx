import { hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { listAll } from '../data/api.ts'
import type { Schemas } from '../data/records.ts'
import { useLoad } from '../data/use-load.ts'
import { Markdown } from '../parts/markdown.tsx'
import { Empty, Problem, Skeleton } from '../parts/states.tsx'
import { ClockTime } from '../parts/time.tsx'
import { Message } from '../run/conversation.tsx'

/** A longer conversation is shown in part. */
const MESSAGES_MAX = 2_000

interface SessionMessagesProps {
  readonly sessionId: string
  /** Read again when it changes. */
  readonly version: number
}

/** The messages of a session, oldest first, each with its run. */
export function SessionMessages({ sessionId, version }: SessionMessagesProps) {
  const { api } = useSession()
  const { data, problem } = useLoad(
    (signal) => listAll<Schemas['Message']>(api, `/api/v1/sessions/${sessionId}/messages`, MESSAGES_MAX, signal),
    [sessionId, version],
  )
  if (problem !== undefined) return <Problem problem={problem} />
  if (data === undefined) return <Skeleton lines={5} />
  if (data.items.length === 0) return <Empty title="No messages yet." />
  return (
    <ol class="conversation" aria-label="Messages">
      {data.items.map(({ position, role, content, run_id, created_at }) => (
        <Message key={position} from={role}>
          <Markdown text={content} />
          <p class="hint message-foot">
            <ClockTime at={created_at} /> · <a href={hrefOfRun(run_id)}>run …{run_id.slice(-8)}</a>
          </p>
        </Message>
      ))}
    </ol>
  )
}
