import { sleep } from '../../base/abort.ts'
import type { PricesOnDemand } from '../../base/conventions/prices.ts'
import { ApiError } from '../../base/errors.ts'
import { SharedSlice } from '../../base/http/shared-slice.ts'
import type { Log } from '../../base/log.ts'
import { Loops } from '../../base/loops.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { LoadProgress } from '../../stores/sink/sink.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { CONSUMER } from './counts.ts'
import { boundedTokens, roundedUsd, USAGE_COLUMNS, type UsageColumns } from './rows.ts'
import { MODEL_CALL, UsageReader, type UsageWithCost } from './usage-reader.ts'

interface RecountDeps {
  readonly sql: Sql
  readonly columnar: ColumnarClient
  readonly loading: LoadProgress
  readonly partition: number
  readonly prices: PricesOnDemand
  readonly log: Log
  readonly loops?: Loops
  /** Called after each commit that wrote to `run_usage_changes`. */
  readonly onUsage: () => void
}

/** A recount that is not done. The runs from the newest down to the cursor are. */
interface Recount {
  readonly workspace_id: string
  readonly recount_id: string
  readonly requested_at: Date
  readonly after_created_at: Date | null
  readonly after_run_id: string | null
}

/** A run as the statistics had counted it at `counted_seq`. */
interface CountedRun extends UsageColumns {
  readonly run_id: string
  readonly agent_id: string
  readonly created_at: Date
  readonly event_count: number
  readonly cost_usd: number
  readonly counted_seq: number | null
}

/** What ClickHouse has of a run, up to a position. */
interface StoredEvents {
  readonly run_id: string
  readonly events: number
  readonly calls: number
  readonly bytes: number
  readonly longest: number
}

type Sums = UsageColumns & { readonly cost_usd: number }

const INTERVAL_MS = 1_000
const RUNS_PER_PAGE = 200
/** Payloads that are read at once. */
const READ_BYTES = 8 << 20
const READ_ROWS = 5_000
const LOAD_TIMEOUT_MS = 30_000

/**
 * Begins to count the usage of a workspace's external runs again (docs/usage.md).
 * @returns the number of runs
 * @throws ApiError CONFLICT while another recount of the workspace is not done
 */
export async function requestRecount(sql: Sql, { workspaceId }: Caller): Promise<{ runs: number }> {
  const [begun] = await sql`
    insert into recounts (workspace_id, recount_id, requested_at) values (${workspaceId}, gen_random_uuid(), now())
    on conflict (workspace_id) do update set recount_id = excluded.recount_id, requested_at = excluded.requested_at,
      after_created_at = null, after_run_id = null, done_at = null
    where recounts.done_at is not null
    returning recount_id`
  if (begun === undefined)
    throw new ApiError('CONFLICT', 'a recount of the workspace is running; wait until it is done', {
      reason: 'already_running',
    })
  const [{ runs }] = await sql<{ runs: number }[]>`
    select count(*)::int as runs from runs where workspace_id = ${workspaceId} and runtime_type = 'external'`
  return { runs }
}

/**
 * Counts usage again where it was requested, for the workspaces of a partition, in its owner's process. Page by page: a
 * snapshot has what the statistics had counted of each run, and up to which position; ClickHouse has the events up to there;
 * and what their sums differ is added to the run. So it does not matter what the statistics count meanwhile. The cursor
 * moves in the same statement, so that each difference is added once, also after a restart or by two processes.
 *
 * Runs whose events have not all been kept stay as they are, as does usage that the end of a run has reported.
 */
export function startRecounts(deps: RecountDeps): () => Promise<void> {
  const { sql, partition, loops = new Loops(deps.log) } = deps
  return loops.repeat('recounts', INTERVAL_MS, async (signal) => {
    for (;;) {
      const pending = await sql<Recount[]>`
        select workspace_id, recount_id, requested_at, after_created_at, after_run_id
        from recounts join workspaces using (workspace_id) where done_at is null and partition = ${partition}`
      if (pending.length === 0) return
      const errors: unknown[] = []
      // A page of each in turn: the runs of one workspace must not keep the others waiting, nor must their failure.
      for (const recount of pending) {
        if (signal.aborted) return
        const started = performance.now()
        await countPage(deps, recount, signal).catch((error) => errors.push(error))
        await sleep(performance.now() - started, signal)
      }
      if (errors.length > 0) throw errors[0]
    }
  })
}

