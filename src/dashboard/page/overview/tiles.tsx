import { compact, count, dollars, duration, percent } from '../../../base/format.ts'
import type { TimeRange } from '../parts/range.tsx'
import { type EventCounts, totalOf } from './call-sample.ts'
import { type Change, changeOf } from './change.ts'
import type { RunMetrics } from './metrics.ts'

interface TileProps {
  readonly title: string
  readonly value: string
  /** The value of the range before, and whether a rise is good. */
  readonly change?: Change & { readonly isRiseBad?: boolean }
  readonly note?: string
}

/** The totals of the range, compared with the range before it. */
export function Tiles({
  metrics,
  counts,
  range,
}: {
  readonly metrics: RunMetrics
  readonly counts: readonly EventCounts[]
  readonly range: TimeRange
}) {
  const { total, previous } = metrics
  const seconds = (range.toMs - range.fromMs) / 1_000
  const { events } = totalOf(counts)
  const failureRate = total.failed / total.ended
  return (
    <dl class="tiles">
      <Tile title="Runs" value={count(total.runs)} change={{ now: total.runs, before: previous.runs }} />
      <Tile
        title="Failure rate"
        value={percent(failureRate)}
        change={{ now: failureRate, before: previous.failed / previous.ended, isRate: true, isRiseBad: true }}
        note={`${count(total.failed)} failed`}
      />
      <Tile
        title="Latency p95"
        value={total.p95 === null ? '–' : duration(total.p95)}
        change={{ now: total.p95 ?? Number.NaN, before: previous.p95 ?? Number.NaN, isRiseBad: true }}
        note={total.p50 === null ? undefined : `p50 ${duration(total.p50)}`}
      />
      <Tile title="Events" value={compact(events)} note={`${compact(events / seconds)} per second`} />
      <Tile title="Tokens" value={compact(total.tokens)} change={{ now: total.tokens, before: previous.tokens }} />
      <Tile
        title="Cost"
        value={dollars(total.cost)}
        change={{ now: total.cost, before: previous.cost, isRiseBad: true }}
      />
    </dl>
  )
}

function Tile({ title, value, change, note }: TileProps) {
  return (
    <div class="tile panel">
      <dt>{title}</dt>
      <dd class="tile-value">{value}</dd>
      <dd class="tile-note">
        {change && <ChangeNote {...change} />}
        {note && <span>{note}</span>}
      </dd>
    </div>
  )
}

function ChangeNote({ isRiseBad = false, ...change }: NonNullable<TileProps['change']>) {
  const text = changeOf(change)
  if (text === null) return null
  const tone = !isRiseBad || text === 'unchanged' ? '' : change.now > change.before ? 'bad' : 'good'
  return (
    <span class={`change ${tone}`} title="Compared with the range before">
      {text}
    </span>
  )
}
