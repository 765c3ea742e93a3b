import { signal } from '@preact/signals'
import type { Session } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { LiveResource } from '../data/loading.ts'
import type { Event } from '../data/records.ts'

/** An event of a long run is known by its line in the list; its payload is read when it comes into view. */
export interface LoggedEvent extends Omit<Event, 'payload' | 'task_id'> {
  /** Null or undefined if the event names no task. */
  readonly task_id?: string | null
  /** Undefined until it is read. */
  readonly payload?: unknown
}

const PAGE_LIMIT = 200
/** Runs with more events are listed by SQL, which has no pages. */
const PAGED_MAX = 800
const INDEX_QUERY = `SELECT seq, event_id AS id, task_id, type, level, occurred_at
  FROM events WHERE run_id = {run:UUID} ORDER BY seq`
const MATCH_QUERY = `SELECT seq FROM events WHERE run_id = {run:UUID}
  AND positionCaseInsensitiveUTF8(toString(payload), {text:String}) > 0 LIMIT 10000`

/** The events of a run in their order: those already reported, and new ones as the feed brings them. */
export class EventLog {
  readonly events: LiveResource<readonly LoggedEvent[]>
  /** Changes when payloads have been read. */
  readonly payloadVersion = signal(0)
  /** The events that were read, from the first on; the feed may have brought others. */
  private known: readonly LoggedEvent[] = []
  private readonly payloads = new Map<number, unknown>()
  private readonly asked = new Set<number>()

  constructor(
    private readonly session: Pick<Session, 'api' | 'queries'>,
    private readonly runId: string,
    private readonly signal: AbortSignal,
  ) {
    this.events = new LiveResource<readonly LoggedEvent[]>([], { load: async () => this.known }, signal)
  }

  payloadOf(event: LoggedEvent): unknown {
    return event.payload ?? this.payloads.get(event.seq)
  }

  /** @param countHint how many events the run has, about; null: the run could not be read */
  load(countHint: Promise<number | null>): Promise<void> {
    return this.events.load(async (signal, show) => {
      const count = await countHint
      if (count === null) return this.known
      if (count > PAGED_MAX && this.known.length === 0) {
        // Without SQL, all pages are read.
        this.known = await this.index(signal).catch(() => [])
        signal.throwIfAborted()
      }
      for (let hasMore = true; hasMore; ) {
        const page = await this.page(this.known.at(-1)?.seq ?? 0, signal)
        signal.throwIfAborted()
        this.known = [...this.known, ...page.items]
        show(this.known)
        hasMore = page.next_cursor !== null
      }
      return this.known
    })
  }

  /** New events of the feed; those that are known already are left out. */
  add(events: readonly Event[]): void {
    this.events.update((known) => {
      const last = known.at(-1)?.seq ?? 0
      const added = events.filter(({ seq }) => seq > last)
      return added.length === 0 ? known : [...known, ...added]
    })
  }

  /** Reads the payload of an event, with those of the next ones. What fails is read when it comes into view again. */
  async readPayload(event: LoggedEvent): Promise<void> {
    if (this.payloadOf(event) !== undefined || this.asked.has(event.seq)) return
    this.asked.add(event.seq)
    try {
      const page = await this.page(event.seq - 1)
      for (const { seq, payload } of page.items) this.payloads.set(seq, payload)
      this.payloadVersion.value++
    } catch {
    } finally {
      this.asked.delete(event.seq)
    }
  }

  /** The events whose payload contains a text, by `seq`. @throws ApiFailure */
  async search(text: string): Promise<ReadonlySet<number>> {
    const { rows } = await this.session.queries.run(MATCH_QUERY, { run: this.runId, text }, this.signal)
    return new Set(rows.map(({ seq }) => Number(seq)))
  }

  /** All events of some types, with their payloads. @throws ApiFailure */
  async ofType(type: string, max: number): Promise<Event[]> {
    const found: Event[] = []
    for (let hasMore = true; hasMore && found.length < max; ) {
      const page = await this.page(found.at(-1)?.seq ?? 0, this.signal, type)
      found.push(...page.items)
      hasMore = page.next_cursor !== null && page.items.length > 0
    }
    return found
  }

  private page(after: number, signal = this.signal, type?: string): Promise<Listed<Event>> {
    const query = { after_seq: after, type, limit: PAGE_LIMIT }
    return this.session.api.get(`/api/v1/runs/${this.runId}/events`, query, signal)
  }

  private async index(signal: AbortSignal): Promise<LoggedEvent[]> {
    const body = { query: INDEX_QUERY, params: { run: this.runId }, format: 'ndjson' }
    const response = await this.session.api.raw('/api/v1/query', body, signal)
    const lines = (await response.text()).split('\n').filter((line) => line !== '')
    return lines.map((line) => JSON.parse(line) as LoggedEvent)
  }
}
