import { useEffect, useState } from 'preact/hooks'
import { count, counted, words } from '../../../base/format.ts'
import { hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { type Api, ApiFailure, forEachAtOnce } from '../data/api.ts'
import { failureOf } from '../data/loading.ts'
import { isLive, type Run, type RunSummary, type Schemas } from '../data/records.ts'
import { Button, Dialog } from '../parts/controls.tsx'
import { TextField } from '../parts/fields.tsx'

interface CancelRunsProps {
  readonly runs: readonly RunSummary[]
  readonly close: (isStarted: boolean) => void
}

/** Asks whether to cancel these runs, cancels them, and shows the outcome of each. */
export function CancelRuns({ runs, close: end }: CancelRunsProps) {
  const { api } = useSession()
  const [closing] = useState(() => new AbortController())
  useEffect(() => () => closing.abort(), [closing])
  const [text, setText] = useState('')
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, string>>(new Map())
  const [isStarted, setStarted] = useState(false)
  const close = () => end(isStarted)
  const live = runs.filter(isLive)
  const isDone = outcomes.size === runs.length
  const start = () => {
    setStarted(true)
    const reason = text.trim()
    const tell = (runId: string, outcome: string) => setOutcomes((known) => new Map([...known, [runId, outcome]]))
    for (const { run_id, status } of runs) if (!isLive({ status })) tell(run_id, hadEnded(status))
    void cancelAll(api, { ids: live.map(({ run_id }) => run_id), reason, tell, signal: closing.signal })
  }
  return (
    <Dialog title={`Cancel ${counted(live.length, 'run')}?`} close={close}>
      {!isStarted && (
        <div class="dialog-body">
          {live.length < runs.length && (
            <p>
              {counted(runs.length - live.length, 'chosen run')} {runs.length - live.length === 1 ? 'has' : 'have'}{' '}
              ended already.
            </p>
          )}
          <TextField
            label="Reason"
            hint="Optional; it becomes the error message of each run."
            value={text}
            set={setText}
          />
          <div class="actions">
            <Button class="danger" text={`Cancel ${counted(live.length, 'run')}`} onClick={start} />
            <Button text={live.length === 1 ? 'Keep it' : 'Keep them'} onClick={close} />
          </div>
        </div>
      )}
      {isStarted && (
        <div class="dialog-body">
          <p role="status">
            {isDone ? 'Done: ' : ''}
            {count(outcomes.size)} of {counted(runs.length, 'run')}
          </p>
          <progress max={runs.length} value={outcomes.size} aria-label="Cancelled runs" />
          <ul class="outcomes">
            {runs.map(({ run_id, agent_id }) => (
              <Outcome key={run_id} runId={run_id} agentId={agent_id} outcome={outcomes.get(run_id)} />
            ))}
          </ul>
          <div class="actions">
            <Button text={isDone ? 'Close' : 'Stop'} onClick={close} />
          </div>
        </div>
      )}
    </Dialog>
  )
}

interface OutcomeProps {
  readonly runId: string
  readonly agentId: string
  readonly outcome: string | undefined
}

function Outcome({ runId, agentId, outcome = '…' }: OutcomeProps) {
  const { directory } = useSession()
  return (
    <li>
      <a href={hrefOfRun(runId)}>
        {directory.nameOf(agentId)} …{runId.slice(-8)}
      </a>
      <span>{outcome}</span>
    </li>
  )
}

function hadEnded(status: string): string {
  return `had already ended: ${words(status)}`
}

interface CancelAll {
  readonly ids: readonly string[]
  readonly reason: string
  readonly tell: (runId: string, outcome: string) => void
  /** Cancels no more runs. */
  readonly signal: AbortSignal
}

/** Cancels a few at a time. A call that a limit refuses is repeated, which is safe. */
async function cancelAll(api: Api, { ids, reason, tell, signal }: CancelAll): Promise<void> {
  await forEachAtOnce(ids, async (runId) => {
    if (signal.aborted) return
    const outcome = await cancelOne(api, runId, reason, signal).catch((error: unknown) =>
      signal.aborted ? null : failureOf(error).message,
    )
    if (outcome !== null) tell(runId, outcome)
  })
}

/** @throws ApiFailure */
async function cancelOne(api: Api, runId: string, reason: string, signal: AbortSignal): Promise<string> {
  const path = `/api/v1/runs/${runId}`
  try {
    const { already } = await api.read<Schemas['RunEnded']>(`${path}/cancel`, reason === '' ? {} : { reason }, signal)
    return already ? hadEnded('cancelled') : 'cancelled'
  } catch (error) {
    // It has ended in another way.
    if (!(error instanceof ApiFailure) || error.about.reason !== 'run_ended') throw error
    return hadEnded((await api.get<Run>(path, {}, signal)).status)
  }
}
