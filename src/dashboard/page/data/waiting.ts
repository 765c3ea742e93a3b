import { computed, signal } from '@preact/signals'
import type { Api } from './api.ts'
import type { Feed } from './feed.ts'
import { listPauses, newestFirst, type Pause, type PauseKind, readPause } from './pause.ts'

/** A pause that a link names. */
export interface NamedPause {
  readonly kind: PauseKind
  readonly id: string
}

/** Decided items that remain listed, so that the user sees the outcome. */
const DECIDED_SHOWN_MAX = 20
/** A busy workspace must not cause constant reads. */
const REFRESH_MS_MIN = 5_000
/** Decisions of other people are noticed within this time. */
const REFRESH_MS = 30_000

/**
 * What waits for a person: everything pending, and items that the user opened by link, works on or has decided, which
 * remain listed with their outcome.
 */
export class Waiting {
  readonly pending = signal<readonly Pause[]>([])
  readonly hasMore = signal(false)
  readonly isLoaded = signal(false)
  /** The link names an item that does not exist. */
  readonly isMissing = signal(false)
  readonly shown = computed(() => {
    const all = new Map(this.pending.value.map((pause) => [pause.id, pause]))
    for (const pause of this.watched.value.values()) if ('status' in pause) all.set(pause.id, pause)
    return [...all.values()].sort(newestFirst)
  })
  private readonly watched = signal<ReadonlyMap<string, Pause | NamedPause>>(new Map())
  private timer: ReturnType<typeof setTimeout> | undefined
  private refreshing = new AbortController()
  /** The last refresh that the feed has caused. */
  private noticedAtMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly api: Api,
    feed: Feed,
    signal: AbortSignal,
  ) {
    const waits = { kind: 'run', status: ['awaiting_approval', 'awaiting_input'] }
    feed.subscribe(waits, { onItems: () => this.refreshSoon(), onGap: () => this.refreshSoon() }, { maxPerSecond: 1 })
    signal.addEventListener('abort', () => clearTimeout(this.timer))
    void this.refresh()
  }

  /** Lists an item, also after it has been decided. */
  watch(pause: Pause): void {
    this.watched.value = new Map(this.watched.value).set(pause.id, pause)
    if (pause.status !== 'pending') this.pending.value = this.pending.value.filter(({ id }) => id !== pause.id)
  }

  /** The user opens the view. @param named the item that the link names */
  async openView(named: NamedPause | null): Promise<void> {
    const kept = [...this.watched.value].filter(([, pause]) => 'status' in pause && !isDecided(pause))
    this.watched.value = new Map(kept)
    if (named !== null && !this.watched.value.has(named.id))
      this.watched.value = new Map(this.watched.value).set(named.id, named)
    this.isMissing.value = false
    await this.refresh()
  }

  async refresh(): Promise<void> {
    clearTimeout(this.timer)
    // A later refresh knows better: what an earlier one lists may have been decided.
    this.refreshing.abort()
    this.refreshing = new AbortController()
    const { signal } = this.refreshing
    try {
      const { pauses, hasMore } = await listPauses(this.api, { status: 'pending' }, signal)
      this.pending.value = pauses.filter(({ id }) => !isDecided(this.watched.value.get(id)))
      this.hasMore.value = hasMore
      this.isLoaded.value = true
      await this.readWatched()
    } catch {
      // The session shows what is wrong; the next refresh tries again.
    }
    if (signal.aborted) return
    this.timer = setTimeout(() => void this.refresh(), REFRESH_MS)
  }

  /** Reads watched items that are not pending: they were decided, are older, or do not exist. */
  private async readWatched(): Promise<void> {
    const listed = new Map(this.pending.value.map((pause) => [pause.id, pause]))
    // Decided by the user, or no longer watched, in the meantime.
    const isOpen = (id: string) => this.watched.value.has(id) && !isDecided(this.watched.value.get(id))
    for (const [id, { kind }] of this.watched.value) {
      if (!isOpen(id)) continue
      const pause = listed.get(id) ?? (await readPause(this.api, kind, id))
      if (!isOpen(id)) continue
      const next = new Map(this.watched.value)
      if (pause !== null) next.set(id, pause)
      else this.isMissing.value = next.delete(id)
      this.watched.value = next
    }
    const decided = [...this.watched.value].filter(([, pause]) => isDecided(pause)).map(([id]) => id)
    if (decided.length <= DECIDED_SHOWN_MAX) return
    const next = new Map(this.watched.value)
    for (const id of decided.slice(0, -DECIDED_SHOWN_MAX)) next.delete(id)
    this.watched.value = next
  }

  private refreshSoon(): void {
    clearTimeout(this.timer)
    const waitMs = Math.max(0, this.noticedAtMs + REFRESH_MS_MIN - performance.now())
    this.timer = setTimeout(() => {
      this.noticedAtMs = performance.now()
      void this.refresh()
    }, waitMs)
  }
}

function isDecided(pause: Pause | NamedPause | undefined): boolean {
  return pause !== undefined && 'status' in pause && pause.status !== 'pending'
}
