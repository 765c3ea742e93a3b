import { mint } from '../base/ids.ts'
import { insertEvents } from '../journal/outbox-rows.ts'
import type { Sql } from '../postgres/connect.ts'
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

/** The alerts of these partitions whose tick is before `now`, except those of `except`; the earliest of each workspace first. */
export function readDue(
  sql: Sql,
  { now, partitions, except }: { now: number; partitions: readonly number[]; except: readonly string[] },
): Promise<DueAlert[]> {
  return sql<DueAlert[]>`
    select alert_id, workspace_id, partition, next_at from (
      select a.alert_id, a.workspace_id, w.partition, a.next_at,
        row_number() over (partition by a.workspace_id order by a.next_at, a.alert_id) as place
      from alerts a join workspaces w on w.workspace_id = a.workspace_id
      where a.is_enabled and a.next_at < ${new Date(now)} and w.status = 'active'
        and w.partition = any(${partitions as number[]}::int[])
        and a.alert_id <> all(${except as string[]}::uuid[])
    ) as due
    where place <= ${DUE_PER_WORKSPACE}
    order by place, next_at limit ${DUE_MAX}`
}

interface EvaluatedAlert {
  readonly alert: StoredAlert
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
 * process has stored this tick, and not after an edit.
 * @returns whether it applied
 */
export async function storeTick(
  sql: Sql,
  { alert, tick, nextAt, advanced, rowsOf, now, error }: EvaluatedAlert,
): Promise<boolean> {
  const events = advanced.transitions.map((each) => eventOf(alert, each, { mint, now, rowsOf, error: advanced.error }))
  const changed = {
    ...toStored(advanced.states, alert.by_columns),
    ...{ evaluated_at: new Date(tick), next_at: new Date(nextAt) },
    error: error?.slice(0, ERROR_LENGTH_MAX).replaceAll('\0', '').toWellFormed() ?? null,
  }
  const [row] = await sql`
    with changed as (
      update alerts set ${sql(changed as never)}
      where alert_id = ${alert.alert_id} and version = ${alert.version} and is_enabled
        and evaluated_at is not distinct from ${alert.evaluated_at}::timestamptz
      returning alert_id
    ), logged as (${insertEvents(sql, events)})
    select alert_id from changed`
  return row !== undefined
}
