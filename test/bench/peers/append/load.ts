import { createHistogram } from 'node:perf_hooks'
import type { Socket } from 'bun'
import type { LoadResult } from '../../load.ts'
import type { AppendPlan, ConnectionPlan } from './appender.ts'
import { type AnswerReader, readerOf } from './readers.ts'

/*
 * Sends the requests of a plan (JSON on standard input) over its connections, each with one request in flight, and prints
 * a LoadResult. All requests are prepared bytes and all protocols are spoken on raw sockets, so every peer is measured
 * with the same, small share of the machine for its client.
 */

interface Task {
  readonly plan: AppendPlan
  readonly seconds: number
}

/** What all connections have in common. */
interface Load {
  readonly plan: AppendPlan
  /** When no further request is sent; unknown until all connections are greeted. */
  endsAt: number
  record(answer: true | string, milliseconds: number): void
}

/** A connection with one request in flight. */
class Connection {
  private readonly requests: readonly Buffer[]
  private readonly greeted = Promise.withResolvers<void>()
  private readonly closed = Promise.withResolvers<void>()
  private socket!: Socket
  private reader!: AnswerReader
  private unsent: Buffer | null = null
  private next = 0
  private sentAt = 0
  private isGreeted = false

  constructor(
    private readonly load: Load,
    private readonly own: ConnectionPlan,
  ) {
    this.requests = own.requests.map((text) => Buffer.from(text, 'base64'))
  }

  /** Connects, and resolves when the server has answered the greeting. */
  async open(): Promise<void> {
    const { protocol, target, answerParts = 1 } = this.load.plan
    // Bun's types tell the two kinds of address apart only where it is written out.
    const address = ('unix' in target ? target : { hostname: '127.0.0.1', ...target }) as { unix: string }
    this.socket = await Bun.connect({
      ...address,
      socket: {
        data: (_, chunk) => this.take(chunk),
        drain: () => void (this.unsent && this.write(this.unsent)),
        close: () => this.closed.resolve(),
        error: (_, error) => this.closed.reject(error),
      },
    })
    this.reader = readerOf(protocol, answerParts, (text) => void this.socket.write(text))
    if (this.own.greeting === undefined) {
      this.greet(true)
      return
    }
    this.write(Buffer.from(this.own.greeting, 'base64'))
    const cutOff = async () => {
      await this.closed.promise
      throw new Error('the server closed the connection')
    }
    await Promise.race([this.greeted.promise, cutOff()])
  }

  /** Sends requests until the load ends. */
  async run(): Promise<void> {
    this.request()
    await this.closed.promise
    if (performance.now() < this.load.endsAt) this.load.record('the server closed the connection', 0)
  }

  private take(chunk: Buffer): void {
    const answer = this.reader.take(chunk)
    if (answer === false) return
    if (!this.isGreeted) this.greet(answer)
    else this.answered(answer)
  }

  private answered(answer: true | string): void {
    this.load.record(answer, performance.now() - this.sentAt)
    if (performance.now() < this.load.endsAt) this.request()
    else this.socket.end()
  }

  private greet(answer: true | string): void {
    this.isGreeted = true
    if (answer === true) this.greeted.resolve()
    else this.greeted.reject(new Error(answer))
  }

  private request(): void {
    this.sentAt = performance.now()
    this.write(this.requests[this.next++ % this.requests.length]!)
  }

  private write(bytes: Buffer): void {
    const written = this.socket.write(bytes)
    this.unsent = written < bytes.length ? bytes.subarray(Math.max(written, 0)) : null
  }
}

async function send({ plan, seconds }: Task): Promise<LoadResult> {
  const tally = { calls: 0, failures: 0, firstFailure: null as string | null, max: 0 }
  const micros = createHistogram()
  const load: Load = {
    plan,
    endsAt: Number.POSITIVE_INFINITY,
    record(answer, milliseconds) {
      if (answer === true) {
        tally.calls++
        micros.record(Math.max(1, Math.round(milliseconds * 1000)))
        tally.max = Math.max(tally.max, milliseconds)
      } else {
        tally.failures++
        tally.firstFailure ??= answer
      }
    },
  }
  const connections = plan.connections.map((own) => new Connection(load, own))
  await Promise.all(connections.map((connection) => connection.open()))
  const startedAt = performance.now()
  load.endsAt = startedAt + seconds * 1000
  await Promise.all(connections.map((connection) => connection.run()))
  const took = (performance.now() - startedAt) / 1000
  const [p50, p99] = [micros.percentile(50) / 1000, micros.percentile(99) / 1000]
  return { ...tally, callsPerSecond: tally.calls / took, p50, p99 }
}

process.stdout.write(JSON.stringify(await send((await Bun.stdin.json()) as Task)))
