import { useEffect } from 'preact/hooks'
import { address } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { isUuid } from '../data/records.ts'
import { isPauseKind, type Pause } from '../data/waiting.ts'
import { Empty, Skeleton } from '../parts/states.tsx'
import { PauseCard } from './pause-card.tsx'

/** Pending approvals and questions of hosted runs: the one that a link names, then the newest, each with a form to decide it. */
export function WaitingView() {
  const { waiting } = useSession()
  const [kind, givenId = ''] = address.value.path
  const id = givenId.toLowerCase()
  useEffect(() => {
    waiting.openView(isPauseKind(kind) && isUuid(id) ? { kind, id } : null)
  }, [waiting, kind, id])
  const isNamed = (pause: Pause) => pause.id === id
  // First, so that another one is not decided by mistake.
  const shown = waiting.shown.value.toSorted((a, b) => Number(isNamed(b)) - Number(isNamed(a)))
  const note = waiting.isMissing.value
    ? 'This link refers to something that is not in this workspace.'
    : waiting.hasMore.value
      ? 'Only the newest are shown; more appear as these are decided.'
      : ''
  return (
    <section class="view waiting" aria-label="Waiting">
      <div class="view-head">
        <h1>Waiting</h1>
        <span class="hint" role="status">
          {note}
        </span>
      </div>
      {!waiting.pending.isLoaded.value && <Skeleton lines={6} />}
      {waiting.pending.isLoaded.value && shown.length === 0 && (
        <Empty title="Nothing is waiting for a person." icon="check">
          <p>Approvals of tool calls, and questions of hosted agents, appear here.</p>
        </Empty>
      )}
      <ol class="pauses">
        {shown.map((pause) => (
          <li key={pause.id} class={isNamed(pause) ? 'is-named' : ''}>
            <PauseCard pause={pause} isNamed={isNamed(pause)} />
          </li>
        ))}
      </ol>
    </section>
  )
}
