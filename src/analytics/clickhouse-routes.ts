import { Elysia, t } from 'elysia'
import { SECURITY } from '../keys/security.ts'
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
        { detail: { ...DETAIL, operationId: 'clickHouseGet', summary: 'Query as a ClickHouse client (GET)' } },
      )
      .post(
        '/',
        async ({ request, set, server }) => {
          server?.timeout(request, idleSeconds)
          return door(request, set.headers as Record<string, string | number>)
        },
        {
          parse: 'none',
          detail: POST_DETAIL,
        },
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

/** Described, not checked: the door reads it as ClickHouse does. */
const REQUEST_QUERY = t.Object({
  query: t.Optional(t.String({ description: 'One SELECT, or the beginning of it, with the rest in the body.' })),
  default_format: t.Optional(t.String({ description: 'The format of the answer; `TabSeparated` unless given.' })),
  database: t.Optional(t.String({ description: '`default`, the only one.' })),
  user: t.Optional(t.String({ description: 'Any.' })),
  password: t.Optional(t.String({ description: 'A workspace key.' })),
})
const text = (description: string) => ({
  description,
  content: { 'text/plain': { schema: { type: 'string' as const } } },
})
const DETAIL = {
  tags: ['SQL'],
  security: SECURITY.clickHouse,
  description:
    "ClickHouse's HTTP interface, read only: `query`, `param_*`, `default_format`, settings of the output. " +
    'User: any. Password: the workspace key, by Basic auth, `X-ClickHouse-Key` or `password`; or as a bearer token.',
  query: REQUEST_QUERY,
  responses: {
    200: text('The rows, in the format that was asked for.'),
    default: text('An error as ClickHouse answers it: its text, with its codes; not in the envelope.'),
  },
}
const POST_DETAIL = {
  ...DETAIL,
  operationId: 'clickHousePost',
  summary: 'Query as a ClickHouse client (POST)',
  requestBody: {
    required: false,
    description: 'One SELECT, or what follows `query`.',
    content: { 'text/plain': { schema: { type: 'string' as const } } },
  },
}
const PING = {
  detail: {
    tags: ['SQL'],
    operationId: 'clickHousePing',
    summary: 'Ping the ClickHouse interface',
    description: 'Answers `Ok.`, as ClickHouse does.',
    security: [],
    responses: { 200: text('`Ok.`') },
  },
}
