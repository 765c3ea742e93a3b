import net from 'node:net'
import { parseEgressAllow } from '../../src/outbound/egress/allow-list.ts'
import { createEgress, type Egress, type EgressOptions } from '../../src/outbound/egress/egress.ts'
import { addressesOf, targetOf } from '../../src/outbound/egress/guard.ts'
import { atEnd } from '../support/teardown.ts'

/** A server on loopback that speaks no protocol: it only counts connections. */
export interface Canary {
  readonly port: number
  /** Connections since the start. */
  readonly touched: () => number
}

/** Listens on both loopback addresses, so that `::1` does not seem safe only because nothing listens there. */
export async function startCanary(): Promise<Canary> {
  let touched = 0
  const listen = (host: string, port: number) =>
    new Promise<number>((resolve, reject) => {
      const server = net.createServer((socket) => {
        touched++
        socket.on('error', () => {})
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret')
      })
      server.once('error', reject)
      server.listen(port, host, () => resolve((server.address() as net.AddressInfo).port))
      atEnd(async () => void server.close())
    })
  const port = await listen('127.0.0.1', 0)
  await listen('::1', port)
  return { port, touched: () => touched }
}

/** A server whose connections are handled by `answer`: a text to send after the request, or a function. */
export async function rawServer(answer: string | ((socket: net.Socket) => void), host = '127.0.0.1', port = 0) {
  let connections = 0
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    if (typeof answer === 'function') answer(socket)
    else socket.once('data', () => socket.end(answer))
    // A socket that nothing reads from does not notice that the peer has closed it.
    socket.resume()
  })
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  atEnd(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as net.AddressInfo).port,
    connections: () => connections,
    open: () => sockets.size,
  }
}

/** An egress guard that resolves names as the test says. Other names do not resolve. */
export function egressOf(
  allow: string,
  names: Record<string, readonly string[]> = {},
  options: Partial<EgressOptions> = {},
) {
  const asked: string[] = []
  const resolve = async (host: string) => {
    asked.push(host)
    const addresses = names[host]
    if (addresses === undefined) throw new Error(`${host} does not resolve`)
    return addresses
  }
  const all: EgressOptions = { allow: parseEgressAllow(allow), resolve, timeoutMs: 5_000, ...options }
  return { ...createEgress(all), options: all, asked }
}

/**
 * The error of a fetch. The guard is asked alone first: if it allows what it must not, the test fails before
 * anything is sent to the owner of the address.
 */
export async function refusalOf(egress: Egress & { options: EgressOptions }, url: string): Promise<Error> {
  const guarded = await errorOf(async () => addressesOf(targetOf(url), egress.options))
  const fetched = await errorOf(() => egress.fetch(url))
  if (guarded.message !== fetched.message) throw new Error(`${guarded.message} is not ${fetched.message}`)
  return fetched
}

export async function errorOf(work: () => Promise<unknown>): Promise<Error> {
  let answer: unknown
  try {
    answer = await work()
  } catch (error) {
    return error as Error
  }
  throw new Error(`was allowed: ${answer}`)
}
