import { randomBytes } from 'node:crypto'
import { LatencyHistogram } from '../../src/demo/latency.ts'
import type { Load, LoadResult } from './load.ts'
import { otlpBody, type Signal } from './otlp-bodies.ts'

/*
 * Sends OpenTelemetry exports (a Load on standard input, of whose requests only path and key count), each with ids of its
 * own, and prints a LoadResult.
 */

const ID_PREFIX_BYTES = 6

async function send(load: Load): Promise<LoadResult> {
  const { path, key } = load.requests[0]!
  const tally = { calls: 0, failures: 0, firstFailure: null as string | null, max: 0 }
  const latency = new LatencyHistogram()
  const template = otlpBody(path.split('/').at(-1) as Signal)
  const startedAt = performance.now()
  const endsAt = startedAt + load.seconds * 1000

  const connection = async () => {
    const bytes = Buffer.from(template.bytes)
    while (performance.now() < endsAt) {
      const prefix = randomBytes(ID_PREFIX_BYTES)
      // The rest of each id stays, so that they differ and parents keep their children.
      for (const at of template.idsAt) prefix.copy(bytes, at)
      const sentAt = performance.now()
      const response = await fetch(`http://127.0.0.1:${load.port}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/x-protobuf' },
        body: Uint8Array.from(bytes),
      })
      const answer = await response.text()
      const took = performance.now() - sentAt
      // Anything but an empty answer is a rejection.
      if (response.status === 200 && answer === '') {
        tally.calls++
        latency.add(took)
        tally.max = Math.max(tally.max, took)
      } else {
        tally.failures++
        tally.firstFailure ??= `${response.status} ${answer}`
      }
    }
  }
  await Promise.all(Array.from({ length: load.connections }, connection))
  const seconds = (performance.now() - startedAt) / 1000
  return {
    ...tally,
    callsPerSecond: tally.calls / seconds,
    p50: latency.percentile(0.5),
    p99: latency.percentile(0.99),
  }
}

process.stdout.write(JSON.stringify(await send(await Bun.stdin.json())))
