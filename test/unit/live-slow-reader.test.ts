import { expect, test } from 'bun:test'
import { WebSocketConnection } from '../../src/feeds/live/websocket.ts'

const SLOW_CONSUMER_MS = 10_000
const TICK_MS = 1_000
const MESSAGE = 'x'.repeat(16 * 1024)

/**
 * A socket as Bun and Linux have it: what the client has not read stays in the queue until something is sent, or until the
 * kernel reports that a third of its buffer is free, which does not happen here.
 */
class Socket {
  queued = 0
  closeCode: number | undefined
  /** Bytes that the kernel has room for. */
  private room = 4 * 1024 * 1024

  send(text: string): number {
    return this.pass(text.length)
  }

  ping(): number {
    return this.pass(2)
  }

  getBufferedAmount(): number {
    return this.queued
  }

  close(code: number): void {
    this.closeCode = code
  }

  /** The client has read so much. */
  read(bytes: number): void {
    this.room += bytes
  }

  private pass(bytes: number): number {
    this.queued += bytes
    const passed = Math.min(this.room, this.queued)
    this.room -= passed
    this.queued -= passed
    return this.queued === 0 ? bytes : -1
  }
}

/** Sends whenever there is room, for so many seconds, to a client that reads so much in each. */
function served(bytesPerSecond: number, seconds: number): Socket {
  const socket = new Socket()
  const source = { mayLag: false, retain: () => () => {}, hub: {}, journal: {} }
  const connections = { add: () => {}, remove: () => {} }
  const deps = { source, connections, takeBudget: () => {}, slowConsumerMs: SLOW_CONSUMER_MS }
  const server = { publish: () => 0, url: new URL('http://localhost') }
  const connection = new WebSocketConnection(deps as never, {} as never, server)
  connection.open(socket as never)
  const startMs = performance.now()
  for (let second = 1; second <= seconds && socket.closeCode === undefined; second++) {
    while (!connection.isFull) connection.transmit(MESSAGE)
    socket.read(bytesPerSecond)
    connection.tick(startMs + second * TICK_MS)
  }
  return socket
}

test('a client that reads slowly, but steadily, is not taken for one that does not read', () => {
  expect(served(50_000, 60).closeCode).toBeUndefined()
  expect(served(2_000, 60).closeCode).toBeUndefined()
})

test('a client that does not read is closed', () => {
  const socket = served(0, 60)
  expect(socket.closeCode).toBe(4008)
  expect(socket.queued).toBeLessThan(128 * 1024)
})
