import { batch, computed } from '@preact/signals'
import { childRunOf } from '../../../base/conventions/payload.ts'
import type { Session } from '../context/session.ts'
import { listAll } from '../data/api.ts'
import type { Subscription } from '../data/feed.ts'
import { LiveResource, type Source } from '../data/loading.ts'
import { type Activity, type Event, isLive, type Run, type RunSummary, type Score, type Task } from '../data/records.ts'
import { BAR_EVENT_TYPES, barsOf, isBarEvent, type TreeBar } from './bars.ts'
import { EventLog } from './event-log.ts'
import { treeOrder } from './tree.ts'

/** More tasks, child runs or calls than this are not drawn. */
const LISTED_MAX = 2_000
/** Nor are more scores than this listed. */
export const SCORES_LISTED_MAX = 1_000
/** Without a connection to the feed, the run is read after this time, and again when there is one. */
const UNCONNECTED_MS = 500
/** A run that has just ended is read once more for its output. */
const RELOAD_MS = 150

/** Activity from the feed is shown after this delay; in a run of at least `LARGE_MIN` steps after the longer one. */
const DELAY_MS = 30
const LARGE_MIN = 500
const LARGE_DELAY_MS = 400

/** One run with everything below it, kept up to date by the feed. */
export class RunModel {
  private readonly closing = new AbortController()
  readonly run = this.resource<Run | null>(null, (signal) => this.session.api.get(this.path, {}, signal))
  readonly tasks = this.resource<ReadonlyMap<string, Task>>(new Map(), async (signal) => {
    const { items } = await listAll<Task>(this.session.api, `${this.path}/tasks`, LISTED_MAX, signal)
    return byId(items, ({ id }) => id)
  })
  readonly children = this.resource<ReadonlyMap<string, RunSummary>>(new Map(), async (signal) => {
    const { items } = await listAll<RunSummary>(this.session.api, `${this.path}/children`, LISTED_MAX, signal)
    this.followChildren(items)
    return byId(items, ({ run_id }) => run_id)
  })
  readonly barEvents = this.resource<readonly Event[]>([], () => this.readBarEvents())
  /** By their ids, the latest last. */
  readonly scores = this.resource<ReadonlyMap<string, Score>>(new Map(), async (signal) => {
    const { items } = await listAll<Score>(this.session.api, `${this.path}/scores`, SCORES_LISTED_MAX, signal)
    return byId(items.toReversed(), ({ id }) => id)
  })
  readonly log: EventLog
  readonly isMissing = computed(() => this.run.problem.value?.code === 'NOT_FOUND')
  /** Everything that was reported before is there. */
  readonly isLoaded = computed(() => this.parts.every(({ isLoaded }) => isLoaded.value))
  readonly problem = computed(() => {
    const problems = [...this.parts, this.log.events, this.scores].map(({ problem }) => problem.value)
    return problems.find((each) => each !== null) ?? null
  })
  /** The steps, each below the one that it is part of. */
  readonly rows = computed((): readonly TreeBar[] => {
    if (this.run.value === null) return []
    return treeOrder(
      barsOf({
        run: this.run.value,
        tasks: [...this.tasks.value.values()],
        children: [...this.children.value.values()],
        events: this.barEvents.value,
      }),
    )
  })
  private readonly parts = [this.run, this.tasks, this.children, this.barEvents]
  private readonly subscriptions: Subscription[] = []
  /** Activity from the feed that is not shown yet. */
  private readonly arrived: Activity[] = []
  private timer: ReturnType<typeof setTimeout> | undefined
  /** The child runs whose changes the feed brings. */
  private readonly followed = new Set<string>()

  constructor(
    private readonly session: Session,
    readonly runId: string,
  ) {
    this.log = new EventLog(session, runId, this.closing.signal)
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
    clearTimeout(this.timer)
    for (const subscription of this.subscriptions) subscription.stop()
  }

  /** Reads everything. */
  async load(): Promise<void> {
    const reading = this.run.load()
    const events = this.log.load(reading.then(() => this.run.value?.event_count ?? null))
    await reading
    if (this.run.value === null) return
    const steps = [this.tasks.load(), this.children.load(), events.then(() => this.barEvents.load())]
    await Promise.all([...steps, this.scores.load()])
  }

  /** Reads the run and its child runs again. */
  async reload(): Promise<void> {
    await Promise.all([this.run.load(), this.children.load()])
  }

