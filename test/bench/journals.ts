import type { LogJournal } from '../../src/stores/journal/log/log-journal.ts'
import type { EventBatch } from '../../src/stores/journal/rows.ts'
import { batchOf, runRef } from '../support/events.ts'
import { NatsRig, openLocal } from '../support/journals.ts'
import { hasNats, type NatsServer, natsCluster, natsConnection, natsServer } from '../support/nats.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { eventBodies } from './bodies.ts'
import type { Bench } from './parts.ts'
import { median, whole } from './report.ts'

const EVENTS_PER_CALL = 100
const CALLS_AT_ONCE = 64
const RELEASE_MS = 20
const TARGETS = { 1: 0.4, 3: 0.25 } as const

/** Appends to the journal in a JetStream stream, on one server and on three, compared with local files. */
export async function measureJournals({ report, rounds, seconds }: Bench): Promise<void> {
  report.heading(`journals: appends of ${EVENTS_PER_CALL} events, ${CALLS_AT_ONCE} at once, without HTTP`)
  if (!hasNats) return report.line('nats-server is not installed')
  const batches = eventBodies([''], EVENTS_PER_CALL).map((body) => batchOf(runRef(), JSON.parse(body).events))
  for (const replicas of [1, 3] as const) {
    const servers = replicas === 1 ? [await natsServer()] : await natsCluster()
    const rates: number[] = []
    const ratios: number[] = []
    for (let round = 0; round < rounds; round++) {
      const local = await rateOf(await openLocal(await temporaryDirectory(), { keepBytes: 0 }), seconds, batches)
      const nats = await rateOf(await openNats(servers, replicas), seconds, batches)
      rates.push(nats)
      ratios.push(nats / local)
    }
    const ratio = median(ratios)
    const what = `JetStream, ${replicas} replica${replicas === 1 ? '' : 's'}: ${whole(median(rates))} events/s`
    report.target(
      `${what}, ${ratio.toFixed(2)} of local files, target ${TARGETS[replicas]}`,
      ratio >= TARGETS[replicas],
    )
    for (const server of servers) await server.kill()
  }
}

async function openNats(servers: readonly NatsServer[], replicas: number): Promise<LogJournal> {
  return new NatsRig(await natsConnection(servers), replicas).open({ keepBytes: 0, streamBytes: 2 ** 30 })
}

/** Events a second, while a consumer keeps up. */
async function rateOf(journal: LogJournal, seconds: number, batches: readonly EventBatch[]): Promise<number> {
  journal.release('sink', 0)
  const consumer = setInterval(() => journal.release('sink', journal.endSeq), RELEASE_MS)
  const started = performance.now()
  const until = started + seconds * 1_000
  let next = 0
  const caller = async () => {
    while (performance.now() < until) await journal.appendEvents(batches[next++ % batches.length]!)
  }
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, caller))
  const rate = (journal.endSeq / (performance.now() - started)) * 1_000
  clearInterval(consumer)
  await journal.close()
  return rate
}
