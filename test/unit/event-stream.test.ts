import { afterAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'bun'
import { BoundedEventStream, eventStreamResponse } from '../../src/base/http/event-stream.ts'
import { eventually } from '../support/eventually.ts'
import { seededRandom } from '../support/random.ts'

const QUEUE_BYTES = 64 * 1024
const SLOW_CONSUMER_MS = 1_000
/** More than the kernel buffers for a connection. */
const MANY_BYTES = 32 * 1024 * 1024

/** Writes numbered frames of random lengths until the stream is full, and goes on when it has room again. */
class Numbers {
  readonly stream: BoundedEventStream
  written = 0
  bytes = 0
  ended = 0
  private readonly random = seededRandom('event stream')

  constructor() {
    const owner = { drained: () => this.writeOn(), ended: () => void this.ended++, heartbeat: () => ': heartbeat\n\n' }
    this.stream = new BoundedEventStream(owner, { slowConsumerMs: SLOW_CONSUMER_MS, heartbeatMs: 60_000 })
  }

  writeOn(): void {
    while (!this.stream.isFull && !this.stream.isEnded && this.bytes < MANY_BYTES) {
      const text = `data: ${this.written++} ${'x'.repeat(this.random.int(0, 40_000))}\n\n`
      this.stream.write(this.random.int(0, 1) === 0 ? text : Buffer.from(text))
      this.bytes += text.length
    }
    if (this.bytes >= MANY_BYTES) this.stream.close()
  }
}

let opened: Numbers
/** What happens between the creation of the stream and its response. */
let beforeResponse: (numbers: Numbers) => unknown
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch() {
    opened = new Numbers()
    await beforeResponse(opened)
    return eventStreamResponse(opened.stream.body)
  },
  error: () => new Response(null, { status: 500 }),
})
afterAll(() => server.stop(true))

/** A client that does not read until it is told to. */
class Client {
  isClosed = false
  private socket!: Socket
  private readonly chunks: Buffer[] = []

  async open(): Promise<void> {
    const closed = () => {
      this.isClosed = true
    }
    this.socket = await connect({
      ...{ hostname: '127.0.0.1', port: server.port! },
      socket: { data: (_, chunk) => void this.chunks.push(Buffer.from(chunk)), close: closed, error: closed },
    })
    this.socket.pause()
    this.socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
  }

  resume(): void {
    this.socket.resume()
  }

  destroy(): void {
    this.socket.terminate()
  }

  /** The numbers of the frames received. */
  get numbers(): number[] {
    return [
      ...Buffer.concat(this.chunks)
        .toString('latin1')
        .matchAll(/data: (\d+) /g),
    ].map(([, number]) => Number(number))
  }

  get isComplete(): boolean {
    return Buffer.concat(this.chunks.slice(-2)).toString('latin1').endsWith('\r\n0\r\n\r\n')
  }
}

async function openedBy(
  before: (numbers: Numbers) => unknown = () => {},
): Promise<{ client: Client; numbers: Numbers }> {
  const reached = Promise.withResolvers<void>()
  beforeResponse = (numbers) => {
    reached.resolve()
    return before(numbers)
  }
  const client = new Client()
  await client.open()
  await reached.promise
  return { client, numbers: opened }
}

test('a client that pauses has a bounded queue, and then gets every frame, once and in order', async () => {
  const { client, numbers } = await openedBy()
  numbers.stream.write(': first\n\n')
  // The kernel takes some megabytes, then the stream is full.
  await eventually(() => {
    numbers.writeOn()
    expect(numbers.stream.isFull).toBe(true)
  })
  await Bun.sleep(50)
  expect(numbers.bytes).toBeLessThan(MANY_BYTES)
  expect(numbers.stream.queuedBytes).toBeGreaterThanOrEqual(QUEUE_BYTES)
  expect(numbers.stream.queuedBytes).toBeLessThan(QUEUE_BYTES + 41_000)
  client.resume()
  await eventually(() => client.isComplete)
  expect(numbers.stream.queuedBytes).toBe(0)
  expect(client.numbers).toEqual(Array.from({ length: numbers.written }, (_, number) => number))
  expect(numbers.ended).toBe(1)
})

test('what is written before the response begins is bounded and sent first; then the owner goes on', async () => {
  const { client, numbers } = await openedBy((early) => {
    early.writeOn()
    expect(early.stream.isFull).toBe(true)
    expect(early.stream.queuedBytes).toBeLessThan(QUEUE_BYTES + 41_000)
  })
  client.resume()
  await eventually(() => client.isComplete)
  expect(client.numbers).toEqual(Array.from({ length: numbers.written }, (_, number) => number))
})

test('a stream that is closed before its response begins is sent completely', async () => {
  beforeResponse = ({ stream }) => {
    stream.write('data: 0 only\n\n')
    stream.close()
    stream.write('data: 1 too late\n\n')
  }
  const response = await fetch(server.url)
  expect(await response.text()).toBe('data: 0 only\n\n')
})

test('a stream that is cut never looks complete, and gives up its queue', async () => {
  const early = await openedBy(({ stream }) => stream.cut(new Error('cut by the test')))
  early.client.resume()
  await eventually(() => early.client.isClosed)
  expect(early.client.isComplete).toBe(false)

  const { client, numbers } = await openedBy()
  await eventually(() => {
    numbers.writeOn()
    expect(numbers.stream.isFull).toBe(true)
  })
  numbers.stream.tick(performance.now() + SLOW_CONSUMER_MS / 2)
  expect(numbers.stream.isEnded).toBe(false)
  numbers.stream.tick(performance.now() + SLOW_CONSUMER_MS + 1)
  expect(numbers.stream.isEnded).toBe(true)
  client.resume()
  await eventually(() => client.isClosed)
  expect(client.isComplete).toBe(false)
  expect(numbers.ended).toBe(1)
})

test('the owner learns that the client has left: idle, while its queue is full, or before the response begins', async () => {
  const idle = await openedBy(({ stream }) => stream.write(': first\n\n'))
  idle.client.destroy()
  await eventually(() => idle.numbers.ended === 1)

  const full = await openedBy()
  await eventually(() => {
    full.numbers.writeOn()
    expect(full.numbers.stream.isFull).toBe(true)
  })
  full.client.destroy()
  await eventually(() => full.numbers.ended === 1)

  const left = Promise.withResolvers<void>()
  const early = await openedBy(() => left.promise)
  early.client.destroy()
  await Bun.sleep(20)
  left.resolve()
  await eventually(() => early.numbers.ended === 1)
})
