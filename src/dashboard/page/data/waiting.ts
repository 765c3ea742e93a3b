import { signal } from '@preact/signals'
import { type Api, ApiFailure, listAll } from './api.ts'
import type { Feed } from './feed.ts'
import { LiveResource } from './loading.ts'
import type { Schemas } from './records.ts'

/** A pause that a link names. */
export interface NamedPause {
  readonly kind: PauseKind
  readonly id: string
}

/** At most this many are listed. */
export const LISTED_MAX = 1_000
/** A busy workspace must not cause constant reads. */
const REFRESH_MS_MIN = 5_000
/** Decisions made elsewhere are noticed within this time. */
const REFRESH_MS = 30_000
const READ_KEPT_MAX = 500

/** What waits for a person, and what this page has read and decided. */
export class Waiting {
  /** The newest first. */
  readonly pending: LiveResource<readonly PauseLine[]>
  readonly hasMore = signal(false)
  /** Pauses as they were last read, by id. */
  readonly known = signal<ReadonlyMap<string, Pause>>(new Map())
  /** When the last refresh that the feed has caused is, or was, due. */
  private refreshDueMs = Number.NEGATIVE_INFINITY

  /** @param closing ends all reads */
  constructor(
    private readonly api: Api,
    feed: Feed,
    closing: AbortSignal,
  ) {
    this.pending = new LiveResource<readonly PauseLine[]>(
      [],
      { load: (signal) => this.readPending(signal), everyMs: () => REFRESH_MS },
      closing,
    )
    const notice = () => this.refreshSoon()
    const filter = { kind: 'run', status: ['awaiting_approval', 'awaiting_input'] }
    feed.subscribe(filter, { onItems: notice, onGap: notice }, { maxPerSecond: 1 })
    void this.pending.load()
  }

  /** Null if it does not exist: links are shared and may be outdated. @throws ApiFailure */
  async read(kind: PauseKind, id: string): Promise<Pause | null> {
    try {
      return this.put(pauseOf(await this.api.get(`/api/v1/${kind}/${id}`)))
    } catch (error) {
      if (error instanceof ApiFailure && error.code === 'NOT_FOUND') return null
      throw error
    }
  }

  /** Stores a decision. @throws ApiFailure, also if someone else has decided: then that is known afterwards */
  async decide({ kind, id }: NamedPause, action: Action, body: object): Promise<void> {
    try {
      // In the background, because the run may continue for a long time; its page shows the progress.
      await this.api.post(`/api/v1/${kind}/${id}/${action}`, { ...body, background: true })
    } finally {
      // If this fails, the next refresh notices the decision.
      await this.read(kind, id).catch(() => null)
    }
  }

  private put(pause: Pause): Pause {
    const before = this.known.value.get(pause.id)
    // A decision is final, so a response that lacks it is outdated.
    if (before !== undefined && before.status !== 'pending' && pause.status === 'pending') return before
    const next = new Map(this.known.value)
    next.delete(pause.id)
    next.set(pause.id, pause)
    for (const id of next.keys()) {
      if (next.size <= READ_KEPT_MAX) break
      next.delete(id)
    }
    this.known.value = next
    if (pause.status !== 'pending') this.pending.update((pending) => pending.filter(({ id }) => id !== pause.id))
    return pause
  }

  private async readPending(signal: AbortSignal): Promise<readonly PauseLine[]> {
    const { items, isPartial } = await listAll<Schemas['PauseSummary']>(this.api, '/api/v1/pauses', LISTED_MAX, signal)
    this.hasMore.value = isPartial
    return items.map(lineOf)
  }

  private refreshSoon(): void {
    const nowMs = performance.now()
    if (nowMs >= this.refreshDueMs) this.refreshDueMs = Math.max(nowMs, this.refreshDueMs + REFRESH_MS_MIN)
    this.pending.loadSoon(this.refreshDueMs - nowMs)
  }
}

/** What hosted runs wait for. Kinds are named as in the URLs of the API and of this page. */
export type Pause = Approval | InputRequest
export type Approval = Schemas['ApprovalDetails'] & { readonly kind: 'approvals'; readonly id: string }
export type InputRequest = Schemas['InputRequestDetails'] & { readonly kind: 'input-requests'; readonly id: string }
type PauseKind = Pause['kind']
export type Action = 'approve' | 'reject' | 'answer'
/** A pause as a line of a list. */
export type PauseLine = Schemas['PauseSummary'] & { readonly kind: PauseKind; readonly id: string }
/** A pause in the record of a run. */
export type PendingPause = Schemas['PendingPause']

export function lineOf(summary: Schemas['PauseSummary']): PauseLine {
  return { ...summary, kind: kindOfPending(summary), id: summary.pause_id }
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

function pauseOf(record: Schemas['ApprovalDetails'] | Schemas['InputRequestDetails']): Pause {
  return 'approval_id' in record
    ? { ...record, kind: 'approvals', id: record.approval_id }
    : { ...record, kind: 'input-requests', id: record.request_id }
}
