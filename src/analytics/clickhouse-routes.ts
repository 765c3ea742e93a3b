import { Elysia } from 'elysia'
import { type ClickHouseDoorDeps, createClickHouseDoor } from './clickhouse-door.ts'

/**
 * ClickHouse's HTTP interface, read only: what existing clients and tools speak. Without a guard plugin, because keys come
 * as passwords, and errors leave as ClickHouse's.
 */
export function clickHouseRoutes(deps: ClickHouseDoorDeps) {
  const door = createClickHouseDoor(deps)
  const { idleSeconds } = deps.analytics
  return (
    new Elysia({ prefix: '/clickhouse' })
      .get('/ping', alive, PING)
      // What the official client asks for when its pathname ends with a slash.
      .get('//ping', alive, { detail: { hide: true } })
      .get(
        '/',
        async ({ request, set, server }) => {
          server?.timeout(request, idleSeconds)
          return isGreeting(request) ? alive() : door(request, set.headers as Record<string, string | number>)
        },
        { detail: { ...DETAIL, summary: 'Query as a client of ClickHouse does, in the address' } },
      )
      .post(
        '/',
        async ({ request, set, server }) => {
          server?.timeout(request, idleSeconds)
          return door(request, set.headers as Record<string, string | number>)
        },
        { parse: 'none', detail: { ...DETAIL, summary: 'Query as a client of ClickHouse does, in the body' } },
      )
  )
}

/** An address without a question is how some tools find out what is there. */
function isGreeting(request: Request): boolean {
  return new URL(request.url).search === ''
}

function alive(): Response {
  return new Response('Ok.\n', { headers: { 'content-type': 'text/plain; charset=UTF-8' } })
}

const TEXT = { description: 'As ClickHouse answers; errors are its text, with its codes, and not in the envelope.' }
const DETAIL = {
  tags: ['SQL'],
  description:
    "ClickHouse's HTTP interface, read only: `query`, `param_*`, `default_format`, settings of the output. " +
    'User: any. Password: the workspace key, by Basic auth, `X-ClickHouse-Key` or `password`; or as a bearer token.',
  responses: { 200: TEXT },
}
const PING = {
  detail: {
    tags: ['SQL'],
    summary: 'Whether the ClickHouse interface is there',
    security: [],
    responses: { 200: TEXT },
  },
}
