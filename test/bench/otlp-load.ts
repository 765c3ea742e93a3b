import { randomFillSync } from 'node:crypto'
import { createHistogram } from 'node:perf_hooks'
import { connect, wireRequest } from './connection.ts'
import type { Load, LoadResult } from './load.ts'
import { otlpBody, type Signal } from './otlp-bodies.ts'

/*
 * Reads a Load from standard input, sends OpenTelemetry exports with new ids to the path of its first request, and prints a
 * LoadResult.
 */

const ID_PREFIX_BYTES = 6
/** Any other response is an error or a partial success. */
const ACCEPTED = /^HTTP\/1\.1 200 [\s\S]*\r\ncontent-length: 0\r\n/i

async function send(load: Load): Promise<LoadResult> {
  const { path, key } = load.requests[0]!
  const tally = { calls: 0, failures: 0, firstFailure: null as string | null, max: 0 }
  const micros = createHistogram()
  const { bytes, idOffsets } = otlpBody(path.split('/').at(-1) as Signal)
  const startedAt = performance.now()
  const endsAt = startedAt + load.seconds * 1000

  const begin = () => {
    const request = wireRequest(path, key, 'application/x-protobuf', bytes)
    const bodyAt = request.length - bytes.length
    const prefix = Buffer.alloc(ID_PREFIX_BYTES)
    // Each id gets the same new prefix and keeps the rest, so ids stay distinct and spans keep their parents.
    const renew = () => {
      randomFillSync(prefix)
      for (const at of idOffsets) prefix.copy(request, bodyAt + at)
      return request
    }
    return connect(load.port, renew(), (answer, took) => {
      if (ACCEPTED.test(answer.toString('latin1'))) {
        tally.calls++
        micros.record(Math.max(1, Math.round(took * 1000)))
        tally.max = Math.max(tally.max, took)
      } else {
        tally.failures++
        tally.firstFailure ??= answer.toString('latin1')
      }
      return performance.now() < endsAt ? renew() : null
    })
  }
  await Promise.all(Array.from({ length: load.connections }, begin))
  const seconds = (performance.now() - startedAt) / 1000
  const [p50, p99] = [micros.percentile(50) / 1000, micros.percentile(99) / 1000]
  return { ...tally, callsPerSecond: tally.calls / seconds, p50, p99 }
}

process.stdout.write(JSON.stringify(await send(await Bun.stdin.json())))
