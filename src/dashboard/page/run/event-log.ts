import { computed, signal } from '@preact/signals'
import type { Api, Listed } from '../data/api.ts'
import type { Event } from '../data/records.ts'

/** An event of a long run is known by its line in the list; its payload is read when it comes into view. */
export interface LoggedEvent extends Omit<Event, 'payload'> {
  /** Undefined until it is read. */
  readonly payload?: unknown
}

const PAGE_LIMIT = 200
/** Runs with more events are listed by SQL, which has no pages. */
const PAGED_MAX = 800
const INDEX_QUERY = `SELECT seq, event_id AS id, type, level, toUnixTimestamp64Milli(occurred_at) AS at
  FROM events WHERE run_id = {run:UUID} ORDER BY seq`
const MATCH_QUERY = `SELECT seq FROM events WHERE run_id = {run:UUID}
  AND positionCaseInsensitiveUTF8(toString(payload), {text:String}) > 0 LIMIT 10000`

/** The events of a run in their order: those already reported, and new ones as the feed brings them. */
export class EventLog {
  readonly events = signal<readonly LoggedEvent[]>([])
  readonly isLoaded = signal(false)
  /** Changes when payloads have been read. */
  readonly payloadVersion = signal(0)
  readonly lastSeq = computed(() => this.events.value.at(-1)?.seq ?? 0)
  private readonly payloads = new Map<number, unknown>()
  private readonly asked = new Set<number>()
  private early: Event[] = []

  constructor(
    private readonly api: Api,
    private readonly runId: string,
    private readonly signal: AbortSignal,
  ) {}

  payloadOf(event: LoggedEvent): unknown {
    return event.payload ?? this.payloads.get(event.seq)
  }

  /** @param countHint how many events the run has, about */
  async load(countHint: number): Promise<void> {
    if (countHint > PAGED_MAX) {
      // Without SQL, all pages are read.
      await this.loadIndex().catch(() => this.signal.throwIfAborted())
    }
    await this.loadPages()
    this.isLoaded.value = true
    this.add(this.early)
    this.early = []
  }

  /** New events of the feed; those that are known already are left out. */
  add(events: readonly Event[]): void {
    if (!this.isLoaded.value) {
      this.early.push(...events)
      return
    }
    const last = this.lastSeq.value
    const added = events.filter(({ seq }) => seq > last)
    if (added.length > 0) this.events.value = [...this.events.value, ...added]
  }

  /** Reads the payloads of a part of the list. */
  async read(first: number, last: number): Promise<void> {
    const wanted = this.events.value.slice(first, last).find((event) => this.payloadOf(event) === undefined)
    if (wanted === undefined || this.asked.has(wanted.seq)) return
    this.asked.add(wanted.seq)
    try {
      const page = await this.page(wanted.seq - 1)
      for (const { seq, payload } of page.items) this.payloads.set(seq, payload)
      this.payloadVersion.value++
      await this.read(first, last)
    } finally {
      this.asked.delete(wanted.seq)
    }
  }

  /** The events whose payload contains a text, by `seq`. @throws ApiFailure */
  async search(text: string): Promise<ReadonlySet<number>> {
    const { rows } = await this.api.post<{ rows: readonly { seq: number }[] }>('/api/v1/query', {
      query: MATCH_QUERY,
      params: { run: this.runId, text },
    })
    return new Set(rows.map(({ seq }) => Number(seq)))
  }

  /** All events of some types, with their payloads. @throws ApiFailure */
  async ofType(type: string, max: number): Promise<Event[]> {
    const found: Event[] = []
    for (let after: number | null = 0; after !== null && found.length < max; ) {
      const page: Listed<Event> = await this.page(after, type)
      found.push(...page.items)
      after = page.next_cursor === null ? null : (page.items.at(-1)?.seq ?? null)
    }
    return found
  }

  private async loadPages(): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const page = await this.page(this.lastSeq.value)
      if (page.items.length > 0) this.events.value = [...this.events.value, ...page.items]
      hasMore = page.next_cursor !== null
    }
  }

  private page(after: number, type?: string): Promise<Listed<Event>> {
    const query = { after_seq: after, type, limit: PAGE_LIMIT }
    return this.api.get(`/api/v1/runs/${this.runId}/events`, query, this.signal)
  }

  private async loadIndex(): Promise<void> {
    const body = { query: INDEX_QUERY, params: { run: this.runId }, format: 'ndjson' }
    const response = await this.api.raw('/api/v1/query', body, this.signal)
    const lines = (await response.text()).split('\n')
    this.events.value = lines.filter((line) => line !== '').map(indexed)
  }
}

function indexed(line: string): LoggedEvent {
  const { at, ...event } = JSON.parse(line) as Omit<LoggedEvent, 'occurred_at'> & { readonly at: number | string }
  return { ...event, seq: Number(event.seq), occurred_at: new Date(Number(at)).toISOString() }
}
