import { connect, createServer, type Server, type Socket } from 'node:net'
import { atEnd } from './teardown.ts'

type Pair = readonly [client: Socket, upstream: Socket]

/** A server on loopback that forwards each connection to one that `open` makes; if it makes none, the client is refused. */
async function forwarding(open: () => Socket | undefined) {
  const pairs = new Set<Pair>()
  const server = createServer((client) => {
    const upstream = open()
    if (upstream === undefined) return client.destroy()
    const pair = [client, upstream] as const
    pairs.add(pair)
    for (const socket of pair) {
      socket.on('error', () => {})
      socket.on('close', () => {
        if (!pairs.delete(pair)) return
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream)
    upstream.pipe(client)
    return
  })
  await listen(server, 0)
  const { port } = server.address() as { port: number }
  const drop = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy()
  }
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      drop()
    })
  atEnd(async () => {
    if (server.listening) await close()
  })
  return { server, port, pairs, drop, close }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
}

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
  let isCut = false
  const { port, pairs, drop } = await forwarding(() => (isCut ? undefined : connect(target.port, '127.0.0.1')))
  return {
    port,
    cut() {
      isCut = true
      drop()
    },
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

/** A proxy to Postgres that a test can cut or delay, to simulate network failures. */
export async function postgresProxy(databaseUrl: string) {
  const url = new URL(databaseUrl)
  const [{ hostname }, from, socketDir] = [url, Number(url.port || 5432), url.searchParams.get('host')]
  let held = false
  const { server, port, pairs, close } = await forwarding(() => {
    const upstream = socketDir?.startsWith('/') ? connect(`${socketDir}/.s.PGSQL.${from}`) : connect(from, hostname)
    // Piping resumes it.
    if (held) setImmediate(() => upstream.unpipe())
    return upstream
  })
  url.searchParams.delete('host')
  url.hostname = '127.0.0.1'
  url.port = `${port}`
  return {
    /** The database's URL, through the proxy. */
    url: url.href,
    /** Ends all connections and refuses new ones. */
    cut: close,
    mend: () => listen(server, port),
    /** All connections that are open now end for their clients. The server learns nothing of it. */
    vanish() {
      for (const pair of pairs) {
        pairs.delete(pair)
        const [client, upstream] = pair
        client.unpipe(upstream).destroy()
        upstream.unpipe(client).resume()
      }
    },
    /** Holds back data from the server until `release`. */
    hold() {
      held = true
      for (const [, upstream] of pairs) upstream.unpipe()
    },
    release() {
      held = false
      for (const [client, upstream] of pairs) upstream.pipe(client)
    },
  }
}

/** A proxy to an HTTP server that counts the bytes of its responses, and never reads ahead of its client. */
export async function countingProxy(target: string) {
  const url = new URL(target)
  const { port: to, hostname } = url
  let passed = 0
  const { port } = await forwarding(() => {
    const upstream = connect(Number(to), hostname)
    upstream.on('data', (data) => {
      passed += data.length
    })
    return upstream
  })
  url.hostname = '127.0.0.1'
  url.port = `${port}`
  return {
    /** The server's URL, through the proxy. */
    url: url.href,
    /** Bytes that the server has sent and the proxy has forwarded. */
    passed: () => passed,
  }
}
