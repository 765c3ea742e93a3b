import { connect, createServer, type Server, type Socket } from 'node:net'
import { atEnd } from '../support/teardown.ts'

/** A TCP proxy to Postgres that a test can cut or delay, to simulate network failures. */
export interface CuttableProxy {
  /** The database's URL, through the proxy. */
  readonly url: string
  /** Ends all connections and refuses new ones. */
  cut(): Promise<void>
  mend(): Promise<void>
  /** Holds back data from the server until {@link release}. */
  hold(): void
  release(): void
}

export async function cuttableProxy(databaseUrl: string): Promise<CuttableProxy> {
  const target = new URL(databaseUrl)
  const pairs = new Map<Socket, Socket>()
  let held = false
  const server = createServer((client) => {
    const socketDir = target.searchParams.get('host')
    const port = Number(target.port || 5432)
    const upstream = socketDir?.startsWith('/')
      ? connect(`${socketDir}/.s.PGSQL.${port}`)
      : connect(port, target.hostname)
    pairs.set(client, upstream)
    for (const socket of [client, upstream]) {
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
        pairs.delete(client)
      })
    }
    client.pipe(upstream)
    upstream.pipe(client)
    if (held) upstream.pause()
  })
  await listen(server, 0)
  const { port } = server.address() as { port: number }
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const client of pairs.keys()) client.destroy()
    })
  const url = new URL(databaseUrl)
  url.searchParams.delete('host')
  url.hostname = '127.0.0.1'
  url.port = `${port}`
  atEnd(async () => {
    if (server.listening) await close()
  })
  return {
    url: url.href,
    cut: close,
    mend: () => listen(server, port),
    hold() {
      held = true
      for (const upstream of pairs.values()) upstream.unpipe()
    },
    release() {
      held = false
      for (const [client, upstream] of pairs) upstream.pipe(client)
    },
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
}
