import type { App } from '../app.ts'
import type { Config } from '../config.ts'
import { serverOptions } from '../http/server-options.ts'
import { StartError } from './start-error.ts'

/** The service, listening on its port. */
export interface Listener {
  /** The URL for clients on this machine. */
  readonly url: string
  /** Stops accepting connections, waits a limited time for pending responses, then closes the rest. */
  drain(): Promise<void>
}

type Address = Pick<Config, 'host' | 'port'>

const DRAIN_MS = 3_000
const DRAIN_POLL_MS = 10

/** Checks that the port is free, before anything slow is started. @throws StartError */
export async function checkPort(address: Address): Promise<void> {
  try {
    Bun.listen({ hostname: address.host, port: address.port, socket: { data: () => {} } }).stop(true)
  } catch (error) {
    throw startErrorOf(address, error)
  }
}

/** @throws StartError */
export function listen(app: App, config: Address & Pick<Config, 'bodyTimeoutMs' | 'idleSeconds'>): Listener {
  try {
    app.listen(serverOptions(config))
  } catch (error) {
    throw startErrorOf(config, error)
  }
  const server = app.server
  if (server === null) throw startErrorOf(config, new Error('no server'))
  return {
    url: `http://${reachableHost(config.host)}:${server.port}`,
    async drain() {
      void server.stop(false)
      const deadline = performance.now() + DRAIN_MS
      while (server.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(DRAIN_POLL_MS)
      await server.stop(true)
    },
  }
}

/** Clients cannot connect to a wildcard address. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function startErrorOf({ host, port }: Address, cause: unknown): StartError {
  const { code } = cause as { code?: unknown }
  if (code === 'EADDRINUSE')
    return new StartError(`port ${port} on ${host} is in use: stop what uses it, or set PORT`, { cause })
  if (code === 'EACCES')
    return new StartError(`port ${port} may not be used by this user: set PORT to a number above 1023`, { cause })
  return new StartError(`HOST ${host}, PORT ${port} cannot be listened on: ${(cause as Error).message}`, { cause })
}
