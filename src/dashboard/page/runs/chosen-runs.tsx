import { useState } from 'preact/hooks'
import { counted } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { isLive, type RunSummary } from '../data/records.ts'
import { Button, Icon } from '../parts/controls.tsx'
import { lazyView } from '../parts/lazy-view.tsx'
import type { RunChoice } from './run-choice.ts'

const CancelRuns = lazyView(async () => (await import('./cancel-runs.tsx')).CancelRuns)

interface ChosenRunsProps {
  readonly runs: readonly RunSummary[]
  readonly choice: RunChoice
}

/** What can be done with the chosen runs. */
export function ChosenRuns({ runs, choice }: ChosenRunsProps) {
  /** The runs that the open dialog is about; changes of the list do not affect them. */
  const [cancelled, setCancelled] = useState<readonly RunSummary[] | null>(null)
  const chosen = runs.filter(({ run_id }) => choice.has(run_id))
  const live = chosen.filter(isLive)
  // The older run comes first.
  const [first, second] = chosen
    .toSorted((a, b) => a.created_at.localeCompare(b.created_at))
    .map(({ run_id }) => run_id)
  return (
    <>
      {chosen.length > 0 && (
        <section class="chosen-runs" aria-label="Chosen runs">
          <span role="status">{counted(chosen.length, 'run')} chosen</span>
          {chosen.length === 2 && first !== undefined && second !== undefined ? (
            <a class="button small primary" href={hrefOf('runs', ['compare', first, second])}>
              <Icon name="columns" />
              Compare
            </a>
          ) : (
            <Button class="small" icon="columns" text="Compare" disabled title="Choose two runs to compare them." />
          )}
          <Button
            needs="approver"
            class="small"
            icon="stop"
            text={live.length === 0 ? 'Cancel' : `Cancel ${counted(live.length, 'run')}`}
            disabled={live.length === 0}
            title={live.length === 0 ? 'All of them have ended.' : undefined}
            onClick={() => setCancelled(chosen)}
          />
          <Button class="small quiet" text="Choose none" onClick={() => choice.clear()} />
        </section>
      )}
      {cancelled !== null && (
        <CancelRuns
          runs={cancelled}
          close={(isStarted) => {
            setCancelled(null)
            if (isStarted) choice.clear()
          }}
        />
      )}
    </>
  )
}
