import type { Socket } from 'bun'

const HEADER_END = '\r\n\r\n'

/** A request in the bytes of HTTP/1.1. */
export function wireRequest(path: string, key: string, contentType: string, body: Uint8Array): Buffer {
  const head =
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: ${contentType}\r\nContent-Length: ${body.length}${HEADER_END}`
  return Buffer.concat([Buffer.from(head), body])
}

/** Answers a response with the next request; null closes the connection. */
export type OnAnswer = (answer: Buffer, milliseconds: number) => Buffer | null

/** A keep-alive connection with one request in flight. */
class Connection {
  private sentAt = 0
  private unsent: Buffer | null = null
  private received: Buffer = Buffer.alloc(0)

  constructor(private readonly onAnswer: OnAnswer) {}

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
    const bytes = this.onAnswer(answer, performance.now() - this.sentAt)
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

/** Sends `first`, then what `onAnswer` returns. Resolves when the connection has closed. */
export async function connect(port: number, first: Buffer, onAnswer: OnAnswer): Promise<void> {
  const closed = Promise.withResolvers<void>()
  await Bun.connect<Connection>({
    hostname: '127.0.0.1',
    port,
    data: new Connection(onAnswer),
    socket: {
      open: (socket) => socket.data.send(socket, first),
      data: (socket, chunk) => socket.data.take(socket, chunk),
      drain: (socket) => socket.data.resume(socket),
      close: () => closed.resolve(),
      error: (_socket, error) => closed.reject(error),
    },
  })
  return closed.promise
}