async function countPage(deps: RecountDeps, recount: Recount, signal: AbortSignal): Promise<void> {
  const { sql, loading } = deps
  const runs = await nextRuns(sql, loading.epoch, recount)
  if (runs.length === 0) {
    await sql`
      update recounts set done_at = now()
      where workspace_id = ${recount.workspace_id} and recount_id = ${recount.recount_id}`
    return
  }
  const seq = runs[0].counted_seq ?? 0
  if (!(await loading.waitFor(seq, LOAD_TIMEOUT_MS))) throw new Error('ClickHouse is too far behind to recount usage')
  const sums = await storedSums(deps, recount.workspace_id, runs, seq, signal)
  const changes = runs.flatMap((run) => {
    const stored = sums.get(run.run_id)
    return stored === undefined ? [] : [{ run_id: run.run_id, by: difference(stored, run) }]
  })
  const isChanged = await apply(sql, recount, runs[runs.length - 1], changes)
  if (isChanged) deps.onUsage()
}

/** One statement, and so one snapshot, with the position of the statistics. */
function nextRuns(sql: Sql, epoch: string, recount: Recount): Promise<CountedRun[]> {
  const { workspace_id, requested_at, after_created_at, after_run_id } = recount
  return sql<CountedRun[]>`
    select run_id, agent_id, created_at, event_count, cost_usd, ${sql.unsafe(USAGE_COLUMNS.join(', '))},
      (select seq from journal_consumers where epoch = ${epoch} and consumer = ${CONSUMER}) as counted_seq
    from runs
    where workspace_id = ${workspace_id} and runtime_type = 'external' and created_at <= ${requested_at}
      ${after_run_id === null ? sql`` : sql`and (created_at, run_id) < (${after_created_at}, ${after_run_id}::uuid)`}
    order by created_at desc, run_id desc limit ${RUNS_PER_PAGE}`
}

/** The sums of the runs of which ClickHouse has all counted events. */
async function storedSums(
  { columnar, prices }: RecountDeps,
  workspace: string,
  runs: readonly CountedRun[],
  seq: number,
  signal: AbortSignal,
): Promise<Map<string, Sums>> {
  const slice = new SharedSlice().of(workspace)
  const reader = new UsageReader(await prices.loaded())
  const scope = `workspace_id = {workspace:UUID} and agent_id in {agents:Array(UUID)} and seq <= {seq:UInt64}`
  const params = { workspace, agents: [...new Set(runs.map(({ agent_id }) => agent_id))], seq, type: MODEL_CALL }
  const found = await columnar.query<StoredEvents>(
    `select run_id, count() as events, countIf(type = {type:String}) as calls,
       sumIf(length(payload), type = {type:String}) as bytes, maxIf(length(payload), type = {type:String}) as longest
     from events where ${scope} and run_id in {runs:Array(UUID)} group by run_id`,
    { params: { ...params, runs: runs.map(({ run_id }) => run_id) }, signal },
  )
  const counts = new Map(runs.map(({ run_id, event_count }) => [run_id, event_count]))
  const complete = found.filter(({ run_id, events }) => counts.get(run_id) === events)
  const sums = new Map(complete.map(({ run_id }) => [run_id, { ...NOTHING }]))
  for (const some of inReads(complete.filter(({ calls }) => calls > 0))) {
    const rows = Math.min(
      READ_ROWS,
      Math.max(1, Math.floor(READ_BYTES / Math.max(...some.map(({ longest }) => longest)))),
    )
    let left = some.reduce((sum, run) => sum + run.calls, 0)
    let after = { run_id: '00000000-0000-0000-0000-000000000000', seq: 0 }
    for (;;) {
      const calls = await columnar.query<{ run_id: string; seq: number; at: number; payload: string }>(
        `select run_id, seq, toUnixTimestamp64Milli(occurred_at) as at, payload from events
         where ${scope} and run_id in {runs:Array(UUID)} and type = {type:String}
           and (run_id, seq) > ({afterRun:UUID}, {afterSeq:UInt64})
         order by run_id, seq limit {rows:UInt32}`,
        {
          params: {
            ...params,
            rows,
            runs: some.map(({ run_id }) => run_id),
            afterRun: after.run_id,
            afterSeq: after.seq,
          },
          signal,
        },
      )
      for (const { run_id, at, payload } of calls) {
        if (slice.isOver) await slice.yield()
        const usage = reader.read(Buffer.from(payload), 0, at)
        if (usage !== null) add(sums.get(run_id)!, usage)
      }
      left -= calls.length
      if (calls.length < rows) break
      after = calls[calls.length - 1]
    }
    // Retention has deleted some since they were counted, or they are being loaded again.
    if (left !== 0) throw new Error('the events of runs have changed while their usage was counted')
  }
  return sums
}

