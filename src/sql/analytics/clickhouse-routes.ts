import { Elysia, t } from 'elysia'
import { SECURITY } from '../../tenants/keys/security.ts'
import { type ClickHouseEndpointDeps, createClickHouseEndpoint } from './clickhouse-endpoint.ts'

type RateHeaders = Record<string, string | number>

/** Only documented: the endpoint parses it as ClickHouse does. */
const REQUEST_QUERY = t.Object({
  query: t.Optional(t.String({ description: 'One SELECT, or its beginning if the rest is in the body.' })),
  default_format: t.Optional(t.String({ description: 'The format of the answer; `TabSeparated` by default.' })),
  database: t.Optional(t.String({ description: 'Always `default`.' })),
  user: t.Optional(t.String({ description: 'Any user name.' })),
  password: t.Optional(t.String({ description: 'A workspace key.' })),
})

/**
 * ClickHouse's HTTP interface, read-only, for existing clients and tools. It uses no guard plugin, because keys arrive as
 * passwords and errors use ClickHouse's format.
 */
export function clickHouseRoutes(deps: ClickHouseEndpointDeps) {
  const endpoint = createClickHouseEndpoint(deps)
  const { idleSeconds } = deps.analytics
  return (
    new Elysia({ prefix: '/clickhouse' })
      .get('/ping', alive, PING)
      // The official client requests this when its pathname ends with a slash.
      .get('//ping', alive, { detail: { hide: true } })
      .get(
        '/',
        async ({ request, set, server }) => {
          server?.timeout(request, idleSeconds)
          return isGreeting(request) ? alive() : asAttachment(await endpoint(request, set.headers as RateHeaders))
        },
        { detail: { ...DETAIL, operationId: 'clickHouseGet', summary: 'Query as a ClickHouse client (GET)' } },
      )
      .post(
        '/',
        async ({ request, set, server }) => {
          server?.timeout(request, idleSeconds)
          return asAttachment(await endpoint(request, set.headers as RateHeaders))
        },
        {
          parse: 'none',
          detail: POST_DETAIL,
        },
      )
  )
}

/** Some tools request the URL without a query to check that the server is there. */
function isGreeting(request: Request): boolean {
  return new URL(request.url).search === ''
}

function alive(): Response {
  return asAttachment(new Response('Ok.\n', { headers: { 'content-type': 'text/plain; charset=UTF-8' } }))
}

/**
 * The rows are words of agents, in a format and under a URL that whoever wrote the link chose. A browser that follows it
 * saves them, and neither runs nor shows them.
 */
const ATTACHMENT_HEADERS = {
  'content-disposition': 'attachment',
  'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}

function asAttachment(response: Response): Response {
  for (const [name, value] of Object.entries(ATTACHMENT_HEADERS)) response.headers.set(name, value)
  return response
}

const text = (description: string) => ({
  description,
  content: { 'text/plain': { schema: { type: 'string' as const } } },
})
const DETAIL = {
  tags: ['SQL'],
  security: SECURITY.clickHouse,
  description:
    "ClickHouse's HTTP interface, read-only: `query`, `param_*`, `default_format`, output settings. " +
    'User: any. Password: the workspace key, through Basic auth, `X-ClickHouse-Key` or `password`; or as a bearer token.',
  query: REQUEST_QUERY,
  responses: {
    200: text('The rows, in the requested format.'),
    default: text("An error in ClickHouse's format, with its codes and without the envelope."),
  },
}
const POST_DETAIL = {
  ...DETAIL,
  operationId: 'clickHousePost',
  summary: 'Query as a ClickHouse client (POST)',
  requestBody: {
    required: false,
    description: 'One SELECT, or the rest of `query`.',
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
