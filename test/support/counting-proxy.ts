import { connect, createServer, type Socket } from 'node:net'
import { atEnd } from './teardown.ts'

/** A proxy to an HTTP server that counts the responses, and never reads ahead of its client. */
export interface CountingProxy {
  /** The server's URL, through the proxy. */
  readonly url: string
  /** Bytes that the server has sent and the proxy has forwarded. */
  passed(): number
}

export async function countingProxy(target: string): Promise<CountingProxy> {
  const { hostname, port } = new URL(target)
  const open = new Set<Socket>()
  let passed = 0
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    upstream.on('data', (data) => {
      passed += data.length
    })
    client.pipe(upstream)
    upstream.pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of open) socket.destroy()
      }),
  )
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as { port: number }).port)
  return { url: url.href, passed: () => passed }
}
