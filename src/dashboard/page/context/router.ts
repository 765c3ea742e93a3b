import { signal } from '@preact/signals'

/** The views of the page, by the first segment of the fragment. */
export const VIEWS = [
  'overview',
  'boards',
  'runs',
  'live',
  'waiting',
  'sessions',
  'users',
  'agents',
  'sql',
  'alerts',
  'webhooks',
  'keys',
  'settings',
] as const
export type ViewName = (typeof VIEWS)[number]

/** What the page shows. It is kept in the fragment of the URL, which browsers never send to the service. */
interface Address {
  readonly view: ViewName
  /** Further segments, such as the id of a run. */
  readonly path: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

/** Follows the address bar until `signal` aborts. */
export function followAddress(signal: AbortSignal): void {
  const read = () => {
    address.value = parseAddress(location.hash)
  }
  addEventListener('hashchange', read, { signal })
  read()
}

/** @param hash with or without its `#` */
export function parseAddress(hash: string): Address {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [name = '', ...rest] = path.split('/').map(decoded)
  const view = VIEWS.find((each) => each === name)
  return {
    view: view ?? 'overview',
    path: view === undefined ? [] : rest.filter((segment) => segment !== ''),
    query: Object.fromEntries(new URLSearchParams(search)),
  }
}

/** The link to a view. Empty values are left out. */
export function hrefOf(
  view: ViewName,
  path: readonly string[] = [],
  query: Readonly<Record<string, string | null | undefined>> = {},
): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []))
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
  return `#/${[view, ...path.map(encodeURIComponent)].join('/')}${search}`
}

export function hrefOfRun(runId: string, query: Readonly<Record<string, string>> = {}): string {
  return hrefOf('runs', [runId], query)
}

/** The link to the list of runs with the filters used last. */
export const runsHref = signal(hrefOf('runs'))

export const address = signal<Address>(parseAddress(globalThis.location?.hash ?? ''))
address.subscribe(({ view, path, query }) => {
  if (view === 'runs' && path.length === 0) runsHref.value = hrefOf(view, path, query)
})

/** Goes to another address, as a link does. */
export function navigate(href: string): void {
  location.hash = href
}

/** Changes the query of the address in place: filters do not fill the browser's history. Null removes a value. */
export function setQuery(changes: Readonly<Record<string, string | null>>): void {
  const { view, path, query } = address.peek()
  const next = parseAddress(location.hash)
  // A link was followed, and the view that it leads to is about to be shown.
  if (hrefOf(next.view, next.path) !== hrefOf(view, path)) return
  const href = hrefOf(view, path, { ...query, ...changes })
  history.replaceState(history.state, '', href)
  address.value = parseAddress(href)
}

/** Changes the query as a new entry of the browser's history, which Back undoes. */
export function pushQuery(changes: Readonly<Record<string, string | null>>): void {
  const { view, path, query } = address.peek()
  navigate(hrefOf(view, path, { ...query, ...changes }))
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
