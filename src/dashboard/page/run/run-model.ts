import { computed, signal } from '@preact/signals'
import type { Session } from '../context/session.ts'
import { ApiFailure, type Listed } from '../data/api.ts'
import type { Subscription } from '../data/feed.ts'
import { type Activity, type Event, isLive, type Run, type RunSummary, type Task } from '../data/records.ts'
import { failureOf } from '../data/use-load.ts'
import { EventLog } from './event-log.ts'
import { childRunOf } from './payload.ts'
import { treeOrder } from './span-tree.ts'
import { isSpanEvent, SPAN_EVENT_TYPES, spansOf } from './spans.ts'

const LIST_LIMIT = 200
/** More tasks, child runs or calls than this are not drawn. */
const LISTED_MAX = 2_000
/** Without a connection to the feed, the run is read after this time, and again when there is one. */
const UNCONNECTED_MS = 500
/** A run that has just ended is read once more for its output. */
const RELOAD_MS = 150

/** One run with everything below it, kept up to date by the feed. */
export class RunModel {
  readonly run = signal<Run | null>(null)
  readonly isMissing = signal(false)
  /** Everything that was reported before is there. */
  readonly isLoaded = signal(false)
  readonly problem = signal<ApiFailure | null>(null)
  readonly tasks = signal<ReadonlyMap<string, Task>>(new Map())
  readonly children = signal<ReadonlyMap<string, RunSummary>>(new Map())
  readonly spanEvents = signal<readonly Event[]>([])
  readonly log: EventLog
  /** The rows of the waterfall. */
  readonly rows = computed(() => {
    if (this.run.value === null) return []
    return treeOrder(
      spansOf({
        run: this.run.value,
        tasks: [...this.tasks.value.values()],
        children: [...this.children.value.values()],
        events: this.spanEvents.value,
      }),
    )
  })
  private readonly closing = new AbortController()
  private readonly subscriptions: Subscription[] = []
  private loading = Promise.resolve()
  private reloadTimer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly session: Session,
    readonly runId: string,
  ) {
    this.log = new EventLog(session.api, runId, this.closing.signal)
    // Read after the subscription has started, so that nothing is missed in between.
    const timer = setTimeout(() => void this.load(), UNCONNECTED_MS)
    this.closing.signal.addEventListener('abort', () => clearTimeout(timer))
    this.follow({ run_id: runId }, () => {
      clearTimeout(timer)
      void this.load()
    })
  }

  close(): void {
    this.closing.abort()
    clearTimeout(this.reloadTimer)
    for (const subscription of this.subscriptions) subscription.stop()
  }

  /** Reads everything, after an earlier call has done so. */
  load(): Promise<void> {
    this.loading = this.loading.then(() => this.readAll())
    return this.loading
  }

  private async readAll(): Promise<void> {
    const { signal } = this.closing
    try {
      this.run.value = await this.session.api.get<Run>(this.path(), {}, signal)
      await Promise.all([this.loadTasks(), this.loadChildren(), this.loadEvents(this.run.value)])
      this.problem.value = null
      this.isLoaded.value = true
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ApiFailure && error.code === 'NOT_FOUND') {
        this.isMissing.value = true
        return
      }
      this.problem.value = failureOf(error)
    }
  }

  /** Reads the run and its child runs again. */
  async reload(): Promise<void> {
    const { signal } = this.closing
    if (this.run.value === null) return this.load()
    try {
      this.run.value = await this.session.api.get<Run>(this.path(), {}, signal)
      await this.loadChildren()
    } catch (error) {
      if (!signal.aborted) this.problem.value = failureOf(error)
    }
  }

  private reloadSoon(ms = RELOAD_MS): void {
    clearTimeout(this.reloadTimer)
    this.reloadTimer = setTimeout(() => void this.reload(), ms)
  }

  private follow(filter: object, onStart?: () => void): void {
    const onItems = (items: readonly Activity[]) => this.take(items)
    const handlers = { onStart, onItems, onGap: () => void this.load() }
    this.subscriptions.push(this.session.feed.subscribe(filter, handlers))
  }

  private take(items: readonly Activity[]): void {
    const own = items.filter(({ run_id }) => run_id === this.runId)
    const events = own.flatMap(({ event }) => (event === undefined ? [] : [event]))
    const tasks = own.flatMap(({ task }) => (task === undefined ? [] : [task]))
    if (events.length > 0) this.takeEvents(events)
    if (tasks.length > 0)
      this.tasks.value = new Map([...this.tasks.value, ...tasks.map((task) => [task.id, task] as const)])
    for (const { run } of own) if (run !== undefined) this.takeRun(run)
    const children = items.flatMap(({ run, run_id }) => (run !== undefined && run_id !== this.runId ? [run] : []))
    if (children.length > 0) this.addChildren(children)
  }

  private takeEvents(events: readonly Event[]): void {
    this.log.add(events)
    const last = this.spanEvents.value.at(-1)?.seq ?? 0
    const added = events.filter((event) => isSpanEvent(event) && event.seq > last)
    if (added.length > 0) this.spanEvents.value = [...this.spanEvents.value, ...added]
    const { run } = this
    if (run.value !== null && isLive(run.value))
      run.value = { ...run.value, event_count: Math.max(run.value.event_count, this.log.events.value.length) }
    const isNewChild = (event: Event) => {
      const id = childRunOf(event.payload)
      return id !== null && !this.children.value.has(id)
    }
    if (events.some(isNewChild)) this.reloadSoon()
  }

  private takeRun(summary: RunSummary): void {
    const { run } = this
    if (run.value === null) return
    const hadEnded = !isLive(run.value)
    run.value = { ...run.value, ...summary }
    // The feed leaves out the output.
    if (!isLive(summary) && !hadEnded) this.reloadSoon()
  }

  private async loadTasks(): Promise<void> {
    const tasks = await this.listAll<Task>('tasks')
    // What the feed has brought in the meantime is newer.
    this.tasks.value = new Map([...tasks.map((task) => [task.id, task] as const), ...this.tasks.value])
  }

  private async loadChildren(): Promise<void> {
    this.addChildren(await this.listAll<Run>('children'))
  }

  private addChildren(children: readonly RunSummary[]): void {
    const added = children.filter((child) => !this.children.value.has(child.run_id) && isLive(child))
    this.children.value = new Map([...this.children.value, ...children.map((child) => [child.run_id, child] as const)])
    if (added.length > 0) this.follow({ kind: 'run', run_id: added.slice(0, 100).map(({ run_id }) => run_id) })
  }

  private async loadEvents({ event_count }: Run): Promise<void> {
    await this.log.load(event_count)
    const isWhole = this.log.events.value.every(({ payload }) => payload !== undefined)
    const events = isWhole
      ? (this.log.events.value as readonly Event[]).filter(isSpanEvent)
      : (await Promise.all(SPAN_EVENT_TYPES.map((type) => this.log.ofType(type, LISTED_MAX)))).flat()
    const all = new Map([...events, ...this.spanEvents.value].map((event) => [event.seq, event]))
    this.spanEvents.value = [...all.values()].sort((a, b) => a.seq - b.seq)
  }

  private async listAll<T>(what: string): Promise<T[]> {
    const found: T[] = []
    for (let cursor: string | null | undefined; cursor !== null && found.length < LISTED_MAX; ) {
      const query = { limit: LIST_LIMIT, cursor }
      const page: Listed<T> = await this.session.api.get(`${this.path()}/${what}`, query, this.closing.signal)
      found.push(...page.items)
      cursor = page.next_cursor
    }
    return found
  }

  private path(): string {
    return `/api/v1/runs/${this.runId}`
  }
}
