import type { Schemas } from '../data/records.ts'
import { chosenColumns, columnsText } from './columns.ts'

export type RunView = Schemas['RunView']
type Query = Readonly<Record<string, string>>

/** Views that every workspace has. */
export const COMMON_VIEWS: readonly (readonly [name: string, query: Query])[] = [
  ['All', {}],
  ['Failed', { status: 'failed,timed_out' }],
  ['Waiting', { status: 'awaiting_approval,awaiting_input' }],
  ['Slowest', { sort: 'duration' }],
]

/** What a view keeps of an address: everything but the name of the view. */
function partsOf({ view: _view, ...query }: Query): Query {
  return query
}

/** The address of a saved view. */
export function queryOfView({ name, query }: Pick<RunView, 'name' | 'query'>): Query {
  return { ...partsOf(Object.fromEntries(new URLSearchParams(query))), view: name }
}

/** The query that is saved. It includes the columns, which the address lacks if the user chose them earlier. */
export function savedQuery(query: Query): string {
  return new URLSearchParams({ ...partsOf(query), cols: columnsText(chosenColumns()) }).toString()
}

/** Whether two addresses show the same, whatever the order of their members. */
export function isSameQuery(a: Query, b: Query): boolean {
  const text = (query: Query) => JSON.stringify(Object.entries(partsOf(query)).sort(([x], [y]) => (x < y ? -1 : 1)))
  return text(a) === text(b)
}

/** The common view that an address shows, whatever its columns. */
export function commonView(query: Query): string | undefined {
  const { cols: _cols, ...rest } = query
  return query.view === undefined ? COMMON_VIEWS.find(([, each]) => isSameQuery(each, rest))?.[0] : undefined
}
