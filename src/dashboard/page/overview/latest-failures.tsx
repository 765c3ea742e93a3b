import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { hrefOf, hrefOfRun } from '../app/router.ts'
import { type Session, useSession } from '../app/session.ts'
import type { Listed } from '../data/api.ts'
import type { Run, RunSummary } from '../data/records.ts'
import { Icon } from '../parts/icons.tsx'
import { Skeleton } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Ago } from '../parts/time.tsx'

const SHOWN = 6
const FAILED = ['failed', 'timed_out'] as const

/** The runs that failed last; the feed brings new ones. */
export function LatestFailures() {
  const session = useSession()
  const { directory } = session
  const [failures] = useState(() => new Failures(session))
  useEffect(() => failures.follow(), [failures])
  const runs = failures.runs.value
  return (
    <section class="panel failures">
      <h2>
        Latest failures <a href={hrefOf('runs', [], { status: 'failed' })}>All</a>
      </h2>
      {runs === null && <Skeleton />}
      {runs?.length === 0 && (
        <p class="hint quiet-note">
          <Icon name="check" /> No run has failed.
        </p>
      )}
      <ul class="rows">
        {runs?.map((run) => (
          <li key={run.run_id}>
            <a href={hrefOfRun(run.run_id)}>
              <span class="row-title">{run.error_message ?? 'no message'}</span>
              <span class="hint">{directory.nameOf(run.agent_id)}</span>
            </a>
            {run.status === 'timed_out' && <Status name="timed_out" />}
            <Ago at={run.completed_at ?? run.created_at} />
          </li>
        ))}
      </ul>
    </section>
  )
}

class Failures {
  readonly runs = signal<readonly RunSummary[] | null>(null)

  constructor(private readonly session: Session) {}

  /** @returns stops it */
  follow(): () => void {
    const { api, feed } = this.session
    const subscription = feed.subscribe(
      { kind: 'run', status: [...FAILED] },
      { onItems: (items) => this.add(items.flatMap(({ run }) => (run === undefined ? [] : [run]))) },
      { maxPerSecond: SHOWN },
    )
    const read = (status: string) => api.get<Listed<Run>>('/api/v1/runs', { status, limit: SHOWN })
    Promise.all(FAILED.map(read)).then(
      (pages) => this.add(pages.flatMap(({ items }) => items)),
      () => {},
    )
    return () => subscription.stop()
  }

  private add(runs: readonly RunSummary[]): void {
    const all = new Map([...(this.runs.value ?? []), ...runs].map((run) => [run.run_id, run]))
    this.runs.value = [...all.values()].sort((a, b) => endOf(b).localeCompare(endOf(a))).slice(0, SHOWN)
  }
}

function endOf({ completed_at, created_at }: RunSummary): string {
  return completed_at ?? created_at
}
