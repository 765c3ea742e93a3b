import type { Api } from './api.ts'
import type { Retries } from './retries.ts'
import type { SharedResults } from './shared-results.ts'

export interface Column {
  readonly name: string
  readonly type: string
}

/** The answer of a query in JSON. */
export interface Result {
  readonly columns: readonly Column[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly row_count: number
  readonly truncated: boolean
  readonly statistics: { readonly elapsed_ms: number }
}

export type Params = Readonly<Record<string, string | number | boolean | null>>

/** The workspace may run few queries at once, and other people's tabs and programs need some of them. */
const AT_ONCE_MAX = 2
/** Results of other tabs are used for a shorter time than that after which a tab asks again. */
const SHARED_SHARE = 0.8

/** Runs the SQL behind the page's own views: a few at a time, again when the service is at its limit. */
export class Queries {
  private running = 0
  private readonly queue: (() => void)[] = []

  constructor(
    private readonly api: Api,
    private readonly retries: Retries,
    private readonly results: SharedResults,
  ) {}

  /**
   * The same, or a recent result that another tab has. @param everyMs how often the caller asks
   *
   * @throws ApiFailure
   */
  shared(query: string, params: Params, everyMs: number, signal: AbortSignal): Promise<Result> {
    const name = JSON.stringify([query, params])
    return this.results.get(name, everyMs * SHARED_SHARE, () => this.run(query, params, signal))
  }

  /** @throws ApiFailure */
  async run(query: string, params: Params = {}, signal?: AbortSignal): Promise<Result> {
    await this.slot()
    try {
      return await this.retries.run(
        () => this.api.post<Result>('/api/v1/query', { query, params }, signal),
        ({ code }) => code === 'RATE_LIMITED',
        signal,
      )
    } finally {
      this.running--
      this.queue.shift()?.()
    }
  }

  private async slot(): Promise<void> {
    while (this.running >= AT_ONCE_MAX) await new Promise<void>((resolve) => this.queue.push(resolve))
    this.running++
  }
}
