import type { Api } from './api.ts'

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

/** The workspace may run only a few queries at once, and other tabs and programs need some of them. */
const CONCURRENT_QUERIES_MAX = 2

/** Runs the SQL behind the page's own views, a few queries at a time. */
export class Queries {
  private running = 0
  private readonly queue: (() => void)[] = []

  constructor(private readonly api: Api) {}

  /** @throws ApiFailure */
  async run(query: string, params: Params = {}, signal?: AbortSignal): Promise<Result> {
    while (this.running >= CONCURRENT_QUERIES_MAX) await new Promise<void>((resolve) => this.queue.push(resolve))
    this.running++
    try {
      return await this.api.read<Result>('/api/v1/query', { query, params }, signal)
    } finally {
      this.running--
      this.queue.shift()?.()
    }
  }
}
