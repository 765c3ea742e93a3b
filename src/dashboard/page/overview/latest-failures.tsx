import { useEffect, useState } from 'preact/hooks'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { LiveResource } from '../data/loading.ts'
import type { Activity, RunSummary } from '../data/records.ts'
import { Icon } from '../parts/controls.tsx'
import type { TimeRange } from '../parts/range.tsx'
import { Skeleton, Status } from '../parts/states.tsx'
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
  const { directory } = useSession()
  const runs = useFailures(range)?.filter((run) => isWithin(run, range))
  return (
    <section class="panel failures">
      <h2>
        Latest failures <a href={hrefOf('runs', [], { status: 'failed', ...link })}>All</a>
      </h2>
      {runs === undefined && <Skeleton />}
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

/** Null until they are read. */
function useFailures(range: TimeRange): readonly RunSummary[] | null {
  const { api, feed } = useSession()
  const [closing] = useState(() => new AbortController())
  const [failures] = useState(() => {
    const { fromMs, toMs, isMoving } = range
    // The end of a moving range is now.
    const bounds = { from: new Date(fromMs).toISOString(), to: isMoving ? null : new Date(toMs).toISOString() }
    const load = async (signal: AbortSignal) => {
      const read = (status: string) =>
        api.get<Listed<RunSummary>>('/api/v1/runs', { status, ...bounds, limit: SHOWN }, signal)
      return latest(
        (await Promise.all(FAILED.map(read))).flatMap(({ items }) => items),
        range,
      )
    }
    return new LiveResource<readonly RunSummary[] | null>(null, { load }, closing.signal)
  })
  useEffect(() => {
    const onItems = (items: readonly Activity[]) =>
      failures.update((runs) => runs && latest([...runs, ...items.flatMap(({ run }) => run ?? [])], range))
    const subscription = feed.subscribe({ kind: 'run', status: [...FAILED] }, { onItems }, { maxPerSecond: SHOWN })
    void failures.load()
    return () => {
      subscription.stop()
      closing.abort()
    }
  }, [failures])
  return failures.value
}

/** The runs of a range that ended last, each in its last state. */
function latest(runs: readonly RunSummary[], range: TimeRange): readonly RunSummary[] {
  return [...new Map(runs.map((run) => [run.run_id, run])).values()]
    .filter((run) => isWithin(run, range))
    .sort((a, b) => endOf(b).localeCompare(endOf(a)))
    .slice(0, SHOWN)
}

/** By the start, as in all figures and lists of runs. */
function isWithin({ created_at }: RunSummary, { fromMs, toMs, isMoving }: TimeRange): boolean {
  const at = Date.parse(created_at)
  return at >= fromMs && (isMoving || at < toMs)
}

function endOf({ completed_at, created_at }: RunSummary): string {
  return completed_at ?? created_at
}
