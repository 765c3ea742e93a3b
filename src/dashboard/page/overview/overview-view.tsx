import { address, pushQuery, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import { Icon } from '../parts/controls.tsx'
import { noRunsYet } from '../parts/hints.tsx'
import { linkedRange, RangePicker, type TimeRange, useMovingRange, zoomOf } from '../parts/range.tsx'
import { Problem, Skeleton } from '../parts/states.tsx'
import type { Catalogue } from '../sql/sql-state.ts'
import type { EventCounts } from './call-sample.ts'
import { Charts } from './charts.tsx'
import { LatestFailures } from './latest-failures.tsx'
import {
  CALLS_REFRESH_MS_MIN,
  type RunMetrics,
  readCalls,
  readEventCounts,
  readRuns,
  readStates,
  STATES_REFRESH_MS,
} from './metrics.ts'
import { StatesNow, WaitingNow } from './now-panels.tsx'
import { AgentTable, ModelTable, ToolTable } from './tables.tsx'
import { Tiles } from './tiles.tsx'

/** The workspace at a glance. */
export function OverviewView() {
  const { api, queries } = useSession()
  const { query } = address.value
  const isStopped = query.live === 'off'
  const range = useMovingRange(query, isStopped)
  const subject = `${query.range} ${query.from} ${query.to}`
  const inputs = [subject, range.movedAtMs]
  const options = { subject }
  const runs = useLoad((signal) => readRuns(queries, range, signal), inputs, options)
  const counts = useLoad((signal) => readEventCounts(queries, range, signal), inputs, options)
  const schema = useLoad((signal) => api.get<Catalogue>('/api/v1/query/schema', {}, signal), [])
  const prices = schema.data?.model_prices
  const calls = useLoad(
    async (signal) => counts.data && prices && readCalls({ queries, prices }, range, counts.data, signal),
    [subject, Math.floor(range.movedAtMs / CALLS_REFRESH_MS_MIN), counts.data !== undefined, prices !== undefined],
    options,
  )
  const states = useLoad((signal) => readStates(queries, signal), [], { everyMs: isStopped ? 0 : STATES_REFRESH_MS })
  const problem = runs.problem ?? counts.problem ?? calls.problem ?? states.problem
  const zoom = (fromMs: number, toMs: number) => pushQuery({ ...zoomOf(fromMs, toMs) })
  return (
    <section class="view overview" aria-label="Overview">
      <div class="view-head">
        <h1>Overview</h1>
        <div class="view-tools">
          {range.isMoving && (
            <button
              type="button"
              class={`small live-toggle ${isStopped ? '' : 'is-live'}`}
              aria-pressed={!isStopped}
              onClick={() => setQuery({ live: isStopped ? null : 'off' })}
            >
              <Icon name={isStopped ? 'play' : 'live'} />
              <span>Live</span>
            </button>
          )}
          <RangePicker />
        </div>
      </div>
      {problem !== undefined && <Problem problem={problem} />}
      {runs.data === undefined ? (
        problem === undefined && <Skeleton lines={8} />
      ) : (
        <Figures metrics={runs.data} range={range} counts={counts.data ?? []} zoom={zoom} />
      )}
      <div class="overview-grid">
        <StatesNow states={states.data} />
        <WaitingNow />
        <LatestFailures key={JSON.stringify(linkedRange(query))} range={range} link={linkedRange(query)} />
        {runs.data !== undefined && <AgentTable agents={runs.data.agents} />}
        <ModelTable models={calls.data?.models} />
        <ToolTable tools={calls.data?.tools} />
      </div>
    </section>
  )
}

interface FiguresProps {
  readonly metrics: RunMetrics
  readonly counts: readonly EventCounts[]
  readonly range: TimeRange
  readonly zoom: (fromMs: number, toMs: number) => void
}

function Figures({ metrics, counts, range, zoom }: FiguresProps) {
  const { directory } = useSession()
  const isUnused =
    metrics.total.runs + metrics.previous.runs === 0 && directory.isLoaded.value && directory.agents.value.length === 0
  if (isUnused) return noRunsYet()
  return (
    <>
      <Tiles metrics={metrics} counts={counts} range={range} />
      <Charts metrics={metrics} rates={counts.map(({ events }) => events / range.bucketSeconds)} zoom={zoom} />
    </>
  )
}
