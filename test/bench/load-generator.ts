import type { Socket } from 'bun'
import { LatencyHistogram } from '../../src/demo/latency.ts'
import type { Load, LoadResult, WireRequest } from './load.ts'

/*
 * Sends a load (JSON on standard input) over keep-alive connections, each with one request in flight, and prints a
 * LoadResult. Speaks HTTP on raw sockets with prepared requests, because a client library would use more of the
 * machine than the measured server. It is as fast as `wrk -t1` (about 12 µs of CPU time per call).
 */

const HEADER_END = '\r\n\r\n'
const RUN_ID = '"run_id":"'
const UUID_LENGTH = 36

async function send(load: Load): Promise<LoadResult> {
  const requests = load.requests.map(encode)
  const tally = { calls: 0, failures: 0, firstFailure: null as string | null, max: 0 }
  const latency = new LatencyHistogram()
  let next = 0
  const startedAt = performance.now()
  const endsAt = startedAt + load.seconds * 1000

  function onAnswer(connection: Connection, answer: Buffer): Buffer | null {
    const now = performance.now()
    if (answer[9] === 0x32) {
      tally.calls++
      latency.add(now - connection.sentAt)
      if (now - connection.sentAt > tally.max) tally.max = now - connection.sentAt
    } else {
      tally.failures++
      tally.firstFailure ??= answer.toString('latin1')
    }
    if (now >= endsAt) return null
    const { request } = connection
    if (load.followUp !== undefined && request.followUp !== undefined && answer[9] === 0x32 && !connection.isFollowUp) {
      const id = answer.indexOf(RUN_ID) + RUN_ID.length
      answer.copy(connection.followUp(request.followUp), request.runIdAt, id, id + UUID_LENGTH)
      connection.isFollowUp = true
      return connection.followUpBytes
    }
    connection.isFollowUp = false
    connection.request = requests[next++ % requests.length]!
    return connection.request.bytes
  }

  const begin = async () => {
    await connect(load.port, requests[next++ % requests.length]!, onAnswer)
    if (performance.now() >= endsAt) return
    tally.failures++
    tally.firstFailure ??= 'the server closed the connection'
  }
  await Promise.all(Array.from({ length: load.connections }, begin))
  const seconds = (performance.now() - startedAt) / 1000
  const [p50, p99] = [latency.percentile(0.5), latency.percentile(0.99)]
  return { ...tally, callsPerSecond: tally.calls / seconds, p50, p99 }

  function encode(request: WireRequest): Encoded {
    if (load.followUp === undefined) return { bytes: wire(request), followUp: undefined, runIdAt: 0 }
    const followUp = wire({ ...load.followUp, key: request.key })
    return { bytes: wire(request), followUp, runIdAt: followUp.indexOf(RUN_ID) + RUN_ID.length }
  }
}

interface Encoded {
  readonly bytes: Buffer
  readonly followUp: Buffer | undefined
  /** The offset of the run id in the follow-up. */
  readonly runIdAt: number
}

function wire({ path, key, body }: WireRequest): Buffer {
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}${HEADER_END}${body}`,
  )
}

/** One connection and its request in flight. */
class Connection {
  sentAt = 0
  isFollowUp = false
  followUpBytes: Buffer = Buffer.alloc(0)
  private unsent: Buffer | null = null
  private received: Buffer = Buffer.alloc(0)

  constructor(
    public request: Encoded,
    private readonly onAnswer: (connection: Connection, answer: Buffer) => Buffer | null,
  ) {}

  /** The connection's own copy of the follow-up, to insert ids into. */
  followUp(original: Buffer): Buffer {
    if (this.followUpBytes.length !== original.length) this.followUpBytes = Buffer.alloc(original.length)
    original.copy(this.followUpBytes)
    return this.followUpBytes
  }

  send(socket: Socket<Connection>, bytes: Buffer): void {
    this.sentAt = performance.now()
    this.write(socket, bytes)
  }

  resume(socket: Socket<Connection>): void {
    if (this.unsent !== null) this.write(socket, this.unsent)
  }

  take(socket: Socket<Connection>, chunk: Buffer): void {
    this.received = this.received.length === 0 ? chunk : Buffer.concat([this.received, chunk])
    if (!isWhole(this.received)) return
    const answer = this.received
    this.received = Buffer.alloc(0)
    const bytes = this.onAnswer(this, answer)
    if (bytes === null) socket.end()
    else this.send(socket, bytes)
  }

  private write(socket: Socket<Connection>, bytes: Buffer): void {
    const written = socket.write(bytes)
    this.unsent = written < bytes.length ? bytes.subarray(Math.max(written, 0)) : null
  }
}

function isWhole(answer: Buffer): boolean {
  const end = answer.indexOf(HEADER_END)
  if (end < 0) return false
  const length = /content-length: (\d+)/i.exec(answer.toString('latin1', 0, end))
  if (length === null) throw new Error(`an answer without Content-Length:\n${answer.toString('latin1', 0, end)}`)
  return answer.length >= end + HEADER_END.length + Number(length[1])
}

/** Resolves when the connection has closed. */
async function connect(
  port: number,
  first: Encoded,
  onAnswer: (connection: Connection, answer: Buffer) => Buffer | null,
): Promise<void> {
  const closed = Promise.withResolvers<void>()
  await Bun.connect<Connection>({
    hostname: '127.0.0.1',
    port,
    data: new Connection(first, onAnswer),
    socket: {
      open: (socket) => socket.data.send(socket, first.bytes),
      data: (socket, chunk) => socket.data.take(socket, chunk),
      drain: (socket) => socket.data.resume(socket),
      close: () => closed.resolve(),
      error: (_socket, error) => closed.reject(error),
    },
  })
  return closed.promise
}

process.stdout.write(JSON.stringify(await send((await Bun.stdin.json()) as Load)))
