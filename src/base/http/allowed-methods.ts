/** The part of Elysia's `routes` that is used here. */
type RouteTable = readonly { readonly method: string; readonly path: string }[]

/** The methods that a path has routes for, in alphabetical order; empty if it has no route. */
export function allowedMethods(routes: RouteTable, path: string): string[] {
  const methods = new Set<string>()
  for (const route of routes) {
    if (!matches(route.path, path)) continue
    methods.add(route.method)
    if (route.method === 'GET') methods.add('HEAD')
    methods.add('OPTIONS')
  }
  return [...methods].sort()
}

/**
 * Compares segment by segment and ignores a trailing slash. `:name` matches one segment, a trailing `*` all that
 * follow.
 */
function matches(pattern: string, path: string): boolean {
  const expected = segmentsOf(pattern)
  const found = segmentsOf(path)
  const isOpen = expected.at(-1) === '*'
  if (isOpen ? found.length < expected.length : found.length !== expected.length) return false
  return expected.every((segment, index) => {
    if (segment === '*') return true
    return segment.startsWith(':') ? found[index] !== '' : segment === found[index]
  })
}

function segmentsOf(path: string): string[] {
  return (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path).split('/')
}
