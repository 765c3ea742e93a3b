import { AuthorizationError, type ConnectionOptions, connect, type NatsConnection } from '@nats-io/transport-node'
import { StartError } from '../../../base/start-error.ts'

const CONNECT_PATIENCE_MS = 30_000
const CONNECT_RETRY_MS = 250
const RECONNECT_MS = 200
const PING_MS = 2_000

/**
 * Connects to one of the servers, and to another one whenever that is lost. Waits for servers that are started at the
 * same time.
 *
 * @param urls `nats://user:password@host:port`, or `tls://…`; user, password and port may be missing
 * @throws StartError without the URLs, which may contain passwords
 */
export async function connectNats(
  urls: readonly string[],
  { patienceMs = CONNECT_PATIENCE_MS }: { readonly patienceMs?: number } = {},
): Promise<NatsConnection> {
  const options = natsOptions(urls)
  const deadline = performance.now() + patienceMs
  for (;;) {
    try {
      return await connect({
        ...options,
        noAsyncTraces: true,
        maxReconnectAttempts: -1,
        reconnectTimeWait: RECONNECT_MS,
        pingInterval: PING_MS,
        maxPingOut: 2,
      })
    } catch (cause) {
      if (cause instanceof AuthorizationError)
        throw new StartError('NATS_URL cannot be used: the servers refuse its user or password', { cause })
      if (performance.now() > deadline) throw new StartError('NATS_URL cannot be used: no server answers', { cause })
      await Bun.sleep(CONNECT_RETRY_MS)
    }
  }
}

/** Watches a connection. @returns a function that tells whether it is open now */
export function watchConnection(nc: NatsConnection): () => boolean {
  let isConnected = true
  const watch = async () => {
    for await (const { type } of nc.status()) {
      if (type === 'disconnect') isConnected = false
      if (type === 'reconnect') isConnected = true
    }
  }
  void watch()
  return () => isConnected && !nc.isClosed()
}

/**
 * The client library's options for these URLs: it takes addresses without credentials, and one user for all servers.
 * @throws StartError when the URLs have different users or passwords
 */
export function natsOptions(urls: readonly string[]): ConnectionOptions {
  const parsed = urls.map((url) => new URL(url))
  const [{ username, password }] = parsed
  if (parsed.some((url) => url.username !== username || url.password !== password))
    throw new StartError('NATS_URL must have the same user and password in each of its URLs')
  const user = decodeURIComponent(username)
  return {
    servers: parsed.map(({ host }) => host),
    // A user without a password is a token.
    ...(user === '' ? {} : password === '' ? { token: user } : { user, pass: decodeURIComponent(password) }),
    ...(parsed.some(({ protocol }) => protocol === 'tls:') ? { tls: {} } : {}),
  }
}
