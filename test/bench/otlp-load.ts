import { randomFillSync } from 'node:crypto'
import { LatencyHistogram } from '../../src/demo/latency.ts'
import { connect, wireRequest } from './connection.ts'
import type { Load, LoadResult } from './load.ts'
import { otlpBody, type Signal } from './otlp-bodies.ts'

/*
 * Sends OpenTelemetry exports (a Load on standard input, of whose requests only path and key count), each with ids of its
 * own, and prints a LoadResult.
 */

const ID_PREFIX_BYTES = 6
/** Anything but an empty answer is a rejection. */
const ACCEPTED = /^HTTP\/1\.1 200 [\s\S]*\r\ncontent-length: 0\r\n/i

async function send(load: Load): Promise<LoadResult> {
  const { path, key } = load.requests[0]!
  const tally = { calls: 0, failures: 0, firstFailure: null as string | null, max: 0 }
  const latency = new LatencyHistogram()
  const { bytes, idsAt } = otlpBody(path.split('/').at(-1) as Signal)
  const startedAt = performance.now()
  const endsAt = startedAt + load.seconds * 1000

  const begin = () => {
    const request = wireRequest(path, key, 'application/x-protobuf', bytes)
    const bodyAt = request.length - bytes.length
    const prefix = Buffer.alloc(ID_PREFIX_BYTES)
    // The rest of each id stays, so that they differ and parents keep their children.
    const renew = () => {
      randomFillSync(prefix)
      for (const at of idsAt) prefix.copy(request, bodyAt + at)
      return request
    }
    return connect(load.port, renew(), (answer, took) => {
      if (ACCEPTED.test(answer.toString('latin1'))) {
        tally.calls++
        latency.add(took)
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
  const [p50, p99] = [latency.percentile(0.5), latency.percentile(0.99)]
  return { ...tally, callsPerSecond: tally.calls / seconds, p50, p99 }
}

process.stdout.write(JSON.stringify(await send(await Bun.stdin.json())))
