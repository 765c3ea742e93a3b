import { randomBytes, randomFillSync } from 'node:crypto'
import { createHistogram } from 'node:perf_hooks'
import { connect, wireRequest } from './connection.ts'
import type { Load, LoadResult, WireRequest } from './load.ts'
import { otlpBody } from './otlp-bodies.ts'

/*
 * Sends a load (JSON on standard input) over keep-alive connections, each with one request in flight, and prints a
 * LoadResult. Speaks HTTP on raw sockets with prepared requests, because a client library would use more of the
 * machine than the measured server. It is as fast as `wrk -t1` (about 12 µs of CPU time per call).
 */

const RUN_ID = '"run_id":"'
const UUID_LENGTH = 36
const ID_PREFIX_BYTES = 6
/** Any other response to an export is an error or a partial success. */
const EXPORTED = /^HTTP\/1\.1 200 [\s\S]*\r\ncontent-length: 0\r\n/i

/** What one connection sends. */
interface Sender {
  isOk(answer: Buffer): boolean
  /** @param answer to the request before; undefined for the first one, and after a failure */
  next(answer: Buffer | undefined): Buffer
}

async function send(load: Load): Promise<LoadResult> {
  const open =
    load.otlp !== undefined
      ? senderOfExports(load, load.otlp)
      : load.freshIds !== undefined
        ? senderOfFresh(load, load.freshIds)
        : senderOfRequests(load)
  const tally = { calls: 0, failures: 0, firstFailure: null as string | null, max: 0 }
  const micros = createHistogram()
  const startedAt = performance.now()
  const endsAt = startedAt + load.seconds * 1000
  let left = load.calls ?? Number.POSITIVE_INFINITY
  const isOver = () => left <= 0 || performance.now() >= endsAt

  const begin = async () => {
    left--
    const sender = open()
    await connect(load.port, sender.next(undefined), (answer, took) => {
      const isOk = sender.isOk(answer)
      if (isOk) {
        tally.calls++
        micros.record(Math.max(1, Math.round(took * 1000)))
        tally.max = Math.max(tally.max, took)
      } else {
        tally.failures++
        tally.firstFailure ??= answer.toString('latin1')
      }
      if (isOver()) return null
      left--
      return sender.next(isOk ? answer : undefined)
    })
    if (isOver()) return
    tally.failures++
    tally.firstFailure ??= 'the server closed the connection'
  }
  await Promise.all(Array.from({ length: load.connections }, begin))
  const seconds = (performance.now() - startedAt) / 1000
  const [p50, p99] = [micros.percentile(50) / 1000, micros.percentile(99) / 1000]
  return { ...tally, callsPerSecond: tally.calls / seconds, p50, p99 }
}

/** The requests of a load, cyclically over all connections, each with its follow-up. */
function senderOfRequests({ requests, followUp }: Load): () => Sender {
  const encoded = requests.map((request) => {
    const after = followUp && wire({ ...followUp, key: request.key })
    // The offset of the run id in the follow-up.
    return { bytes: wire(request), followUp: after, runIdAt: (after?.indexOf(RUN_ID) ?? 0) + RUN_ID.length }
  })
  let next = 0
  return () => {
    let request = encoded[next % encoded.length]!
    let isFollowUp = true
    // The connection's own copy of the follow-up, to insert ids into.
    let own = Buffer.alloc(0)
    return {
      isOk: (answer) => answer[9] === 0x32,
      next(answer) {
        if (request.followUp !== undefined && answer !== undefined && !isFollowUp) {
          const id = answer.indexOf(RUN_ID) + RUN_ID.length
          if (own.length !== request.followUp.length) own = Buffer.alloc(request.followUp.length)
          request.followUp.copy(own)
          answer.copy(own, request.runIdAt, id, id + UUID_LENGTH)
          isFollowUp = true
          return own
        }
        isFollowUp = false
        request = encoded[next++ % encoded.length]!
        return request.bytes
      },
    }
  }
}

/** One export, with new ids each time. */
function senderOfExports({ requests: [request] }: Load, signal: 'traces' | 'logs'): () => Sender {
  const { path, key } = request!
  const { bytes, idOffsets } = otlpBody(signal)
  return () => {
    const request = wireRequest(path, key, 'application/x-protobuf', bytes)
    const bodyAt = request.length - bytes.length
    const prefix = Buffer.alloc(ID_PREFIX_BYTES)
    return {
      isOk: (answer) => EXPORTED.test(answer.toString('latin1')),
      // Each id gets the same new prefix and keeps the rest, so ids stay distinct and spans keep their parents.
      next() {
        randomFillSync(prefix)
        for (const at of idOffsets) prefix.copy(request, bodyAt + at)
        return request
      },
    }
  }
}

/** Requests with new ids each time: everything that begins with `marker`. An answer that lists errors is a failure. */
function senderOfFresh({ requests }: Load, marker: string): () => Sender {
  let next = 0
  return () => {
    const bytes = wire(requests[next++ % requests.length]!)
    const offsets: number[] = []
    for (let at = bytes.indexOf(marker); at >= 0; at = bytes.indexOf(marker, at + marker.length)) offsets.push(at)
    return {
      isOk: (answer) => answer[9] === 0x32 && answer.includes('"errors":[]'),
      next() {
        const fresh = randomBytes(marker.length / 2).toString('hex')
        for (const at of offsets) bytes.write(fresh, at, 'latin1')
        return bytes
      },
    }
  }
}

function wire({ path, key, body }: WireRequest): Buffer {
  return wireRequest(path, key, 'application/json', Buffer.from(body))
}

process.stdout.write(JSON.stringify(await send((await Bun.stdin.json()) as Load)))
