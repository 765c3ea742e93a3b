import { computed, signal } from '@preact/signals'
import { type Api, ApiFailure, type Listed } from './api.ts'
import type { Feed } from './feed.ts'
import { LiveResource } from './loading.ts'
import type { Schemas } from './records.ts'

/** A pause that a link names. */
export interface NamedPause {
  readonly kind: PauseKind
  readonly id: string
}

/** Decided items that remain listed, so that the user sees the outcome. */
const DECIDED_SHOWN_MAX = 20
/** A busy workspace must not cause constant reads. */
const REFRESH_MS_MIN = 5_000
/** Decisions made elsewhere are noticed within this time. */
const REFRESH_MS = 30_000

/**
 * What waits for a person: everything pending, and items that the user opened by link, works on or has decided, which
 * remain listed with their outcome.
 */
export class Waiting {
  readonly hasMore = signal(false)
  /** The link names an item that does not exist. */
  readonly isMissing = signal(false)
  readonly pending: LiveResource<readonly Pause[]>
  readonly shown = computed(() => {
    const all = new Map(this.pending.value.map((pause) => [pause.id, pause]))
    for (const pause of this.watched.value.values()) if ('status' in pause) all.set(pause.id, pause)
    return [...all.values()].sort(newestFirst)
  })
  private readonly watched = signal<ReadonlyMap<string, Pause | NamedPause>>(new Map())
  /** When the last refresh that the feed has caused is, or was, due. */
  private refreshDueMs = Number.NEGATIVE_INFINITY

  /** @param closing ends all reads */
  constructor(
    private readonly api: Api,
    feed: Feed,
    closing: AbortSignal,
  ) {
    this.pending = new LiveResource<readonly Pause[]>(
      [],
      { load: (signal) => this.read(signal), everyMs: () => REFRESH_MS },
      closing,
    )
    const notice = () => this.refreshSoon()
    const filter = { kind: 'run', status: ['awaiting_approval', 'awaiting_input'] }
    feed.subscribe(filter, { onItems: notice, onGap: notice }, { maxPerSecond: 1 })
    void this.pending.load()
  }

  /** Lists an item, also after it has been decided. */
  watch(pause: Pause): void {
    this.watched.value = new Map(this.watched.value).set(pause.id, pause)
    if (pause.status !== 'pending') this.pending.update((pending) => pending.filter(({ id }) => id !== pause.id))
  }

  /** The user opens the view. @param named the item that the link names */
  openView(named: NamedPause | null): void {
    const kept = [...this.watched.value].filter(([, pause]) => 'status' in pause && !isDecided(pause))
    this.watched.value = new Map(kept)
    if (named !== null && !this.watched.value.has(named.id))
      this.watched.value = new Map(this.watched.value).set(named.id, named)
    this.isMissing.value = false
    void this.pending.load()
  }

  private async read(signal: AbortSignal): Promise<readonly Pause[]> {
    const query = { status: 'pending', limit: LISTED_MAX }
    const list = (kind: PauseKind) => this.api.get<Listed<PauseRecord>>(`/api/v1/${kind}`, query, signal)
    const [approvals, requests] = await Promise.all([list('approvals'), list('input-requests')])
    this.hasMore.value = approvals.next_cursor !== null || requests.next_cursor !== null
    const pauses = [...approvals.items, ...requests.items].map(pauseOf).sort(newestFirst)
    await this.readWatched(pauses)
    return pauses
  }

  /** Reads watched items that are not pending: they were decided, are older, or do not exist. */
  private async readWatched(pending: readonly Pause[]): Promise<void> {
    const listed = new Map(pending.map((pause) => [pause.id, pause]))
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
    const nowMs = performance.now()
    if (nowMs >= this.refreshDueMs) this.refreshDueMs = Math.max(nowMs, this.refreshDueMs + REFRESH_MS_MIN)
    this.pending.loadSoon(this.refreshDueMs - nowMs)
  }
}

function isDecided(pause: Pause | NamedPause | undefined): boolean {
  return pause !== undefined && 'status' in pause && pause.status !== 'pending'
}

/** What hosted runs wait for. Kinds are named as in the URLs of the API and of this page. */
export type Pause = Approval | InputRequest
export type Approval = Schemas['Approval'] & { readonly kind: 'approvals'; readonly id: string }
export type InputRequest = Schemas['InputRequest'] & { readonly kind: 'input-requests'; readonly id: string }
type PauseKind = Pause['kind']
/** A pause in the record of a run. */
export type PendingPause = Schemas['PendingPause']

type PauseRecord = Schemas['Approval'] | Schemas['InputRequest']

/** Per kind; there may be more. */
const LISTED_MAX = 50

/** Null if it does not exist: links are shared and may be outdated. @throws ApiFailure */
export async function readPause(api: Api, kind: PauseKind, id: string): Promise<Pause | null> {
  try {
    return pauseOf(await api.get(`/api/v1/${kind}/${id}`))
  } catch (error) {
    if (error instanceof ApiFailure && error.code === 'NOT_FOUND') return null
    throw error
  }
}

function newestFirst(a: Pause, b: Pause): number {
  return b.created_at.localeCompare(a.created_at) || b.id.localeCompare(a.id)
}

/** The link to the form that decides it. */
export function hrefOfPause(kind: PauseKind, id: string): string {
  return `#/waiting/${kind}/${id}`
}

export function kindOfPending({ type }: Pick<PendingPause, 'type'>): PauseKind {
  return type === 'approval' ? 'approvals' : 'input-requests'
}

export function isPauseKind(text: string | undefined): text is PauseKind {
  return text === 'approvals' || text === 'input-requests'
}

function pauseOf(record: PauseRecord): Pause {
  return 'approval_id' in record
    ? { ...record, kind: 'approvals', id: record.approval_id }
    : { ...record, kind: 'input-requests', id: record.request_id }
}