const NOTHING: Sums = {
  input_tokens: 0,
  output_tokens: 0,
  cost_usd: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
}

/** Runs whose payloads are read together: {@link READ_BYTES} of them, or one run. */
function inReads(runs: readonly StoredEvents[]): StoredEvents[][] {
  const reads: StoredEvents[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const run of runs) {
    bytes += run.bytes
    if (bytes > READ_BYTES) {
      reads.push([])
      bytes = run.bytes
    }
    reads[reads.length - 1].push(run)
  }
  return reads
}

function add(sums: { -readonly [name in keyof Sums]: Sums[name] }, usage: UsageWithCost): void {
  sums.input_tokens += usage.inputTokens
  sums.output_tokens += usage.outputTokens
  sums.cache_read_tokens += usage.cacheReadTokens
  sums.cache_write_tokens += usage.cacheWriteTokens
  sums.reasoning_tokens += usage.reasoningTokens
  sums.cost_usd = withoutDust(sums.cost_usd + usage.costUsd)
}

const DECIMALS = 1e10

/** As the statistics round their sums ({@link roundedUsd}): what adding thousands of fractions makes up is no difference. */
function withoutDust(usd: number): number {
  const scaled = usd * DECIMALS
  return scaled < Number.MAX_SAFE_INTEGER ? Math.round(scaled) / DECIMALS : usd
}

const COLUMNS = [...USAGE_COLUMNS, 'cost_usd'] as const

function difference(stored: Sums, counted: Sums): Sums {
  return Object.fromEntries(COLUMNS.map((name) => [name, stored[name] - counted[name]])) as unknown as Sums
}

interface Change {
  readonly run_id: string
  readonly by: Sums
}

/**
 * Adds the differences and moves the cursor, unless another process has done so. Locks the rows in order of workspace and
 * run_id, as every statement on several runs does, to avoid deadlocks.
 */
async function apply(sql: Sql, recount: Recount, last: CountedRun, changes: readonly Change[]): Promise<boolean> {
  const { workspace_id, recount_id, after_run_id } = recount
  const by = (name: (typeof COLUMNS)[number]) => sql`${changes.map((change) => change.by[name])}::numeric[]`
  const tokens = USAGE_COLUMNS.map((name) => {
    const sum = boundedTokens(`greatest(0, r.${name} + i.${name})`)
    return `${name} = case when r.is_usage_reported then r.${name} else ${sum} end`
  })
  const cost = roundedUsd('greatest(0, r.cost_usd + i.cost_usd)')
  const rows = await sql<{ is_changed: boolean }[]>`
    with moved as (
      update recounts set after_created_at = ${last.created_at}, after_run_id = ${last.run_id}
      where workspace_id = ${workspace_id} and recount_id = ${recount_id} and done_at is null
        and after_run_id is not distinct from ${after_run_id}::uuid
      returning workspace_id
    ), item as (
      select * from unnest(
        ${changes.map(({ run_id }) => run_id)}::uuid[], ${by('input_tokens')}, ${by('output_tokens')},
        ${by('cache_read_tokens')}, ${by('cache_write_tokens')}, ${by('reasoning_tokens')}, ${by('cost_usd')}
      ) as i (run_id, ${sql.unsafe(COLUMNS.join(', '))})
    ), locked as materialized (
      select i.*, r.workspace_id from runs r join item i on r.workspace_id = ${workspace_id} and i.run_id = r.run_id
      where exists (select from moved)
        and (not r.is_usage_reported and (${sql.unsafe(USAGE_COLUMNS.map((name) => `i.${name} <> 0`).join(' or '))})
          or not r.is_cost_reported and abs(i.cost_usd) >= 1e-10)
      order by r.workspace_id, r.run_id for no key update of r
    ), counted as (
      update runs r set ${sql.unsafe(tokens.join(', '))},
        cost_usd = case when r.is_cost_reported then r.cost_usd else ${sql.unsafe(cost)} end
      from locked i
      where r.workspace_id = i.workspace_id and r.run_id = i.run_id
    ), changed as (
      insert into run_usage_changes (run_id, workspace_id, due_at) select run_id, workspace_id, now() from locked
      on conflict (run_id, workspace_id) do update set due_at = least(run_usage_changes.due_at, excluded.due_at)
    )
    select exists (select from locked) as is_changed from moved`
  return rows[0]?.is_changed === true
}
