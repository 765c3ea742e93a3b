import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import Provider, { type Configuration } from 'oidc-provider'
import { freePorts } from './processes.ts'
import { atEnd } from './teardown.ts'

export const CLIENT_ID = 'agent-run-service'
export const CLIENT_SECRET = 'a-secret-of-the-tests-that-is-long-enough'

const TTL_SECONDS = { AuthorizationCode: 60, AccessToken: 60, IdToken: 60, Grant: 60, Interaction: 60, Session: 600 }

/** Somebody who can sign in at the provider. */
export interface Account {
  readonly sub: string
  readonly name?: string
  readonly email?: string
  readonly roles?: unknown
  readonly [claim: string]: unknown
}

export interface OpenIdProvider {
  readonly issuer: string
  /** Who signs in next, without a form, unless the browser names an account (see {@link know}). Null: the person refuses. */
  account: Account | null
  /** Adds an account that browsers select with the header `x-account: <sub>`, so that several people can sign in at once. */
  know(account: Account): void
  /** Requests that the provider has received, as `GET /path`. */
  readonly requests: string[]
  /** Changes the provider's answer to a path before it is sent, as a malicious provider would. */
  tamper: (path: string, body: string) => string | Promise<string>
  start(): Promise<void>
  stop(): Promise<void>
}

/** A real OpenID provider on a port of its own, whose only client is the service at `publicUrl`. */
export async function startOpenIdProvider(
  publicUrl: string,
  settings: Partial<Configuration> = {},
): Promise<OpenIdProvider> {
  const [port] = await freePorts(1)
  const issuer = `http://localhost:${port}`
  const accounts = new Map<string, Account>()
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: [`${publicUrl}/auth/callback`],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    claims: { openid: ['sub'], profile: ['name', 'roles', 'groups', 'workspaces'], email: ['email'] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, id) => ({ accountId: id, claims: () => accounts.get(id) as Account }),
    // Nobody is asked for consent.
    async loadExistingGrant(context) {
      const { client, session } = context.oidc
      const grant = new context.oidc.provider.Grant({ clientId: client!.clientId, accountId: session!.accountId! })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
    cookies: { keys: ['a key of the tests'] },
    ...settings,
    ttl: { ...TTL_SECONDS, ...settings.ttl },
  })
  const handle = provider.callback()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = new URL(request.url ?? '/', issuer).pathname
    own.requests.push(`${request.method} ${path}`)
    if (path.startsWith('/interaction/')) return finishInteraction(request, response)
    const end = response.end.bind(response)
    response.end = ((body: unknown) => {
      if (typeof body !== 'string' && !Buffer.isBuffer(body)) return end(body as never)
      void Promise.resolve(own.tamper(path, String(body))).then((text) => {
        if (!response.headersSent && text !== String(body))
          response.setHeader('content-length', Buffer.byteLength(text))
        end(text)
      })
      return response
    }) as typeof response.end
    await handle(request, response)
  }
  const finishInteraction = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const named = request.headers['x-account']
    const account = typeof named === 'string' ? (accounts.get(named) ?? null) : own.account
    if (account !== null) accounts.set(account.sub, account)
    const result =
      account === null
        ? { error: 'access_denied', error_description: 'the person refused' }
        : { login: { accountId: account.sub } }
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }
  let server = createServer()
  const own: OpenIdProvider = {
    issuer,
    account: { sub: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', roles: ['admin'] },
    know: (account) => void accounts.set(account.sub, account),
    requests: [],
    tamper: (_path, body) => body,
    async start() {
      server = createServer((request, response) => void answer(request, response))
      await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve))
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  await own.start()
  atEnd(() => own.stop())
  return own
}
