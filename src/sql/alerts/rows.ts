import { mint } from '../../base/ids.ts'
import { insertEvents } from '../../stores/journal/outbox-rows.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { OwnedPartition } from '../../tenants/partitions/partition.ts'
import type { Settings } from './definition.ts'
import type { Evaluation } from './evaluation.ts'
import { eventOf } from './events.ts'
import type { Advanced } from './machine.ts'
import { type StoredStates, toStored } from './states.ts'

/** SQL text: the columns of {@link Settings}. */
export const SETTINGS_COLUMNS = [
  ...[
    'name',
    'query_id',
    'query',
    'params',
    'every_seconds',
    'window_seconds',
    'by_columns',
    'condition',
    'for_seconds',
  ],
  ...['keep_firing_seconds', 'no_data', 'on_error', 'renotify_seconds', 'notify', 'is_enabled'],
] as const satisfies (keyof Settings)[]

/** SQL text: the columns of {@link StoredAlert}. */
export const STORED_COLUMNS = [
  ...SETTINGS_COLUMNS,
  ...['alert_id', 'workspace_id', 'version', 'states', 'evaluated_at', 'next_at', 'error', 'created_at'],
].join(', ')

/** An alert with its states. */
export interface StoredAlert extends Settings, Pick<StoredStates, 'states'> {
  readonly alert_id: string
  readonly workspace_id: string
  /** Counts the edits. */
  readonly version: number
  readonly evaluated_at: Date | null
  readonly next_at: Date | null
  readonly error: string | null
  readonly created_at: Date
}

/** An alert whose tick is past. */
export interface DueAlert {
  readonly alert_id: string
  readonly workspace_id: string
  readonly partition: number
  readonly next_at: Date
}

/** Due alerts of one workspace that are read at a time, so that none keeps others waiting. */
const DUE_PER_WORKSPACE = 8
const DUE_MAX = 256
const ERROR_LENGTH_MAX = 2_000

/** The first tick after a time. Ticks are the multiples of `everyMs` since the epoch. */
export function nextTick(ms: number, everyMs: number): number {
  return (Math.floor(ms / everyMs) + 1) * everyMs
}

/** Where alerts are looked for: ticks before a time, Unix milliseconds. */
interface DuePartition {
  readonly id: number
  readonly before: number
}

/** The alerts of these partitions whose tick is before its time, except those of `except`; the earliest of each workspace first. */
export function readDue(
  sql: Sql,
  { partitions, except }: { partitions: readonly DuePartition[]; except: readonly string[] },
): Promise<DueAlert[]> {
  const times = partitions.map(({ before }) => new Date(Math.max(0, before)).toISOString())
  return sql<DueAlert[]>`
    select alert_id, workspace_id, partition, next_at from (
      select a.alert_id, a.workspace_id, w.partition, a.next_at,
        row_number() over (partition by a.workspace_id order by a.next_at, a.alert_id) as place
      from alerts a join workspaces w on w.workspace_id = a.workspace_id
      join unnest(${partitions.map(({ id }) => id)}::int[], ${times}::timestamptz[]) as p (id, before) on p.id = w.partition
      where a.is_enabled and a.next_at < ${times.toSorted().at(-1)!} and a.next_at < p.before and w.status = 'active'
        and a.alert_id <> all(${except as string[]}::uuid[])
    ) as due
    where place <= ${DUE_PER_WORKSPACE}
    order by place, next_at limit ${DUE_MAX}`
}

/**
 * Makes the alerts that are to be evaluated more than an interval from now due at their next tick: the clock was ahead when
 * they were evaluated last, and has been corrected since.
 * @param secondMs milliseconds of a second; tests take fewer
 * @returns how many there were
 */
export async function bringBack(
  sql: Sql,
  { now, partitions, secondMs }: { now: number; partitions: readonly number[]; secondMs: number },
): Promise<number> {
  const ahead = await sql<{ alert_id: string; next_at: Date; every_seconds: number }[]>`
    select a.alert_id, a.next_at, a.every_seconds from alerts a join workspaces w on w.workspace_id = a.workspace_id
    where a.is_enabled and a.next_at > ${new Date(now)}::timestamptz + a.every_seconds * ${secondMs}::int * interval '1 ms'
      and w.partition = any(${partitions as number[]}::int[])`
  if (ahead.length === 0) return 0
  const ticks = ahead.map(({ every_seconds }) => new Date(nextTick(now, every_seconds * secondMs)).toISOString())
  const moved = await sql`
    update alerts a set next_at = m.tick
    from unnest(
      ${ahead.map(({ alert_id }) => alert_id)}::uuid[], ${ahead.map(({ next_at }) => next_at.toISOString())}::timestamptz[],
      ${ticks}::timestamptz[]
    ) as m (alert_id, next_at, tick)
    where a.alert_id = m.alert_id and a.next_at = m.next_at`
  return moved.count
}

/**
 * The end of the newest tick that was decided, Unix milliseconds; 0 when none was. The next owner of a log may have a clock
 * that is behind that of the one before: what it accepts must come after the ticks that will not be evaluated again. One that
 * is far ahead was decided by a wrong clock.
 */
export async function lastTick(sql: Sql): Promise<number> {
  const [{ ms }] = await sql<[{ ms: number | null }]>`
    select extract(epoch from max(evaluated_at))::float8 * 1000 as ms from alerts
    where evaluated_at < now() + interval '1 minute'`
  return ms === null ? 0 : Math.round(ms) + 1
}

interface EvaluatedAlert {
  readonly alert: StoredAlert
  /** As whose owner the process has evaluated it. */
  readonly owner: Pick<OwnedPartition, 'id' | 'generation'>
  readonly tick: number
  readonly nextAt: number
  readonly advanced: Advanced
  readonly rowsOf: Evaluation['rowsOf']
  /** Unix milliseconds. */
  readonly now: number
  readonly error: string | null
}

/**
 * Stores the outcome of a tick, and its transitions in the outbox, in one statement that applies once: not after another
 * process has stored this tick, not after an edit, and not after another process has claimed the partition: that one may have
 * accepted rows before the tick.
 * @returns whether it applied
 */
export async function storeTick(
  sql: Sql,
  { alert, owner, tick, nextAt, advanced, rowsOf, now, error }: EvaluatedAlert,
): Promise<boolean> {
  const events = advanced.transitions.map((each) => eventOf(alert, each, { mint, now, rowsOf, error: advanced.error }))
  const changed = {
    ...toStored(advanced.states, alert.by_columns),
    evaluated_at: new Date(tick),
    next_at: new Date(nextAt),
    error: error?.slice(0, ERROR_LENGTH_MAX).replaceAll('\0', '').toWellFormed() ?? null,
  }
  const [row] = await sql`
    with changed as (
      update alerts set ${sql(changed as never)}
      where alert_id = ${alert.alert_id} and version = ${alert.version} and is_enabled
        and evaluated_at is not distinct from ${alert.evaluated_at}::timestamptz ${isStillOwner(sql, owner)}
      returning alert_id
    ), logged as (${insertEvents(sql, events)})
    select alert_id from changed`
  return row !== undefined
}

/** A partition that only one process can own has no claims, and the generation 0. */
function isStillOwner(sql: Sql, { id, generation }: Pick<OwnedPartition, 'id' | 'generation'>) {
  if (generation === 0) return sql``
  return sql`and exists (select from journal_partitions where partition = ${id} and generation = ${generation})`
}
