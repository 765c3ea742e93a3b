import type { AnyElysia } from 'elysia'
import { serverOptions } from '../../base/http/server-options.ts'
import { StartError } from '../../base/start-error.ts'
import type { Config } from '../config/config.ts'

type Address = Pick<Config, 'host' | 'port'>

const PRIVATE_HOST = '127.0.0.1'
const DRAIN_MS = 3_000
const DRAIN_POLL_MS = 10

/** Checks that the port is free, before anything slow is started. @returns the port, a free one for 0 @throws StartError */
export async function checkPort(address: Address): Promise<number> {
  try {
    const listener = Bun.listen({ hostname: address.host, port: address.port, socket: { data: () => {} } })
    listener.stop(true)
    return listener.port
  } catch (error) {
    throw startErrorOf(address, error)
  }
}

type ListenConfig = Address & Pick<Config, 'bodyTimeoutMs' | 'idleSeconds'>

/** @param isShared whether other processes of the service listen on the same port @throws StartError */
export function listen(app: AnyElysia, config: ListenConfig, isShared = false) {
  try {
    app.listen({ ...serverOptions(config), reusePort: isShared })
  } catch (error) {
    throw startErrorOf(config, error)
  }
  const server = app.server
  if (server === null) throw startErrorOf(config, new Error('no server'))
  return listenerOf(config.host, server)
}

/** Routes that only other processes of the service ask for. */
export type PrivateRoutes = Readonly<Record<string, () => Response>>

/** Serves the same routes, and `more`, on a port of this process alone, for other processes of this machine. */
export function listenPrivately(app: AnyElysia, config: ListenConfig, more: PrivateRoutes = {}) {
  const { websocket: _, ...options } = serverOptions({ ...config, host: PRIVATE_HOST, port: 0 })
  const server = Bun.serve({ ...options, routes: { ...more }, fetch: (request) => app.fetch(request) })
  return listenerOf(PRIVATE_HOST, server)
}

function listenerOf(host: string, server: Pick<Bun.Server<unknown>, 'port' | 'stop' | 'pendingRequests'>) {
  return {
    /** The URL for clients on this machine. */
    url: urlAt(host, server.port),
    /** Stops accepting connections, waits a limited time for pending responses, then closes the rest. */
    async drain(): Promise<void> {
      void server.stop(false)
      const deadline = performance.now() + DRAIN_MS
      while (server.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(DRAIN_POLL_MS)
      await server.stop(true)
    },
  }
}

/** The URL for clients on this machine. */
export function urlAt(host: string, port: number | undefined): string {
  return `http://${reachableHost(host)}:${port}`
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
