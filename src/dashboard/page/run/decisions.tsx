import { useState } from 'preact/hooks'
import { fieldOf } from '../../../base/conventions/payload.ts'
import { duration } from '../../../base/format.ts'
import { useKeyNames } from '../context/key-names.ts'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { useLoad } from '../data/loading.ts'
import type { Run, Schemas } from '../data/records.ts'
import type { NamedPause } from '../data/waiting.ts'
import { Icon } from '../parts/controls.tsx'
import { Status } from '../parts/states.tsx'
import { Ago } from '../parts/time.tsx'
import { NamedPauseCard } from '../waiting/pause-card.tsx'
import type { Bar } from './bars.ts'

type Decided = Schemas['Approval'] | Schemas['InputRequest']

const DECISIONS_MAX = 200

/** What people have decided for the run: one line each, which opens. */
export function Decisions({ run, bars }: { readonly run: Run; readonly bars: readonly Bar[] }) {
  const waits = bars.filter(({ kind, status }) => kind === 'wait' && status !== 'awaiting_input')
  if (waits.length === 0) return null
  return <DecisionList run={run} waits={waits} />
}

function DecisionList({ run: { run_id }, waits }: { readonly run: Run; readonly waits: readonly Bar[] }) {
  const { api } = useSession()
  const { data } = useLoad(
    async (signal) => {
      const query = { run_id, limit: DECISIONS_MAX }
      const list = (kind: string) => api.get<Listed<Decided>>(`/api/v1/${kind}`, query, signal)
      const [approvals, requests] = await Promise.all([list('approvals'), list('input-requests')])
      return new Map([...approvals.items, ...requests.items].map((each) => [idOf(each), each]))
    },
    [run_id, waits.length],
    { subject: run_id },
  )
  return (
    <ul class="decisions" aria-label="Decisions">
      {waits.slice(-DECISIONS_MAX).map((bar) => {
        const pause = pauseOf(bar)
        const decided = data?.get(pause?.id ?? '')
        return (
          <li key={bar.id}>
            <DecisionLine
              name={bar.name.replace(/^approval: /, '')}
              pause={pause}
              status={decided?.status ?? bar.status}
              waitedMs={bar.endMs === null ? null : bar.endMs - bar.startMs}
              decided={decided}
            />
          </li>
        )
      })}
    </ul>
  )
}

function idOf(decided: Decided): string {
  return 'approval_id' in decided ? decided.approval_id : decided.request_id
}

/** The approval or the question that a wait was for. */
export function pauseOf({ events }: Pick<Bar, 'events'>): NamedPause | null {
  const payload = events[0]?.payload
  const [approval, request] = [fieldOf(payload, 'approval_id'), fieldOf(payload, 'request_id')]
  if (typeof approval === 'string') return { kind: 'approvals', id: approval }
  return typeof request === 'string' ? { kind: 'input-requests', id: request } : null
}

/** What a descendant run waited for, once it is decided. */
export function DecidedBelow({ kind, id, stamp }: NamedPause & { readonly stamp: string }) {
  const { waiting } = useSession()
  const { data } = useLoad(() => waiting.read(kind, id), [kind, id, stamp])
  if (!data || data.status === 'pending') return null
  const waitedMs = data.decided_at === null ? null : Date.parse(data.decided_at) - Date.parse(data.created_at)
  const name = data.kind === 'approvals' ? data.tool : 'question'
  return (
    <div class="decisions">
      <DecisionLine name={name} pause={{ kind, id }} status={data.status} waitedMs={waitedMs} decided={data} />
    </div>
  )
}

interface DecisionLineProps {
  readonly name: string
  /** Null if the event names neither an approval nor a question. */
  readonly pause: NamedPause | null
  readonly status: string
  readonly waitedMs: number | null
  /** Undefined until it is read, or if the service has no record of it. */
  readonly decided: Decided | undefined
}

/** `pay · approved · by Ada · edited · 3 min ago · waited 2 min`. */
function DecisionLine({ name, pause, status, waitedMs, decided }: DecisionLineProps) {
  const [isOpen, setOpen] = useState(false)
  const keyName = useKeyNames()
  const who = decided?.decided_by == null ? null : (decided.decided_by_person ?? keyName(decided.decided_by))
  const isEdited = decided !== undefined && 'edited_input' in decided && decided.edited_input !== null
  const said = decided === undefined ? null : 'comment' in decided ? decided.comment : decided.answer
  return (
    <details class="decision-line" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <Icon name="person" />
        <code>{name}</code>
        <Status name={status} />
        {who !== null && <span>by {who}</span>}
        {isEdited && <span class="tag">edited</span>}
        {decided?.decided_at && <Ago at={decided.decided_at} />}
        {waitedMs !== null && <span class="hint">waited {duration(waitedMs)}</span>}
        {said && <span class="preview">{said}</span>}
      </summary>
      {isOpen && pause !== null && <NamedPauseCard {...pause} />}
    </details>
  )
}
