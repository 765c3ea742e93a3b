import { connect, type Socket } from 'bun'
import { createParser } from 'eventsource-parser'

/*
 * Feeds on raw sockets. These clients do what no library lets a test do: stop reading, so that the
 * service's queue fills up, and disconnect at any moment.
 */

/** The address of the service, and the credentials. */
export interface FeedAddress {
  /** The service's URL: `http://host:port`, or `unix:path`. */
  readonly url: string
  /** As `Name: value`, for example a key. */
  readonly headers: readonly string[]
}

/** One frame of an event stream; comments are skipped. */
export interface StreamFrame {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** A connection, once the service has answered its request. */
export interface RawFeed {
  /** Stops reading until {@link resume}: data fills the kernel's buffers, then the service's. */
  pause(): void
  resume(): void
  /** Disconnects without notice. */
  destroy(): void
  readonly isClosed: boolean
}

export interface RawWebSocket extends RawFeed {
  /** Sends a message of up to 64 KiB. */
  send(message: object): void
  /** The code of the close frame; undefined until there is one. */
  readonly closeCode: number | undefined
}

/** @throws Error if the status is not 101 */
export async function openWebSocket(
  { url, headers }: FeedAddress,
  path: string,
  onMessage: (text: string) => void,
): Promise<RawWebSocket> {
  const messages = new MessageReader(onMessage)
  const connection = new Connection(messages)
  await connection.open(url, path, [...headers, ...UPGRADE], 101)
  return {
    pause: () => connection.pause(),
    resume: () => connection.resume(),
    destroy: () => connection.destroy(),
    send: (message) => connection.write(textFrame(JSON.stringify(message))),
    get isClosed() {
      return connection.isClosed
    },
    get closeCode() {
      return messages.closeCode
    },
  }
}

/** @throws Error if the status is not 200 */
export async function openEventStream(
  { url, headers }: FeedAddress,
  path: string,
  onFrame: (frame: StreamFrame) => void,
): Promise<RawFeed> {
  const decoder = new TextDecoder()
  const parser = createParser({
    onEvent({ id, event, data }) {
      if (id !== undefined && event !== undefined) onFrame({ id, event, data })
    },
  })
  const connection = new Connection(new ChunkReader((bytes) => parser.feed(decoder.decode(bytes, { stream: true }))))
  await connection.open(url, path, headers, 200)
  return connection
}

const UPGRADE = [
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

/** Parses the bytes of a connection. `take` consumes what it can from the front and returns the number of bytes. */
interface Reader {
  /** Called only once there are this many bytes. */
  readonly needs: number
  take(bytes: Buffer): number
}

class Connection implements RawFeed {
  isClosed = false
  private socket: Socket | undefined
  private readonly answered = Promise.withResolvers<string>()
  private isAnswered = false
  private pieces: Buffer[] = []
  private length = 0

  constructor(private readonly reader: Reader) {}

  async open(url: string, path: string, headers: readonly string[], status: number): Promise<void> {
    const { protocol, host, hostname, port, pathname } = new URL(url)
    const socket = {
      data: (_socket: Socket, bytes: Buffer) => this.received(bytes),
      error: () => this.closed(),
      close: () => this.closed(),
    }
    const isUnix = protocol === 'unix:'
    this.socket = await (isUnix
      ? connect({ unix: pathname, socket })
      : connect({ hostname, port: Number(port), socket }))
    this.write(`GET ${path} HTTP/1.1\r\n${[`Host: ${host || 'localhost'}`, ...headers].join('\r\n')}\r\n\r\n`)
    const head = await this.answered.promise
    if (head.startsWith(`HTTP/1.1 ${status} `)) return
    this.destroy()
    throw new Error(`no feed: ${head}`)
  }

  write(bytes: Uint8Array | string): void {
    this.socket?.write(bytes)
  }

  pause(): void {
    this.socket?.pause()
  }

  resume(): void {
    this.socket?.resume()
  }

  destroy(): void {
    this.isClosed = true
    this.socket?.terminate()
  }

  private closed(): void {
    this.isClosed = true
    this.answered.reject(new Error('the connection was closed without an answer'))
  }

  private received(bytes: Buffer): void {
    if (this.isClosed) return
    this.pieces.push(bytes)
    this.length += bytes.length
    if (!this.isAnswered) this.readHead()
    if (this.isAnswered && this.length >= this.reader.needs) this.read()
  }

  private readHead(): void {
    const bytes = this.joined()
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0) return
    this.keep(bytes.subarray(end + 4))
    this.isAnswered = true
    this.answered.resolve(bytes.toString('latin1', 0, end))
  }

  private read(): void {
    let bytes = this.joined()
    while (bytes.length >= this.reader.needs) {
      const taken = this.reader.take(bytes)
      if (taken === 0) break
      bytes = bytes.subarray(taken)
    }
    this.keep(bytes)
  }

  private joined(): Buffer {
    return this.pieces.length === 1 ? this.pieces[0] : Buffer.concat(this.pieces)
  }

  private keep(bytes: Buffer): void {
    this.pieces = bytes.length === 0 ? [] : [bytes]
    this.length = bytes.length
  }
}

/** Messages of a WebSocket server: neither masked nor fragmented. */
class MessageReader implements Reader {
  needs = 2
  closeCode: number | undefined

  constructor(private readonly onMessage: (text: string) => void) {}

  take(bytes: Buffer): number {
    const short = bytes[1] & 0x7f
    const head = short === 126 ? 4 : short === 127 ? 10 : 2
    if (bytes.length < head) return this.wait(head)
    const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short
    const end = head + length
    if (bytes.length < end) return this.wait(end)
    const operation = bytes[0] & 0x0f
    if (operation === TEXT) this.onMessage(bytes.toString('utf8', head, end))
    else if (operation === CLOSE) this.closeCode = bytes.readUInt16BE(head)
    this.needs = 2
    return end
  }

  private wait(bytes: number): 0 {
    this.needs = bytes
    return 0
  }
}

const TEXT = 1
const CLOSE = 8

/** A text frame of a client, masked with zeros. */
function textFrame(text: string): Buffer {
  const length = Buffer.byteLength(text)
  const head = length < 126 ? [0x81, 0x80 | length] : [0x81, 0xfe, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), Buffer.from(text)])
}

/** A chunked body. Passes on the content of each chunk as it arrives. */
class ChunkReader implements Reader {
  needs = 1

  constructor(private readonly onContent: (bytes: Buffer) => void) {}

  take(bytes: Buffer): number {
    const lineEnd = bytes.indexOf('\r\n')
    if (lineEnd < 0) return 0
    const start = lineEnd + 2
    const end = start + Number.parseInt(bytes.toString('latin1', 0, lineEnd), 16)
    this.needs = end + 2
    if (bytes.length < this.needs) return 0
    this.needs = 1
    this.onContent(bytes.subarray(start, end))
    return end + 2
  }
}
