import { connect, createServer, type Socket } from 'node:net'
import { atEnd } from './teardown.ts'

/** A proxy in front of a server on loopback that can fail like a network. */
export interface TcpProxy {
  readonly port: number
  /** Closes all connections and accepts no new ones. */
  cut(): void
  /** Forwards nothing any more from the server to its clients, on the connections that are open now. */
  muteServer(): void
  /** Accepts connections again, and forwards everything on new ones. */
  heal(): void
}

export async function tcpProxy(target: { readonly port: number }): Promise<TcpProxy> {
  const pairs = new Set<readonly [client: Socket, upstream: Socket]>()
  let isCut = false
  const server = createServer((client) => {
    if (isCut) return client.destroy()
    const upstream = connect(target.port, '127.0.0.1')
    const pair = [client, upstream] as const
    pairs.add(pair)
    for (const socket of pair) {
      socket.on('error', () => {})
      socket.on('close', () => {
        pairs.delete(pair)
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream)
    upstream.pipe(client)
    return
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    isCut = true
    for (const sockets of pairs) for (const socket of sockets) socket.destroy()
  }
  atEnd(async () => {
    cut()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return {
    port: (server.address() as { port: number }).port,
    cut,
    muteServer() {
      for (const [client, upstream] of pairs) {
        upstream.unpipe(client)
        upstream.resume()
      }
    },
    heal() {
      isCut = false
    },
  }
}
