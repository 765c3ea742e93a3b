import { compact, count, counted, dollars, duration, percent } from '../../../base/format.ts'
import type { TimeRange } from '../parts/range.ts'
import { type EventCounts, totalOf } from './call-sample.ts'
import type { RunMetrics } from './metrics.ts'

interface Change {
  readonly now: number
  /** Its value in the range before. */
  readonly before: number
  /** A share from 0 to 1, which changes by percentage points. */
  readonly isRate?: boolean
  readonly isRiseBad?: boolean
}

interface Tile {
  readonly title: string
  readonly value: string
  readonly change?: Change
  readonly note?: string | null
}

interface TilesProps {
  readonly metrics: RunMetrics
  readonly counts: readonly EventCounts[]
  readonly range: TimeRange
}

/** The totals of the range, compared with the range before it. */
export function Tiles({ metrics: { total, previous }, counts, range }: TilesProps) {
  const { events } = totalOf(counts)
  const perSecond = events / ((range.toMs - range.fromMs) / 1_000)
  const [rate, rateBefore] = [total, previous].map(({ failed, ended }) => failed / ended) as [number, number]
  const tiles: readonly Tile[] = [
    { title: 'Runs', value: count(total.runs), change: { now: total.runs, before: previous.runs } },
    {
      title: 'Failure rate',
      value: percent(rate),
      change: { now: rate, before: rateBefore, isRate: true, isRiseBad: true },
      note: `${count(total.failed)} failed`,
    },
    {
      title: 'Latency p95',
      value: duration(total.p95),
      change: { now: total.p95 ?? Number.NaN, before: previous.p95 ?? Number.NaN, isRiseBad: true },
      note: total.p50 === null ? null : `p50 ${duration(total.p50)}`,
    },
    { title: 'Events', value: compact(events), note: `${compact(perSecond)} per second` },
    { title: 'Tokens', value: compact(total.tokens), change: { now: total.tokens, before: previous.tokens } },
    {
      title: 'Cost',
      value: dollars(total.cost),
      change: { now: total.cost, before: previous.cost, isRiseBad: true },
    },
  ]
  return (
    <dl class="tiles">
      {tiles.map(({ title, value, change, note }) => (
        <div key={title} class="tile panel">
          <dt>{title}</dt>
          <dd class="tile-value">{value}</dd>
          <dd class="tile-note">
            {change && <ChangeNote {...change} />}
            {note && <span>{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function ChangeNote(change: Change) {
  const text = changeOf(change)
  if (text === null) return null
  const tone = !change.isRiseBad || text === 'unchanged' ? '' : change.now > change.before ? 'bad' : 'good'
  return (
    <span class={`change ${tone}`} title="Compared with the range before">
      {text}
    </span>
  )
}

const UNCHANGED_SHARE = 0.005
const UNCHANGED_POINTS = 0.05

/** `▲ 50%`, or `▼ 1.6 points` for a rate. Null without an earlier value: a rise from nothing has no percentage. */
export function changeOf({ now, before, isRate = false }: Change): string | null {
  if (!Number.isFinite(now) || !Number.isFinite(before) || (before === 0 && !isRate)) return null
  const change = isRate ? (now - before) * 100 : now / before - 1
  const size = Math.abs(change)
  if (size < (isRate ? UNCHANGED_POINTS : UNCHANGED_SHARE)) return 'unchanged'
  return `${change > 0 ? '▲' : '▼'} ${isRate ? counted(Number(size.toFixed(1)), 'point') : percent(size)}`
}
