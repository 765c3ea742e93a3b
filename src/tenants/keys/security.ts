import { SIGN_IN_COOKIES } from '../../base/http/bearer.ts'

/** The security schemes of the OpenAPI document; `guards.ts` enforces them. */
export const SECURITY_SCHEMES = {
  agentKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'An agent key, `svc_agent_…`: reports for its agent, and reads the activity of that agent.',
  },
  workspaceKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'A workspace key, `svc_ws_…`: manages the workspace and reads all of its data.',
  },
  operatorToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'The value of OPERATOR_TOKEN. If it is not set, the routes that take it answer NOT_FOUND.',
  },
  feedToken: {
    type: 'apiKey',
    in: 'query',
    name: 'token',
    description: 'A feed token, `svc_feed_…`, created by `POST /api/v1/feed-tokens`. Also accepted as a bearer token.',
  },
  signIn: {
    type: 'apiKey',
    in: 'cookie',
    name: SIGN_IN_COOKIES.secure,
    description:
      'A person who is signed in to the page by OpenID Connect. Their role decides what they may do. ' +
      `The name is \`${SIGN_IN_COOKIES.plain}\` where PUBLIC_URL is not https.`,
  },
  clickHouseUser: {
    type: 'http',
    scheme: 'basic',
    description: 'Any user name, with a workspace key as the password.',
  },
  clickHouseKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-ClickHouse-Key',
    description: 'A workspace key.',
  },
  apiKeyHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'An agent key or a workspace key.',
  },
  basicPassword: {
    type: 'http',
    scheme: 'basic',
    description: 'Any user, and an agent key or a workspace key as the password.',
  },
  clickHousePassword: {
    type: 'apiKey',
    in: 'query',
    name: 'password',
    description: 'A workspace key.',
  },
} as const

/** Values of a route's `detail.security`: any one of the schemes is enough. */
export const SECURITY = {
  agentKey: anyOf('agentKey'),
  workspaceKey: anyOf('workspaceKey', 'signIn'),
  keys: anyOf('workspaceKey', 'agentKey'),
  anyKey: anyOf('workspaceKey', 'agentKey', 'signIn'),
  signIn: anyOf('signIn'),
  feed: anyOf('workspaceKey', 'agentKey', 'feedToken', 'signIn'),
  scoring: anyOf('workspaceKey', 'feedToken', 'signIn'),
  operator: anyOf('operatorToken'),
  otlp: anyOf('agentKey', 'workspaceKey', 'apiKeyHeader', 'basicPassword'),
  clickHouse: anyOf('workspaceKey', 'clickHouseUser', 'clickHouseKey', 'clickHousePassword'),
}

function anyOf(...schemes: readonly (keyof typeof SECURITY_SCHEMES)[]): Record<string, string[]>[] {
  return schemes.map((scheme) => ({ [scheme]: [] }))
}
