import { Counts } from '../../../base/counts.ts'
import { ApiError } from '../../../base/errors.ts'
import { PAGE_LIMIT_DEFAULT } from '../../../base/http/page.ts'
import type { SharedSlice } from '../../../base/http/shared-slice.ts'
import { type ColumnarClient, ColumnarError, ColumnarUnavailable } from '../../../stores/clickhouse/client.ts'
import { TENANT_WORKLOAD } from '../../../stores/clickhouse/protocol.ts'
import type { Caller } from '../../../tenants/keys/schema.ts'
import type { Partitions } from '../../../tenants/partitions/partition.ts'
import type { ListedRun, ListRuns, RunList, SearchMatch } from '../schema.ts'
import type { ListedPosition, RunStore } from '../store.ts'
import { matchInEvent, matchInIds, matchInRun, matchInTask } from './match.ts'
import { parseSearch, type SearchQuery } from './search-query.ts'
import {
  eventsSql,
  type FoundEvent,
  type FoundRun,
  type FoundTask,
  matchingSql,
  ownTextsSql,
  type RunPosition,
  type RunSet,
  runsSql,
  SETTINGS_AMONG,
  type Statement,
  tasksSql,
} from './search-sql.ts'

interface RunSearchDeps {
  readonly columnar: Pick<ColumnarClient, 'query'>
  readonly partitions: Pick<Partitions, 'of'>
  readonly runs: Pick<RunStore, 'list' | 'newest' | 'listed' | 'cursorAt'>
  readonly slice: Pick<SharedSlice, 'of'>
  /** Default {@link NEWEST} and {@link NEWEST_IF_SLOW}. */
  readonly newest?: number
  readonly newestIfSlow?: number
}

/** How long a search waits until ClickHouse has what was acknowledged before. */
const LOADED_WAIT_MS = 500
/** Time limits of a statement that searches all runs, and of one that searches some. */
const ALL_SECONDS = 2
const FEW_SECONDS = 10
const FEW_SETTINGS = { ...SETTINGS_AMONG, max_execution_time: FEW_SECONDS }
/** Searches take no slot of the service's own statements. */
const TENANT = { workload: TENANT_WORKLOAD, max_memory_usage: 2 ** 30 }
const TIMEOUT_EXCEEDED = 159
const MEMORY_LIMIT_EXCEEDED = 241
/** The newest runs are searched first: frequent words are found there, in a fraction of the time. */
const NEWEST = 200
/** Runs that are searched for each page if searching all takes too long. */
const NEWEST_IF_SLOW = 500
/** Runs of a page whose texts are read at a time: an answer is parsed in one piece, and each may have 80 KiB. */
const MATCHED_AT_ONCE = 50
/** Searches that run at once: each may use all processors. */
const SEARCHES_AT_ONCE = 8
const SEARCHES_PER_WORKSPACE = 2
const UUID_GROUPS = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/

/** The list of runs, with search by `q` (docs/runs.md#search). */
export class RunSearch {
  private readonly running = new Counts()
  private readonly newest: number
  private readonly newestIfSlow: number

  constructor(private readonly deps: RunSearchDeps) {
    this.newest = deps.newest ?? NEWEST
    this.newestIfSlow = deps.newestIfSlow ?? NEWEST_IF_SLOW
  }

  /**
   * A page of the list of runs; with `q`, of those that match.
   * @param signal ends the search
   * @throws ApiError FORBIDDEN, VALIDATION_ERROR, RATE_LIMITED while too many searches run, UNAVAILABLE
   */
  async list(caller: Caller, query: ListRuns, signal: AbortSignal): Promise<RunList> {
    if (query.q === undefined) return this.deps.runs.list(caller, query)
    const search = parseSearch(query.q)
    const leave = this.enter(caller)
    try {
      return await this.search({ caller, search, query, signal })
    } catch (error) {
      if (!(error instanceof ColumnarUnavailable) && !isTooMuch(error)) throw error
      throw new ApiError('UNAVAILABLE', 'runs cannot be searched right now; try again', { cause: error })
    } finally {
      leave()
    }
  }

