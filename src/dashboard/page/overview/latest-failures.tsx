import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { type Session, useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import type { Run, RunSummary } from '../data/records.ts'
import { Icon } from '../parts/icons.tsx'
import type { TimeRange } from '../parts/range.ts'
import { Skeleton } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Ago } from '../parts/time.tsx'

const SHOWN = 6
const FAILED = ['failed', 'timed_out'] as const

interface LatestFailuresProps {
  readonly range: TimeRange
  /** The range, as links have it. */
  readonly link: Readonly<Record<string, string>>
}

/** The runs of the range that failed last; the feed brings new ones. */
export function LatestFailures({ range, link }: LatestFailuresProps) {
  const session = useSession()
  const { directory } = session
  const [failures] = useState(() => new Failures(session, range))
  useEffect(() => failures.follow(), [failures])
  const runs = failures.runs.value?.filter((run) => isWithin(run, range)) ?? null
  return (
    <section class="panel failures">
      <h2>
        Latest failures <a href={hrefOf('runs', [], { status: 'failed', ...link })}>All</a>
      </h2>
      {runs === null && <Skeleton />}
      {runs?.length === 0 && (
        <p class="hint quiet-note">
          <Icon name="check" /> No run of this range has failed.
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

  constructor(
    private readonly session: Session,
    private readonly range: TimeRange,
  ) {}

  /** @returns stops it */
  follow(): () => void {
    const { api, feed } = this.session
    const subscription = feed.subscribe(
      { kind: 'run', status: [...FAILED] },
      { onItems: (items) => this.add(items.flatMap(({ run }) => (run === undefined ? [] : [run]))) },
      { maxPerSecond: SHOWN },
    )
    const read = (status: string) => api.get<Listed<Run>>('/api/v1/runs', { status, ...this.bounds(), limit: SHOWN })
    Promise.all(FAILED.map(read)).then(
      (pages) => this.add(pages.flatMap(({ items }) => items)),
      () => {},
    )
    return () => subscription.stop()
  }

  private bounds() {
    const { fromMs, toMs, isMoving } = this.range
    // The end of a moving range is now.
    return { from: new Date(fromMs).toISOString(), to: isMoving ? null : new Date(toMs).toISOString() }
  }

  private add(runs: readonly RunSummary[]): void {
    const all = new Map([...(this.runs.value ?? []), ...runs].map((run) => [run.run_id, run]))
    this.runs.value = [...all.values()]
      .filter((run) => isWithin(run, this.range))
      .sort((a, b) => endOf(b).localeCompare(endOf(a)))
      .slice(0, SHOWN)
  }
}

/** By the start, as in all figures and lists of runs. */
function isWithin({ created_at }: RunSummary, { fromMs, toMs, isMoving }: TimeRange): boolean {
  const at = Date.parse(created_at)
  return at >= fromMs && (isMoving || at < toMs)
}

function endOf({ completed_at, created_at }: RunSummary): string {
  return completed_at ?? created_at
}