  /** Reads the scores again. */
  readonly reloadScores = (): Promise<void> => this.scores.load()

  private resource<T>(initial: T, load: Source<T>['load']): LiveResource<T> {
    return new LiveResource(initial, { load }, this.closing.signal)
  }

  private follow(filter: object, onStart?: () => void): void {
    const onItems = (items: readonly Activity[]) => this.takeSoon(items)
    const onGap = () => {
      // Activity from before the gap is older than what is read now.
      this.takeNow()
      void this.load()
    }
    const handlers = { onStart, onItems, onGap }
    this.subscriptions.push(this.session.feed.subscribe(filter, handlers))
  }

  private followChildren(children: readonly RunSummary[]): void {
    const added = children.filter((child) => !this.followed.has(child.run_id) && isLive(child)).slice(0, 100)
    for (const { run_id } of added) this.followed.add(run_id)
    if (added.length > 0) this.follow({ kind: 'run', run_id: added.map(({ run_id }) => run_id) })
  }

  /** The tree is drawn anew for all that arrives within a short time: less often if it is large. */
  private takeSoon(items: readonly Activity[]): void {
    this.arrived.push(...items)
    this.timer ??= setTimeout(() => this.takeNow(), this.barEvents.value.length > LARGE_MIN ? LARGE_DELAY_MS : DELAY_MS)
  }

  private takeNow(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    batch(() => this.take(this.arrived.splice(0)))
  }

  private take(items: readonly Activity[]): void {
    const own = items.filter(({ run_id }) => run_id === this.runId)
    const events = own.flatMap(({ event }) => event ?? [])
    const tasks = own.flatMap(({ task }) => task ?? [])
    if (events.length > 0) this.takeEvents(events)
    if (tasks.length > 0) this.tasks.update((known) => new Map([...known, ...byId(tasks, ({ id }) => id)]))
    const scores = own.flatMap(({ score }) => score ?? [])
    if (scores.length > 0) this.scores.update((known) => withScores(known, scores))
    for (const { run } of own) if (run !== undefined) this.takeRun(run)
    const children = items.flatMap(({ run, run_id }) => (run !== undefined && run_id !== this.runId ? [run] : []))
    if (children.length === 0) return
    this.children.update((known) => new Map([...known, ...byId(children, ({ run_id }) => run_id)]))
  }

  private takeEvents(events: readonly Event[]): void {
    this.log.add(events)
    this.barEvents.update((known) => {
      const last = known.at(-1)?.seq ?? 0
      const added = events.filter((event) => isBarEvent(event) && event.seq > last)
      return added.length === 0 ? known : [...known, ...added]
    })
    const count = this.log.events.value.length
    this.run.update((run) =>
      run !== null && isLive(run) ? { ...run, event_count: Math.max(run.event_count, count) } : run,
    )
    const isNewChild = (event: Event) => {
      const id = childRunOf(event.payload)
      return id !== null && !this.children.value.has(id)
    }
    if (events.some(isNewChild)) this.children.loadSoon(RELOAD_MS)
  }

  private takeRun(summary: RunSummary): void {
    const run = this.run.value
    this.run.update((known) => known && { ...known, ...summary })
    // The feed leaves out the output.
    if (run !== null && isLive(run) && !isLive(summary)) this.run.loadSoon(RELOAD_MS)
  }

  private async readBarEvents(): Promise<readonly Event[]> {
    const events = this.log.events.value
    if (events.every(({ payload }) => payload !== undefined)) return (events as readonly Event[]).filter(isBarEvent)
    const found = await Promise.all(BAR_EVENT_TYPES.map((type) => this.log.ofType(type, LISTED_MAX)))
    return found.flat().sort((a, b) => a.seq - b.seq)
  }

  private get path(): string {
    return `/api/v1/runs/${this.runId}`
  }
}

function byId<T>(items: readonly T[], idOf: (item: T) => string): ReadonlyMap<string, T> {
  return new Map(items.map((item) => [idOf(item), item]))
}

/** The newer scores replace those with the same ids; of very many, the oldest are left out. */
function withScores(known: ReadonlyMap<string, Score>, added: readonly Score[]): ReadonlyMap<string, Score> {
  const all = new Map(known)
  for (const score of added) {
    all.delete(score.id)
    all.set(score.id, score)
  }
  return all.size <= SCORES_LISTED_MAX ? all : new Map([...all].slice(-SCORES_LISTED_MAX))
}
