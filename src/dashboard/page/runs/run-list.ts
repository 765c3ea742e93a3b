import { batch, signal } from '@preact/signals'
import type { Session } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import type { Subscription } from '../data/feed.ts'
import { LiveResource } from '../data/loading.ts'
import type { Activity, ListedRun, RunSummary } from '../data/records.ts'
import { RunDetails, readModels, readTexts, textsOf } from './details.ts'
import { FOUND_MAX, findRuns, isPlain, matches, queryOf, type RunFilter } from './filters.ts'
import { RunChoice } from './run-choice.ts'
import { Places } from './search-places.ts'

const PAGE_LIMIT = 50
/** Runs are updated from the feed; a busier workspace is sampled, and read again. */
const UPDATES_PER_SECOND_MAX = 200
const RELOAD_MS = 15_000

/**
 * The runs that a filter selects. Changes of listed runs appear at once; new runs are collected until the user asks for
 * them, so that nothing moves under the pointer. It outlives the view, so that the way back leads to the same list.
 */
export class RunList {
  readonly runs: LiveResource<readonly RunSummary[]>
  /** Started since the list was read. */
  readonly newIds = signal<ReadonlySet<string>>(new Set())
  readonly hasMore = signal(false)
  readonly choice = new RunChoice()
  /** Where runs match a search. */
  readonly places = new Places()
  readonly details
  /** The run that was opened last. */
  lastOpened: string | null = null
  scrollTop = 0
  private filter: RunFilter | null = null
  private cursor: string | null = null
  private subscription: Subscription | undefined
  private resumeAfter: string | undefined

  constructor(private readonly session: Session) {
    const { queries, signal } = session
    this.details = {
      texts: new RunDetails(readTexts, queries, signal),
      models: new RunDetails(readModels, queries, signal),
    }
    const isWanted = () => this.subscription !== undefined && this.newIds.value.size === 0 && !document.hidden
    this.runs = new LiveResource<readonly RunSummary[]>(
      [],
      { load: (signal) => this.read(null, signal), isWanted },
      session.signal,
    )
  }

  /** Follows the runs of a filter until `close`. The list of the same filter stays as it is. */
  open(filter: RunFilter): void {
    this.filter = filter
    // The end of a moving range is now: it must not start the list over.
    const fromMs = filter.fromMs === null ? null : Math.floor(filter.fromMs / 60_000)
    const isNew = this.runs.open(JSON.stringify({ ...filter, fromMs }))
    if (isNew) this.choice.clear()
    this.follow(filter, isNew ? undefined : this.resumeAfter)
  }

  close(): void {
    this.resumeAfter = this.subscription?.cursor()
    this.subscription?.stop()
    this.subscription = undefined
  }

  reload(): Promise<void> {
    return this.runs.load()
  }

  async loadMore(): Promise<void> {
    const { cursor } = this
    if (this.runs.isLoading.value || cursor === null) return
    await this.runs.load(async (signal) => {
      const older = await this.read(cursor, signal)
      return [...this.runs.value, ...older]
    })
  }

  /** Whether runs are left out: orders other than newest first show a limited number. */
  get isCut(): boolean {
    return this.filter !== null && !isPlain(this.filter) && this.runs.value.length === FOUND_MAX
  }

  /** Reads a page of the list. @param cursor null: the first page */
  private async read(cursor: string | null, signal: AbortSignal): Promise<readonly RunSummary[]> {
    const { api, queries } = this.session
    const filter = this.filter as RunFilter
    const { items, next_cursor }: Listed<RunSummary> = isPlain(filter)
      ? this.withoutPreviews(
          this.places.take(
            await api.get('/api/v1/runs', { ...queryOf(filter), cursor, limit: PAGE_LIMIT }, signal),
            cursor === null,
          ),
        )
      : { items: await findRuns(queries, filter, signal), next_cursor: null }
    signal.throwIfAborted()
    if (cursor === null) this.newIds.value = new Set()
    this.cursor = next_cursor
    this.hasMore.value = next_cursor !== null
    return items
  }

  /** A row of the list is what the feed says of its run, too: the previews are kept beside it. */
  private withoutPreviews({ items, next_cursor }: Listed<ListedRun>): Listed<RunSummary> {
    this.details.texts.take(items.map(textsOf))
    const rows = items.map(({ input_preview: _input, output_preview: _output, match: _match, ...run }) => run)
    return { items: rows, next_cursor }
  }

  private follow(filter: RunFilter, after: string | undefined): void {
    this.subscription?.stop()
    const wanted = {
      kind: 'run',
      ...(filter.agent && { agent_id: filter.agent }),
      ...(filter.tag && { tag: filter.tag }),
    }
    const onItems = (items: readonly Activity[], skipped: number) => {
      this.take(items)
      // Only what is listed is read again: rows of new runs still wait for the user.
      if (skipped > 0) this.runs.loadSoon(RELOAD_MS)
    }
    this.subscription = this.session.feed.subscribe(
      wanted,
      { onItems, onGap: () => void this.reload() },
      { after, maxPerSecond: UPDATES_PER_SECOND_MAX },
    )
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
      this.runs.update((runs) => {
        const isChanged = runs.some(({ run_id }) => changed.has(run_id))
        return isChanged ? runs.map((run) => changed.get(run.run_id) ?? run) : runs
      })
      if (added.length > 0) this.newIds.value = new Set([...this.newIds.value, ...added.map(({ run_id }) => run_id)])
    })
    // Nothing can move in an empty list.
    if (added.length > 0 && this.runs.value.length === 0) void this.reload()
  }
}
