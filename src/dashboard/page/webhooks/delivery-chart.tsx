import { compact, count } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import type { Result } from '../data/api.ts'
import { num } from '../data/json.ts'
import { useLoad } from '../data/loading.ts'
import type { Webhook } from '../data/webhooks.ts'
import { TimeChart } from '../parts/chart.tsx'
import { bucketsOf, completeBuckets, type TimeRange } from '../parts/range.tsx'
import { Loaded } from '../parts/states.tsx'

const QUERY = `SELECT toUnixTimestamp(toStartOfHour(at)) AS hour, countIf(status = 'succeeded') AS succeeded,
  countIf(status != 'succeeded') AS failed
FROM deliveries
WHERE webhook_id = {webhook:UUID} AND at >= fromUnixTimestamp64Milli({from:Int64})
GROUP BY hour`

const HOUR_MS = 3_600_000
const HOURS = 24
const REFRESH_MS = 60_000
const HEIGHT = 120

/** The attempts of the last day, by hour. */
export function DeliveryChart({ webhook: { webhook_id } }: { readonly webhook: Webhook }) {
  const { queries } = useSession()
  const read = useLoad(
    async (signal) => {
      const range = lastDay(Date.now())
      return { range, ...(await queries.run(QUERY, { webhook: webhook_id, from: range.fromMs }, signal)) }
    },
    [webhook_id],
    { everyMs: REFRESH_MS },
  )
  return (
    <Loaded read={read} lines={4}>
      {({ range, rows }) => <AttemptsByHour range={range} rows={rows} />}
    </Loaded>
  )
}

function AttemptsByHour({ range, rows }: Pick<Result, 'rows'> & { readonly range: TimeRange }) {
  const times = bucketsOf(range)
  const byHour = new Map(rows.map((row) => [num(row.hour), row]))
  const valuesOf = (name: 'succeeded' | 'failed') => times.map((time) => num(byHour.get(time)?.[name]))
  const succeeded = valuesOf('succeeded')
  const failed = valuesOf('failed')
  if (byHour.size === 0) return <p class="hint">No attempts in the last 24 hours.</p>
  return (
    <section aria-label="Attempts of the last 24 hours">
      <h3>Attempts of the last 24 hours</h3>
      <TimeChart
        title="Attempts of the last 24 hours, by hour"
        times={times}
        complete={completeBuckets(range, Date.now())}
        height={HEIGHT}
        format={compact}
        series={[
          {
            label: `${count(sum(succeeded))} succeeded`,
            colour: 'good',
            kind: 'bars',
            values: succeeded,
            drawn: succeeded.map((value, at) => value + (failed[at] ?? 0)),
          },
          { label: `${count(sum(failed))} failed`, colour: 'bad', kind: 'bars', values: failed, drawn: failed },
        ]}
      />
    </section>
  )
}

/** The hours up to the present one. */
function lastDay(nowMs: number): TimeRange {
  const toMs = (Math.floor(nowMs / HOUR_MS) + 1) * HOUR_MS
  return { fromMs: toMs - HOURS * HOUR_MS, toMs, bucketSeconds: HOUR_MS / 1_000, isMoving: true }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
