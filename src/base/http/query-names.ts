import type { TSchema } from '@sinclair/typebox'
import { invalidAll, PROBLEMS_MAX, type Problem } from '../errors.ts'
import { memberOf, unknownField } from './validation-message.ts'

/** The part of Elysia's `routes` that is used here. */
interface QueryRoute {
  readonly method: string
  readonly path: string
  readonly hooks: { readonly query?: TSchema; readonly detail?: { readonly query?: unknown } }
}

/** Our own calls. Everything else answers programs whose queries are not ours to judge. */
export const OWN_CALLS = /^\/api\/(?:v1|ingest)\//

/**
 * Refuses parameters that a route would ignore: any, on a route without a query schema, and all but one of a repeated
 * parameter that takes one value (docs/api.md#unknown-fields). Elysia validates a query only where there is a schema, and
 * keeps the last of several values. Routes that read the raw query document it without a schema, and check it themselves.
 *
 * @param routes called for the first request with a query, when all are mounted
 */
export function createQueryCheck(routes: () => readonly QueryRoute[]) {
  let byRoute: Map<string, QueryRoute> | undefined

  return (method: string, route: string, url: string): void => {
    const start = url.indexOf('?')
    if (start === -1 || !OWN_CALLS.test(route)) return
    byRoute ??= new Map(routes().map((each) => [`${each.method} ${each.path}`, each]))
    const { query, detail } = byRoute.get(`${method === 'HEAD' ? 'GET' : method} ${route}`)?.hooks ?? {}
    if (query === undefined && detail?.query !== undefined) return
    const properties: Record<string, TSchema> = query?.properties ?? {}
    const given = new URLSearchParams(url.slice(start + 1))
    const problems: Problem[] = []
    for (const name of new Set(given.keys())) {
      const param = memberOf('query', name)
      if (!Object.hasOwn(properties, name))
        problems.push({ param, message: unknownField(name, Object.keys(properties)) })
      else if (properties[name].type !== 'array' && given.getAll(name).length > 1)
        problems.push({ param, message: 'expected one value; it is repeated' })
    }
    if (problems.length > 0) throw invalidAll(problems.slice(0, PROBLEMS_MAX))
  }
}
