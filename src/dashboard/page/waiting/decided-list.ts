import { signal } from '@preact/signals'
import { type Api, type Listed, nextNonEmptyPage } from '../data/api.ts'
import { LiveResource } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { lineOf, type PauseLine } from '../data/waiting.ts'
import { decidedQueryOf, type PauseFilter } from './filters.ts'

const PAGE_LIMIT = 50

/** What was decided, read page by page. */
export class DecidedList {
  readonly lines: LiveResource<readonly PauseLine[]>
  readonly hasMore = signal(false)
  private query = new URLSearchParams()
  private cursor: string | null = null

  /** @param closing ends all reads */
  constructor(
    private readonly api: Api,
    closing: AbortSignal,
  ) {
    this.lines = new LiveResource<readonly PauseLine[]>([], { load: (signal) => this.read(null, signal) }, closing)
  }

  open(filter: PauseFilter): void {
    this.query = decidedQueryOf(filter)
    this.lines.open(this.query.toString())
  }

  async loadMore(): Promise<void> {
    const { cursor } = this
    if (this.lines.isLoading.value || cursor === null) return
    await this.lines.load(async (signal) => [...this.lines.value, ...(await this.read(cursor, signal))])
  }

  /** @param cursor null: the first page */
  private async read(cursor: string | null, signal: AbortSignal): Promise<readonly PauseLine[]> {
    const page = await nextNonEmptyPage((next) => this.readPage(next, signal), cursor)
    this.cursor = page.next_cursor
    this.hasMore.value = page.next_cursor !== null
    return page.items.map(lineOf)
  }

  private async readPage(cursor: string | null, signal: AbortSignal): Promise<Listed<Schemas['PauseSummary']>> {
    const query = new URLSearchParams(this.query)
    query.set('limit', String(PAGE_LIMIT))
    if (cursor !== null) query.set('cursor', cursor)
    const page = await this.api.get<Listed<Schemas['PauseSummary']>>(`/api/v1/pauses?${query}`, {}, signal)
    signal.throwIfAborted()
    return page
  }
}
