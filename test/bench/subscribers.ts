import { connect, type Socket } from 'bun'

/*
 * Many subscribers of one server, in their own process: raw sockets that only count what they receive,
 * because a client library would use more of the machine than the measured server. Reads a `Plan`, one
 * line of JSON on standard input, prints `ready`, and answers each further line: `count` with the received totals,
 * `delay <n>` with the delays of n messages that it triggers itself, in milliseconds.
 */

/** The task of the subscribers. */
export interface Plan {
  readonly port: number
  /** Requests that open the subscribers, in turn; for a WebSocket without the upgrade headers. */
  readonly requests: readonly string[]
  /** Sent once a WebSocket is open; null for event streams. */
  readonly messages: readonly string[] | null
  /** How many of the messages each WebSocket sends; 1 by default. If set, activities are counted too. */
  readonly perConnection?: number
  readonly count: number
  /** The request that sends one message to every subscriber. */
  readonly trigger: string
}

export interface Counted {
  /** Of all subscribers. */
  readonly bytes: number
  /** Of the first one, as a sample: frames of a WebSocket, chunks of a stream. */
  readonly frames: number
  /** Activities of all subscribers, if they are counted. */
  readonly items: number
}

const UPGRADE =
  'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
const PAUSE_MS = 10
const ARRIVAL_MS_MAX = 5_000
const ITEM = Buffer.from('"received_at"')

const received = { bytes: 0, frames: 0, items: 0 }
/** When each subscriber received something since the last reset, by index. */
let arrivals: number[] = []
let arrived = 0

async function open(plan: Plan): Promise<void> {
  for (let index = 0; index < plan.count; index++) {
    const request = plan.requests[index % plan.requests.length]!
    const messages = messagesOf(plan, index)
    const count = plan.perConnection === undefined ? undefined : itemCounter()
    const opened = Promise.withResolvers<void>()
    let isOpen = false
    const sample = index > 0 ? undefined : plan.messages === null ? chunkCounter() : frameCounter()
    await connect({
      hostname: '127.0.0.1',
      port: plan.port,
      socket: {
        open(socket) {
          socket.write(messages === undefined ? `${request}\r\n` : `${request}${UPGRADE}\r\n`)
        },
        data(socket, data) {
          if (!isOpen) {
            isOpen = true
            if (messages !== undefined) send(socket, messages)
            opened.resolve()
          } else sample?.(data)
          count?.(data)
          received.bytes += data.length
          if (arrivals[index] === 0) {
            arrivals[index] = performance.now()
            arrived++
          }
        },
      },
    })
    await opened.promise
  }
}

/** Counts the frames of a WebSocket from their lengths. */
function frameCounter(): (data: Buffer) => void {
  let head = Buffer.alloc(0)
  let left = 0
  return (data) => {
    let at = 0
    while (at < data.length) {
      if (left > 0) {
        const step = Math.min(left, data.length - at)
        left -= step
        at += step
        continue
      }
      head = Buffer.concat([head, data.subarray(at, at + 1)])
      at++
      const length = head.length < 2 ? 0 : head[1]! & 0x7f
      const headLength = head.length < 2 ? 2 : length < 126 ? 2 : length === 126 ? 4 : 10
      if (head.length < headLength) continue
      left = length < 126 ? length : length === 126 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2))
      received.frames++
      head = Buffer.alloc(0)
    }
  }
}

/** Counts the chunks of an HTTP response by their first lines; split ones are not counted. */
function chunkCounter(): (data: Buffer) => void {
  return (data) => {
    received.frames += data.toString('latin1').match(/(^|\r\n)[0-9a-f]+\r\n/g)?.length ?? 0
  }
}

function messagesOf({ messages, perConnection = 1 }: Plan, index: number): string[] | undefined {
  if (messages === null) return undefined
  return Array.from({ length: perConnection }, (_, i) => messages[(index * perConnection + i) % messages.length]!)
}

/** Counts activities by a text that occurs once in each, even if it is split. */
function itemCounter(): (data: Buffer) => void {
  let end = Buffer.alloc(0)
  return (data) => {
    const bytes = Buffer.concat([end, data])
    let at = bytes.indexOf(ITEM)
    for (; at >= 0; at = bytes.indexOf(ITEM, at + ITEM.length)) received.items++
    // Too short to contain another one.
    end = bytes.subarray(Math.max(0, bytes.length - ITEM.length + 1))
  }
}

/** Sends text frames; empty texts are skipped. */
function send(socket: Socket, texts: readonly string[]): void {
  for (const text of texts) if (text !== '') socket.write(textFrame(text))
}

/** A text frame, masked with zeros. */
function textFrame(text: string): Buffer {
  const length = Buffer.byteLength(text)
  const head = length < 126 ? [0x81, 0x80 | length] : [0x81, 0xfe, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), Buffer.from(text)])
}

/** From sending a trigger to the first byte at each subscriber. */
async function delays(plan: Plan, times: number): Promise<number[]> {
  const all: number[] = []
  const call = await caller(plan)
  for (let i = 0; i < times; i++) {
    await Bun.sleep(PAUSE_MS)
    arrivals = new Array(plan.count).fill(0)
    arrived = 0
    const sentAt = performance.now()
    await call()
    const deadline = performance.now() + ARRIVAL_MS_MAX
    while (arrived < plan.count && performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve))
    for (const at of arrivals) all.push(at === 0 ? ARRIVAL_MS_MAX : at - sentAt)
  }
  return all
}

/** Sends the trigger on its own connection; resolves with the response. */
async function caller({ port, trigger }: Plan): Promise<() => Promise<void>> {
  let answered = Promise.withResolvers<void>()
  const socket = await connect({
    hostname: '127.0.0.1',
    port,
    socket: { data: () => answered.resolve() },
  })
  return () => {
    answered = Promise.withResolvers()
    socket.write(trigger)
    return answered.promise
  }
}

let plan: Plan | undefined
for await (const line of console) {
  if (plan === undefined) {
    plan = JSON.parse(line) as Plan
    await open(plan)
    process.stdout.write('"ready"\n')
  } else if (line === 'count') process.stdout.write(`${JSON.stringify(received)}\n`)
  else process.stdout.write(`${JSON.stringify(await delays(plan, Number(line.slice('delay '.length))))}\n`)
}
