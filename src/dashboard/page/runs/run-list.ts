import { batch, computed, signal } from '@preact/signals'
import type { Session } from '../context/session.ts'
import type { ApiFailure, Listed } from '../data/api.ts'
import type { Subscription } from '../data/feed.ts'
import type { Activity, Run, RunSummary } from '../data/records.ts'
import { failureOf } from '../data/use-load.ts'
import { isPlain, matches, type RunFilter } from './filters.ts'
import { FOUND_MAX, findRuns } from './run-search.ts'

const PAGE_LIMIT = 50
/** Runs are updated from the feed; a busier workspace is sampled, and read again. */
const UPDATES_PER_SECOND_MAX = 200
const RELOAD_MS = 15_000

/**
 * The runs that a filter selects. Changes of listed runs appear at once; new runs are collected until the user asks for
 * them, so that nothing moves under the pointer. It outlives the view, so that the way back leads to the same list.
 */
export class RunList {
  readonly runs = signal<readonly RunSummary[]>([])
  /** Started since the list was read. */
  readonly newIds = signal<ReadonlySet<string>>(new Set())
  readonly hasMore = signal(false)
  readonly isLoading = signal(true)
  readonly problem = signal<ApiFailure | null>(null)
  readonly isEmpty = computed(
    () => !this.isLoading.value && this.problem.value === null && this.runs.value.length === 0,
  )
  /** The run that was opened last. */
  lastOpened: string | null = null
  scrollTop = 0
  private filter: RunFilter | null = null
  private filterKey = ''
  private cursor: string | null = null
  private loading = new AbortController()
  private subscription: Subscription | undefined
  private resumeAfter: string | undefined
  private reloadTimer: ReturnType<typeof setTimeout> | undefined

  constructor(private readonly session: Session) {}

  /** Follows the runs of a filter until `close`. The list of the same filter stays as it is. */
  open(filter: RunFilter): void {
    // The end of a moving range is now: it must not start the list over.
    const key = JSON.stringify({
      ...filter,
      fromMs: filter.fromMs === null ? null : Math.floor(filter.fromMs / 60_000),
    })
    const isSame = key === this.filterKey
    this.filter = filter
    this.filterKey = key
    this.follow(filter, isSame ? this.resumeAfter : undefined)
    if (!isSame) void this.reload()
  }

  close(): void {
    this.resumeAfter = this.subscription?.cursor()
    this.subscription?.stop()
    clearTimeout(this.reloadTimer)
  }

  async reload(): Promise<void> {
    this.loading.abort()
    this.loading = new AbortController()
    const { signal } = this.loading
    this.isLoading.value = true
    try {
      await this.read(null, signal)
    } catch (error) {
      if (!signal.aborted) this.fail(error)
    }
  }

  async loadMore(): Promise<void> {
    if (this.isLoading.value || this.cursor === null) return
    this.isLoading.value = true
    const { signal } = this.loading
    try {
      await this.read(this.cursor, signal)
    } catch (error) {
      if (!signal.aborted) this.fail(error)
    }
  }

  private async read(cursor: string | null, signal: AbortSignal): Promise<void> {
    const filter = this.filter as RunFilter
    const { items, next_cursor } = isPlain(filter)
      ? await this.session.api.get<Listed<Run>>(
          '/api/v1/runs',
          { ...queryOf(filter), cursor, limit: PAGE_LIMIT },
          signal,
        )
      : { items: await findRuns(this.session.queries, filter, signal), next_cursor: null }
    if (signal.aborted) return
    batch(() => {
      this.runs.value = cursor === null ? items : [...this.runs.value, ...items]
      if (cursor === null) this.newIds.value = new Set()
      this.cursor = next_cursor
      this.hasMore.value = next_cursor !== null
      this.isLoading.value = false
      this.problem.value = null
    })
  }

  /** Free text and sorting show this many at most. */
  get isCut(): boolean {
    return this.filter !== null && !isPlain(this.filter) && this.runs.value.length === FOUND_MAX
  }

  private fail(error: unknown): void {
    this.problem.value = failureOf(error)
    this.isLoading.value = false
  }

  private follow(filter: RunFilter, after: string | undefined): void {
    this.subscription?.stop()
    const wanted = {
      kind: 'run',
      ...(filter.agent && { agent_id: filter.agent }),
      ...(filter.tag && { tag: filter.tag }),
    }
    this.subscription = this.session.feed.subscribe(
      wanted,
      {
        onItems: (items, skipped) => {
          this.take(items)
          if (skipped > 0) this.reloadSoon(RELOAD_MS)
        },
        onGap: () => void this.reload(),
      },
      { after, maxPerSecond: UPDATES_PER_SECOND_MAX },
    )
  }

  /** Only what is listed is read again: rows of new runs still wait for the user. */
  private reloadSoon(ms: number): void {
    if (this.reloadTimer !== undefined) return
    this.reloadTimer = setTimeout(() => {
      this.reloadTimer = undefined
      if (this.newIds.value.size === 0 && !document.hidden) void this.reload()
    }, ms)
  }

  private take(items: readonly Activity[]): void {
    const filter = this.filter as RunFilter
    const changed = new Map(items.flatMap(({ run }) => (run === undefined ? [] : [[run.run_id, run]])))
    const listed = new Set(this.runs.value.map(({ run_id }) => run_id))
    const isNewer = (run: RunSummary) => run.created_at >= (this.runs.value[0]?.created_at ?? '')
    const added = isPlain(filter)
      ? [...changed.values()].filter((run) => !listed.has(run.run_id) && isNewer(run) && matches(run, filter))
      : []
    batch(() => {
      if (this.runs.value.some(({ run_id }) => changed.has(run_id)))
        this.runs.value = this.runs.value.map((run) => changed.get(run.run_id) ?? run)
      if (added.length > 0) this.newIds.value = new Set([...this.newIds.value, ...added.map(({ run_id }) => run_id)])
    })
    // Nothing can move in an empty list.
    if (added.length > 0 && this.runs.value.length === 0) void this.reload()
  }
}

function queryOf(filter: RunFilter) {
  const timestamp = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
  return {
    status: filter.status,
    agent_id: filter.agent,
    trigger_type: filter.trigger,
    tag: filter.tag,
    external_run_id: filter.external,
    session_id: filter.session,
    parent_run_id: filter.parent,
    from: timestamp(filter.fromMs),
    to: timestamp(filter.toMs),
  }
}
