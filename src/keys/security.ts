/** How the document names what a route takes; `guards.ts` is what enforces it. */
export const SECURITY_SCHEMES = {
  agentKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'An agent key, `svc_agent_…`: reports for its agent, and reads what is its own.',
  },
  workspaceKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'A workspace key, `svc_ws_…`: manages the workspace and reads everything in it.',
  },
  operatorToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'The value of OPERATOR_TOKEN. Without one, the routes that take it answer NOT_FOUND.',
  },
  feedToken: {
    type: 'apiKey',
    in: 'query',
    name: 'token',
    description: 'A feed token, `svc_feed_…`, made by `POST /api/v1/feed-tokens`. It is taken as a bearer token too.',
  },
  clickHouseUser: {
    type: 'http',
    scheme: 'basic',
    description: 'Any user, and a workspace key as the password.',
  },
  clickHouseKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-ClickHouse-Key',
    description: 'A workspace key.',
  },
  clickHousePassword: {
    type: 'apiKey',
    in: 'query',
    name: 'password',
    description: 'A workspace key.',
  },
} as const

/** What a route's `detail.security` says: any one of these is enough. */
export const SECURITY = {
  agentKey: anyOf('agentKey'),
  workspaceKey: anyOf('workspaceKey'),
  anyKey: anyOf('workspaceKey', 'agentKey'),
  feed: anyOf('workspaceKey', 'agentKey', 'feedToken'),
  operator: anyOf('operatorToken'),
  clickHouse: anyOf('workspaceKey', 'clickHouseUser', 'clickHouseKey', 'clickHousePassword'),
}

function anyOf(...schemes: readonly (keyof typeof SECURITY_SCHEMES)[]): Record<string, string[]>[] {
  return schemes.map((scheme) => ({ [scheme]: [] }))
}
