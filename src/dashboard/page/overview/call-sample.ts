/**
 * Figures of model and tool calls are in payloads, which are expensive to read. Of many events, a part is read, and sums
 * are scaled with the number of all calls, which is known from a cheap query.
 */

/** Events of one bucket of a range. */
export interface EventCounts {
  /** Start of the bucket, in Unix seconds. */
  readonly time: number
  readonly events: number
  readonly modelCalls: number
  readonly toolCalls: number
}

/** Which events are read. */
interface CallSample {
  /** One in so many. */
  readonly every: number
  /** Only these UTC days, as `2026-01-31`, because the store keeps each day by itself; null: all. */
  readonly days: readonly string[] | null
}

const READ_EVENTS_MAX = 20_000
const READ_DAYS_MAX = 4
const DAY_SECONDS = 86_400

/** @param counts of buckets of one width */
export function sampleOf(counts: readonly EventCounts[]): CallSample {
  // A bucket of a very long range has several days, which are read together.
  const width = Math.max(1, ((counts[1]?.time ?? 0) - (counts[0]?.time ?? 0)) / DAY_SECONDS)
  const byDay = [...Map.groupBy(counts, ({ time }) => Math.floor(time / DAY_SECONDS)).entries()]
    .map(([day, buckets]) => ({ day, ...totalOf(buckets) }))
    .filter(({ modelCalls, toolCalls }) => modelCalls + toolCalls > 0)
  // So few are counted, all of them.
  const isFew = totalOf(byDay).events <= READ_EVENTS_MAX
  const read = isFew || byDay.length <= READ_DAYS_MAX ? byDay : someDays(byDay)
  const every = 2 ** Math.max(0, Math.ceil(Math.log2(totalOf(read).events / READ_EVENTS_MAX)))
  return { every, days: read === byDay ? null : read.flatMap(({ day }) => datesFrom(day, width)) }
}

export function totalOf(counts: readonly Omit<EventCounts, 'time'>[]): Omit<EventCounts, 'time'> {
  const sum = (name: 'events' | 'modelCalls' | 'toolCalls') => counts.reduce((all, each) => all + each[name], 0)
  return { events: sum('events'), modelCalls: sum('modelCalls'), toolCalls: sum('toolCalls') }
}

type Day = Omit<EventCounts, 'time'> & {
  /** Days since 1970. */
  readonly day: number
}

/** Days that are spread evenly, and the busiest one of a kind of call that they do not have. */
function someDays(days: readonly Day[]): readonly Day[] {
  const step = (days.length - 1) / (READ_DAYS_MAX - 1)
  const chosen = Array.from({ length: READ_DAYS_MAX }, (_, at) => days[Math.round(at * step)] as Day)
  for (const kind of ['modelCalls', 'toolCalls'] as const) {
    const busiest = days.reduce((most, day) => (day[kind] > most[kind] ? day : most))
    if (busiest[kind] > 0 && totalOf(chosen)[kind] === 0) chosen.push(busiest)
  }
  return chosen
}

function datesFrom(day: number, count: number): string[] {
  return Array.from({ length: count }, (_, at) => new Date((day + at) * DAY_SECONDS * 1_000).toISOString().slice(0, 10))
}
