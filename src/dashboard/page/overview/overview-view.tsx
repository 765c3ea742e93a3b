import { pushQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import { noRunsYet } from '../parts/hints.tsx'
import { LiveToggle, linkedRange, RangePicker, useMovingRange, zoomOf } from '../parts/range.tsx'
import { Loaded } from '../parts/states.tsx'
import type { Catalogue } from '../sql/sql-state.ts'
import { Charts } from './charts.tsx'
import {
  CALLS_REFRESH_MS_MIN,
  readCalls,
  readEventCounts,
  readRuns,
  readStates,
  STATES_REFRESH_MS,
  TIME,
} from './metrics.ts'
import { AlertsNow, LatestFailures, StatesNow, WaitingNow } from './panels.tsx'
import { ScoreCharts } from './score-charts.tsx'
import { AgentTable, ModelTable, ToolTable } from './tables.tsx'
import { Tiles } from './tiles.tsx'

/** The workspace at a glance. */
export function OverviewView() {
  const { api, queries, directory } = useSession()
  const { live, ...query } = TIME.value
  const isStopped = live === 'off'
  const range = useMovingRange(query, isStopped)
  const subject = `${query.range} ${query.from} ${query.to}`
  const inputs = [subject, range.movedAtMs]
  const options = { subject }
  const runs = useLoad((signal) => readRuns(queries, range, signal), inputs, options)
  const counts = useLoad((signal) => readEventCounts(queries, range, signal), inputs, options)
  const schema = useLoad((signal) => api.get<Catalogue>('/api/v1/query/schema', {}, signal), [])
  const prices = schema.data?.model_prices
  const calls = useLoad(
    async (signal) => counts.data && prices && readCalls(queries, prices, range, counts.data, signal),
    [subject, Math.floor(range.movedAtMs / CALLS_REFRESH_MS_MIN), counts.data !== undefined, prices !== undefined],
    options,
  )
  const states = useLoad((signal) => readStates(queries, signal), [], { everyMs: isStopped ? 0 : STATES_REFRESH_MS })
  const problem = runs.problem ?? counts.problem ?? calls.problem ?? states.problem
  const metrics = runs.data
  const hasRuns = metrics === undefined || metrics.total.runs + metrics.previous.runs > 0
  const isUnused = !hasRuns && directory.isLoaded.value && directory.agents.value.length === 0
  const rates = (counts.data ?? []).map(({ events }) => events / range.bucketSeconds)
  const zoom = (fromMs: number, toMs: number) => pushQuery({ ...zoomOf(fromMs, toMs) })
  return (
    <section class="view overview" aria-label="Overview">
      <div class="view-head">
        <h1>Overview</h1>
        <div class="view-tools">
          {range.isMoving && <LiveToggle time={TIME} />}
          <RangePicker time={TIME} />
        </div>
      </div>
      <Loaded read={{ data: metrics, problem }} lines={8}>
        {(all) =>
          isUnused ? (
            noRunsYet()
          ) : (
            <>
              <Tiles metrics={all} counts={counts.data ?? []} range={range} />
              <Charts metrics={all} rates={rates} zoom={zoom} />
              <ScoreCharts range={range} inputs={inputs} subject={subject} zoom={zoom} />
            </>
          )
        }
      </Loaded>
      <div class="overview-grid">
        <StatesNow states={states.data} />
        <WaitingNow />
        <AlertsNow />
        <LatestFailures key={JSON.stringify(linkedRange(query))} range={range} />
        {metrics !== undefined && <AgentTable agents={metrics.agents} />}
        <ModelTable models={calls.data?.models} />
        <ToolTable tools={calls.data?.tools} />
      </div>
    </section>
  )
}