  private enter({ workspaceId }: Caller): () => void {
    // One that has some gets no more than half of what is free: a few workspaces leave room for others.
    const most = Math.min(SEARCHES_PER_WORKSPACE, Math.max(1, (SEARCHES_AT_ONCE - this.running.total) / 2))
    if (this.running.of(workspaceId) + 1 > most || this.running.total >= SEARCHES_AT_ONCE)
      throw new ApiError('RATE_LIMITED', 'too many searches run at the moment; try again', {
        reason: 'too_many_at_once',
        retryAfterSeconds: 1,
      })
    return this.running.hold(workspaceId)
  }

  private async search(request: SearchRequest): Promise<RunList> {
    const { caller, query } = request
    const { runs } = this.deps
    await this.catchUp(request)
    const { found, stoppedAt } = await this.find(request)
    const ids = found.map(({ run_id }) => run_id)
    const { items, next_cursor } = await runs.listed(caller, query, ids)
    // There are further ones, although some of these are no longer in the list: deleted, or with another status by now.
    const end = found.length > (query.limit ?? PAGE_LIMIT_DEFAULT) ? found.at(-1)! : stoppedAt
    const matches = await this.matchesOf(request, items)
    return {
      items: items.map((run) => ({ ...run, match: matches.get(run.run_id) ?? null })),
      next_cursor: next_cursor ?? (end === null ? null : runs.cursorAt(end)),
      searched: { runs_since: stoppedAt === null ? null : new Date(stoppedAt.created_ms).toISOString() },
    }
  }

  /** Waits for what was acknowledged before. Best effort: if ClickHouse stays behind, only what it has is searched. */
  private async catchUp({ caller, signal }: SearchRequest): Promise<void> {
    const partition = this.deps.partitions.of(caller)
    const flushed = partition.flushChanges().then(() => partition.loading.waitForAll(LOADED_WAIT_MS))
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    await Promise.race([flushed.catch(() => false), Bun.sleep(LOADED_WAIT_MS), aborted])
    signal.throwIfAborted()
  }

  /**
   * Finds the newest matches after the cursor, one more than a page has.
   * @returns stoppedAt: time ran out, so runs after this position were not searched; null if all were
   */
  private async find(request: SearchRequest): Promise<Found> {
    const { caller, search, query } = request
    const { runs } = this.deps
    const wanted = (query.limit ?? PAGE_LIMIT_DEFAULT) + 1
    const range = uuidRange(search.idPrefix)
    const byId = range === null ? [] : await runs.newest(caller, { ...query, run_id_range: range }, wanted)
    const newest = await runs.newest(caller, query, this.newest)
    const first = await this.matching(request, newest)
    const last = newest.at(-1)
    if (last === undefined || newest.length < this.newest || first.length >= wanted)
      return { found: newestOf([...byId, ...first], wanted), stoppedAt: null }
    try {
      const scoped = caller.agentId === null ? {} : { agent_id: caller.agentId }
      const { limit: _, cursor: __, q: ___, include: ____, ...filters } = query
      const all = runsSql(caller.workspaceId, search, { ...filters, ...scoped }, last, wanted - first.length)
      const rest = await this.ask<RunPosition>(request, all, { max_execution_time: ALL_SECONDS })
      return { found: newestOf([...byId, ...first, ...rest], wanted), stoppedAt: null }
    } catch (error) {
      if (!isTooMuch(error)) throw error
    }
    const { stoppedAt, found } = await this.findSlowly(request, last)
    const searched = byId.filter(
      (run) => stoppedAt === null || isBefore(run, stoppedAt) || run.run_id === stoppedAt.run_id,
    )
    return { found: newestOf([...searched, ...first, ...found], wanted), stoppedAt }
  }

  /** Searches only the next runs. The next page continues where this one stopped. */
  private async findSlowly(request: SearchRequest, after: RunPosition): Promise<Found> {
    const { caller, query } = request
    const { runs } = this.deps
    const next = await runs.newest(caller, { ...query, cursor: runs.cursorAt(after) }, this.newestIfSlow)
    try {
      const found = await this.matching(request, next)
      return { found, stoppedAt: next.length < this.newestIfSlow ? null : next[next.length - 1]! }
    } catch (error) {
      if (!isTooMuch(error)) throw error
      return { found: [], stoppedAt: after }
    }
  }

