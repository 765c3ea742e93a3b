import type { RunIdentity } from '../../base/ids.ts'
import type { Journal } from '../../stores/journal/journal.ts'
import { type Sql, type TransactionSql, withoutEffect } from '../../stores/postgres/connect.ts'
import { boundedTokens, roundedUsd, USAGE_COLUMNS } from './rows.ts'
import { LIVE_RUN_STATUSES } from './state.ts'
import type { UsageWithCost } from './usage-reader.ts'

/** The name of its position in `journal_consumers`. */
export const CONSUMER = 'run-statistics'
/** A row in the outbox has the whole run, input included, so live runs get one in intervals, not after each model call. */
const LIVE_USAGE_INTERVAL_MS = 5_000

/** What is summed up of the usage of model calls. */
export type CountedUsage = Omit<UsageWithCost, 'cacheWrite1hTokens' | 'audioInputTokens' | 'audioOutputTokens'>

/** What the events of a run add to its row. */
export interface Tally extends RunIdentity, CountedUsage {
  readonly events: number
  /** When the last one was received, Unix milliseconds. */
  readonly lastAt: number
}

/** The positions whose events are written: after `from`, up to `to`. */
export interface WrittenRange {
  readonly epoch: string
  readonly from: number
  readonly to: number
}

/** What Postgres has of the counts of runs. */
export class RunCounts {
  constructor(private readonly sql: Sql) {}

  /**
   * The position from which counting continues. A new epoch starts at the position of the newest one with a position: not all
   * of its rows may be counted yet, and an owner may have begun an epoch without counting in it.
   */
  async position({ epoch, epochs }: Journal): Promise<number> {
    const { sql } = this
    await sql`
      insert into journal_consumers (epoch, consumer, seq)
      select ${epoch}, ${CONSUMER}, coalesce(
        (select max(seq) from journal_consumers
          where epoch = any(${epochs.map((each) => each.epoch)}::text[]) and consumer = ${CONSUMER}), 0)
      on conflict (epoch, consumer) do nothing`
    return countedSeq(sql, epoch)
  }

  /** See {@link write}. */
  write(range: WrittenRange, all: readonly Tally[]) {
    return write(this.sql, range, all)
  }

  /** Does what {@link write} does, without any effect. @throws what that would throw */
  probe(range: WrittenRange, all: readonly Tally[]): Promise<void> {
    return withoutEffect(this.sql, (tx) => write(tx, range, all))
  }
}

/** The position up to which the runs in the database count the events of a journal, as any process can read it. */
export async function countedSeq(sql: Sql, epoch: string): Promise<number> {
  const [row] = await sql<{ seq: number }[]>`
    select seq from journal_consumers where epoch = ${epoch} and consumer = ${CONSUMER}`
  return row?.seq ?? 0
}

/**
 * Adds the tallies to their runs and advances the position from `from` to `to`, atomically. Usage that the end of a run has
 * reported stays as it is, as does that of hosted runs, which store it themselves. Locks the rows in order of workspace and
 * run_id, as every statement on several runs does, to avoid deadlocks.
 *
 * Sums of tokens are computed as decimals and have a bound: a sum that fails would stop the counts of all workspaces.
 *
 * @returns `isWritten` is false if the position was no longer the expected one, because another process that follows the
 *   journal was faster; `hasUsage`: the usage of some run has changed
 */
async function write(sql: Sql | TransactionSql, { epoch, from, to }: WrittenRange, all: readonly Tally[]) {
  const tokens = (column: string) =>
    boundedTokens(`r.${column} + case when i.counts_tokens then i.${column} else 0 end`)
  const [row] = await sql<{ has_usage: boolean }[]>`
    with advanced as (
      update journal_consumers set seq = ${to}
      where epoch = ${epoch} and consumer = ${CONSUMER} and seq = ${from}
      returning seq
    ), item as (
      select * from unnest(
        ${all.map(({ runId }) => runId)}::uuid[], ${all.map(({ workspaceId }) => workspaceId)}::uuid[],
        ${all.map(({ events }) => events)}::bigint[],
        ${all.map(({ lastAt }) => new Date(lastAt).toISOString())}::timestamptz[],
        ${all.map(({ inputTokens }) => inputTokens)}::numeric[], ${all.map(({ outputTokens }) => outputTokens)}::numeric[],
        ${all.map(({ cacheReadTokens }) => cacheReadTokens)}::numeric[],
        ${all.map(({ cacheWriteTokens }) => cacheWriteTokens)}::numeric[],
        ${all.map(({ reasoningTokens }) => reasoningTokens)}::numeric[],
        ${all.map(({ costUsd }) => costUsd)}::double precision[]
      ) as i (run_id, workspace_id, events, last_at, ${sql.unsafe(USAGE_COLUMNS.join(', '))}, cost_usd)
    ), locked as materialized (
      select i.*, r.runtime_type = 'external' and not r.is_usage_reported as counts_tokens,
        r.runtime_type = 'external' and not r.is_cost_reported as counts_cost,
        case when r.status in ${sql(LIVE_RUN_STATUSES)} then ${LIVE_USAGE_INTERVAL_MS / 1_000} else 0 end as due_in
      from runs r join item i on i.workspace_id = r.workspace_id and i.run_id = r.run_id
      where exists (select from advanced)
      order by r.workspace_id, r.run_id for no key update of r
    ), counted as (
      update runs r set event_count = r.event_count + i.events, last_event_at = greatest(r.last_event_at, i.last_at),
        ${sql.unsafe(USAGE_COLUMNS.map((name) => `${name} = ${tokens(name)}`).join(', '))},
        cost_usd = ${sql.unsafe(roundedUsd('r.cost_usd + case when i.counts_cost then i.cost_usd else 0 end'))}
      from locked i
      where r.workspace_id = i.workspace_id and r.run_id = i.run_id
    ), changed as (
      insert into run_usage_changes (run_id, workspace_id, due_at)
      select run_id, workspace_id, now() + make_interval(secs => due_in) from locked
      where (counts_tokens and input_tokens + output_tokens > 0) or (counts_cost and cost_usd > 0)
      on conflict (run_id, workspace_id) do update set due_at = least(run_usage_changes.due_at, excluded.due_at)
    )
    select exists (select from locked where input_tokens + output_tokens > 0 or cost_usd > 0) as has_usage from advanced`
  return { isWritten: row !== undefined, hasUsage: row?.has_usage === true }
}
