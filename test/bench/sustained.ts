import { runLoad } from './load.ts'
import type { Bench } from './parts.ts'
import { quiet } from './quiet.ts'
import { median, ms, whole } from './report.ts'
import { type BenchService, eventsLoad } from './servers.ts'

const EVENTS_PER_CALL = 100
const CONNECTIONS = 64
const SUSTAINED_SECONDS_MIN = 15
const SUSTAINED_TARGET = 0.25
const SAMPLE_MS = 1_000
const DRAIN_MS_MAX = 60_000
const POLL_MS = 10

/** The ingest load for so long that loading into SQL must keep up with it. */
export async function measureSustained({ service, report, seconds, rounds, barePort }: Bench): Promise<void> {
  const duration = Math.max(SUSTAINED_SECONDS_MIN, seconds)
  report.heading(`sustained: ${EVENTS_PER_CALL} events a call, ${CONNECTIONS} connections, for ${duration} s, into SQL`)
  const bareLoad = eventsLoad(service, await barePort(), EVENTS_PER_CALL, { connections: CONNECTIONS, seconds })
  const bare: number[] = []
  const measureBare = async () => {
    for (let round = 0; round < Math.ceil(rounds / 2); round++) {
      await quiet(service)
      bare.push((await runLoad(bareLoad)).callsPerSecond * EVENTS_PER_CALL)
    }
  }
  await measureBare()
  await quiet(service)
  const before = await countEvents(service)
  const over = new AbortController()
  const samples = sampleBacklog(service, over.signal)
  const load = eventsLoad(service, service.port, EVENTS_PER_CALL, { connections: CONNECTIONS, seconds: duration })
  const result = await runLoad(load)
  const queryable = (await countEvents(service)) - before
  over.abort()
  const drainMs = await drain(service)
  await measureBare()

  const acknowledged = result.calls * EVENTS_PER_CALL
  const inSql = (await countEvents(service)) - before
  report.line(`bare     ${whole(median(bare))} events/s`)
  report.line(
    `service  ${whole(acknowledged / duration)} events/s acknowledged, p99 ${ms(result.p99)}, ${result.failures} failed`,
  )
  report.line(`in SQL   ${whole(queryable / duration)} events/s when the load ended; the rest ${ms(drainMs)} later`)
  report.line(`backlog, a sample a second: ${(await samples).map(whole).join(' ')} rows`)
  report.line(`at last ${whole(inSql)} events in SQL of ${whole(acknowledged)} acknowledged`)
  const ratio = queryable / duration / median(bare)
  const text = `sustained into SQL: ${ratio.toFixed(2)} of the bare server, target ${SUSTAINED_TARGET}`
  report.target(text, ratio >= SUSTAINED_TARGET)
}

async function countEvents(service: BenchService): Promise<number> {
  const { rows } = (await service.call('POST', '/api/v1/query', { query: 'select count() as n from events' })) as {
    rows: { n: number | string }[]
  }
  return Number(rows[0]!.n)
}

async function sampleBacklog(service: BenchService, over: AbortSignal): Promise<number[]> {
  const samples: number[] = []
  while (!over.aborted) {
    samples.push(await service.backlog())
    await Bun.sleep(SAMPLE_MS)
  }
  return samples
}

async function drain(service: BenchService): Promise<number> {
  const startedAt = performance.now()
  while ((await service.backlog()) > 0 && performance.now() - startedAt < DRAIN_MS_MAX) await Bun.sleep(POLL_MS)
  return performance.now() - startedAt
}
