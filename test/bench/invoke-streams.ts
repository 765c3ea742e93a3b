import type { Socket } from 'bun'
import { wireRequest } from './connection.ts'
import { now, STAMP } from './invoke-stamps.ts'

/*
 * Streaming callers in their own process, on raw sockets: a client library would use more of the machine than the
 * service. Reads a `StreamPlan` (JSON on standard input) and prints `Streamed`. The tokens contain the time at which the
 * model sent them.
 */

export interface StreamPlan {
  readonly port: number
  readonly path: string
  readonly key: string
  readonly body: string
  /** Concurrent callers; they start one after the other within `spreadMs`. */
  readonly connections: number
  readonly spreadMs: number
  /** Streams of each caller, one after the other. */
  readonly streams: number
}

export interface Streamed {
  /** Milliseconds from the model to the caller: of the first token of each stream, and of all tokens. */
  readonly first: readonly number[]
  readonly all: readonly number[]
  /** The most streams open at the same time, each with at least one token. */
  readonly mostAtOnce: number
  readonly failures: number
  readonly firstFailure: string | null
}

/** The end of a chunked response. */
const LAST_CHUNK = '\r\n0\r\n\r\n'

async function stream(plan: StreamPlan): Promise<Streamed> {
  const { port, path, key, body, connections, spreadMs, streams } = plan
  const request = wireRequest(path, key, 'application/json', Buffer.from(body))
  const first: number[] = []
  const all: number[] = []
  let [open, mostAtOnce, failures] = [0, 0, 0]
  let firstFailure: string | null = null

  class Caller {
    readonly done = Promise.withResolvers<void>()
    private left = streams
    /** Data received since the last token. */
    private text = ''
    private tokens = 0
    private isStream = false

    begin(socket: Socket<Caller>): void {
      this.text = ''
      this.tokens = 0
      this.isStream = false
      this.left -= 1
      socket.write(request)
    }

    take(socket: Socket<Caller>, data: Buffer): void {
      const at = now()
      this.text += data.toString('latin1')
      this.isStream ||= this.text.startsWith('HTTP/1.1 200')
      // The last frame contains the whole text once more.
      const last = this.text.indexOf('event: done')
      let end = 0
      for (const { index, 0: token, 1: sentAt } of this.text.slice(0, last < 0 ? undefined : last).matchAll(STAMP)) {
        end = index + token.length
        if (this.tokens++ === 0) {
          first.push(at - Number(sentAt))
          mostAtOnce = Math.max(mostAtOnce, ++open)
        }
        all.push(at - Number(sentAt))
      }
      this.text = this.text.slice(end)
      if (this.text.endsWith(LAST_CHUNK) || !this.isStream) this.over(socket)
    }

    private over(socket: Socket<Caller>): void {
      if (this.tokens === 0) {
        failures++
        firstFailure ??= this.text
      } else open -= 1
      if (this.left > 0) this.begin(socket)
      else socket.end()
    }
  }

  const callers = Array.from({ length: connections }, () => new Caller())
  await Promise.all(
    callers.map(async (caller, index) => {
      if (spreadMs > 0) await Bun.sleep((index / connections) * spreadMs)
      await Bun.connect<Caller>({
        hostname: '127.0.0.1',
        port,
        data: caller,
        socket: {
          open: (socket) => socket.data.begin(socket),
          data: (socket, chunk) => socket.data.take(socket, chunk),
          close: (socket) => socket.data.done.resolve(),
        },
      })
      await caller.done.promise
    }),
  )
  return { first, all, mostAtOnce, failures, firstFailure }
}

process.stdout.write(JSON.stringify(await stream((await Bun.stdin.json()) as StreamPlan)))
