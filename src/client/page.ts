import type { Http } from './http.ts'
import type { CallOptions, DataOf, Loose, OperationOf, ParametersOf, PathOf } from './request.ts'

/** A page of a list. As an iterable, it is everything from its first item on, read page by page. */
export class Page<T> implements AsyncIterable<T> {
  constructor(
    readonly items: readonly T[],
    /** Where the next page begins; null at the end of the list. */
    readonly nextCursor: string | null,
    private readonly read: (cursor: string) => Promise<Page<T>>,
  ) {}

  get hasMore(): boolean {
    return this.nextCursor !== null
  }

  /** @returns null at the end of the list */
  async nextPage(): Promise<Page<T> | null> {
    return this.nextCursor === null ? null : this.read(this.nextCursor)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (let page: Page<T> | null = this; page !== null; page = await page.nextPage()) yield* page.items
  }
}

/** Awaited, the first page of a list; in `for await`, the whole list. */
export type PagePromise<T> = Promise<Page<T>> & AsyncIterable<T>

/** Paths of lists. */
type ListPath = {
  [P in PathOf<'GET'>]: DataOf<OperationOf<'GET', P>> extends { items: unknown[]; next_cursor: unknown } ? P : never
}[PathOf<'GET'>]
type ItemOf<P extends ListPath> =
  DataOf<OperationOf<'GET', P>> extends { readonly items: readonly (infer Item)[] } ? Item : never

/** Filters of a list, and which part of it is read. */
export type ListQuery<P extends ListPath> = Loose<ParametersOf<OperationOf<'GET', P>, 'query'>>

/** Large, because the whole list is often wanted. */
const PAGE_SIZE = 200

/** @param cursorName the parameter of the query that says where a page begins */
export function list<P extends ListPath>(
  http: Http,
  path: P,
  input: { readonly path?: Readonly<Record<string, string>>; readonly query: object },
  options: CallOptions | undefined,
  cursorName = 'cursor',
): PagePromise<ItemOf<P>> {
  const read = async (position: object): Promise<Page<ItemOf<P>>> => {
    const query = { limit: PAGE_SIZE, ...input.query, ...position }
    const data: unknown = await http.request('GET', path, { ...input, ...options, query } as never)
    const { items, next_cursor } = data as { items: ItemOf<P>[]; next_cursor: string | null }
    return new Page(items, next_cursor, (cursor) => read({ [cursorName]: cursor }))
  }
  const first = read({})
  return Object.assign(first, {
    async *[Symbol.asyncIterator]() {
      yield* await first
    },
  })
}
