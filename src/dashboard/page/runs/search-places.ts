import { signal } from '@preact/signals'
import type { Listed } from '../data/api.ts'
import type { ListedRun, Schemas } from '../data/records.ts'

export type Place = Schemas['SearchMatch']
type FoundPage = Listed<ListedRun> & Pick<Schemas['RunList'], 'searched'>

/** Where in the runs of a list the search text was found, and how far the search got. */
export class Places {
  /** By run_id. */
  readonly byRun = signal<ReadonlyMap<string, Place>>(new Map())
  /** Null: all runs were searched. Undefined: the list is not a search. */
  readonly searchedSince = signal<string | null | undefined>(undefined)

  /** Keeps what a page says about the search. @returns the page */
  take({ items, next_cursor, searched }: FoundPage, isFirst: boolean): Listed<ListedRun> {
    const known = isFirst ? [] : this.byRun.peek()
    const found = items.flatMap(({ run_id, match }) => (match == null ? [] : [[run_id, match] as const]))
    this.byRun.value = new Map([...known, ...found])
    this.searchedSince.value = searched?.runs_since
    return { items, next_cursor }
  }
}