  private async matching(request: SearchRequest, among: readonly ListedPosition[]): Promise<ListedPosition[]> {
    if (among.length === 0) return []
    const { caller, search } = request
    const rows = await this.ask<{ run_id: string }>(request, matchingSql(caller.workspaceId, search, setOf(among)))
    const ids = new Set(rows.map(({ run_id }) => run_id))
    return among.filter(({ run_id }) => ids.has(run_id))
  }

  /** Where each run of a page matches, by run id. */
  private async matchesOf(request: SearchRequest, items: readonly ListedRun[]): Promise<Map<string, SearchMatch>> {
    const matches = new Map<string, SearchMatch>()
    for (let from = 0; from < items.length; from += MATCHED_AT_ONCE)
      await this.addMatches(request, items.slice(from, from + MATCHED_AT_ONCE), matches)
    return matches
  }

  private async addMatches(
    request: SearchRequest,
    items: readonly ListedRun[],
    matches: Map<string, SearchMatch>,
  ): Promise<void> {
    const { search } = request
    const { workspaceId } = request.caller
    const slice = this.deps.slice.of(workspaceId)
    const ask = <Row>(sqlOf: typeof ownTextsSql): Promise<Row[]> => {
      const others = items.filter(({ run_id }) => !matches.has(run_id))
      return others.length === 0
        ? Promise.resolve([])
        : this.ask<Row>(request, sqlOf(workspaceId, search, setOf(others)))
    }
    const add = async <Row extends { readonly run_id: string }>(
      rows: readonly Row[],
      matchIn: (search: SearchQuery, row: Row) => SearchMatch | null,
    ) => {
      for (const row of rows) {
        const match = matchIn(search, row)
        if (match !== null) matches.set(row.run_id, match)
        if (slice.isOver) await slice.yield()
      }
    }
    await add(items, matchInIds)
    await add(await ask<FoundRun>(ownTextsSql), matchInRun)
    const [events, tasks] = await Promise.all([ask<FoundEvent>(eventsSql), ask<FoundTask>(tasksSql)])
    await add(tasks, matchInTask)
    await add(events, matchInEvent)
  }

  private ask<Row>(
    { caller, signal }: SearchRequest,
    { sql, params }: Statement,
    settings: Record<string, number> = FEW_SETTINGS,
  ): Promise<Row[]> {
    const options = { settings: { ...TENANT, ...settings }, quotaKey: caller.workspaceId, signal }
    return this.deps.columnar.query<Row>(sql, { params, ...options })
  }
}

interface SearchRequest {
  readonly caller: Caller
  readonly search: SearchQuery
  readonly query: ListRuns
  readonly signal: AbortSignal
}

interface Found {
  readonly found: readonly RunPosition[]
  readonly stoppedAt: RunPosition | null
}

/** Whether ClickHouse gave up: fewer runs may still be searched. */
function isTooMuch(error: unknown): boolean {
  return error instanceof ColumnarError && (error.code === TIMEOUT_EXCEEDED || error.code === MEMORY_LIMIT_EXCEEDED)
}

function setOf(runs: readonly Pick<ListedRun, 'run_id' | 'agent_id'>[]): RunSet {
  return { runs: runs.map(({ run_id }) => run_id), agents: [...new Set(runs.map(({ agent_id }) => agent_id))] }
}

function newestOf(positions: readonly RunPosition[], count: number): RunPosition[] {
  const unique = [...new Map(positions.map((each) => [each.run_id, each])).values()]
  return unique.sort((a, b) => (isBefore(a, b) ? -1 : 1)).slice(0, count)
}

/** Whether a run comes before another in the list: newest first. */
function isBefore(a: RunPosition, b: RunPosition): boolean {
  return a.created_ms !== b.created_ms ? a.created_ms > b.created_ms : a.run_id > b.run_id
}

/** The first and the last UUID with this prefix; null if no UUID has it. */
function uuidRange(prefix: string | null): readonly [first: string, last: string] | null {
  if (prefix === null || !/^[0-9a-f-]{4,36}$/.test(prefix)) return null
  const hex = prefix.replaceAll('-', '')
  const filled = (digit: string) => hex.padEnd(32, digit).replace(UUID_GROUPS, '$1-$2-$3-$4-$5')
  return filled('0').startsWith(prefix) ? [filled('0'), filled('f')] : null
}
