import { createHistogram } from 'node:perf_hooks'
import { connect, wireRequest } from './connection.ts'
import type { Load, LoadResult, WireRequest } from './load.ts'

/*
 * Sends a load (JSON on standard input) over keep-alive connections, each with one request in flight, and prints a
 * LoadResult. Speaks HTTP on raw sockets with prepared requests, because a client library would use more of the
 * machine than the measured server. It is as fast as `wrk -t1` (about 12 µs of CPU time per call).
 */

const RUN_ID = '"run_id":"'
const UUID_LENGTH = 36

async function send(load: Load): Promise<LoadResult> {
  const requests = load.requests.map(encode)
  const tally = { calls: 0, failures: 0, firstFailure: null as string | null, max: 0 }
  const micros = createHistogram()
  let next = 0
  const startedAt = performance.now()
  const endsAt = startedAt + load.seconds * 1000

  const begin = async () => {
    let request = requests[next++ % requests.length]!
    let isFollowUp = false
    // The connection's own copy of the follow-up, to insert ids into.
    let followUpBytes = Buffer.alloc(0)
    await connect(load.port, request.bytes, (answer, took) => {
      const isOk = answer[9] === 0x32
      if (isOk) {
        tally.calls++
        micros.record(Math.max(1, Math.round(took * 1000)))
        tally.max = Math.max(tally.max, took)
      } else {
        tally.failures++
        tally.firstFailure ??= answer.toString('latin1')
      }
      if (performance.now() >= endsAt) return null
      if (request.followUp !== undefined && isOk && !isFollowUp) {
        const id = answer.indexOf(RUN_ID) + RUN_ID.length
        if (followUpBytes.length !== request.followUp.length) followUpBytes = Buffer.alloc(request.followUp.length)
        request.followUp.copy(followUpBytes)
        answer.copy(followUpBytes, request.runIdAt, id, id + UUID_LENGTH)
        isFollowUp = true
        return followUpBytes
      }
      isFollowUp = false
      request = requests[next++ % requests.length]!
      return request.bytes
    })
    if (performance.now() >= endsAt) return
    tally.failures++
    tally.firstFailure ??= 'the server closed the connection'
  }
  await Promise.all(Array.from({ length: load.connections }, begin))
  const seconds = (performance.now() - startedAt) / 1000
  const [p50, p99] = [micros.percentile(50) / 1000, micros.percentile(99) / 1000]
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
  return wireRequest(path, key, 'application/json', Buffer.from(body))
}

process.stdout.write(JSON.stringify(await send((await Bun.stdin.json()) as Load)))
