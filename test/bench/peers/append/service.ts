import packageJson from '../../../../package.json' with { type: 'json' }
import { wireRequest } from '../../connection.ts'
import { delaysOf } from '../../fresh.ts'
import { ms, percentile } from '../../report.ts'
import { type BenchService, benchServiceOf, spawnForBench } from '../../servers.ts'
import { type AppendPeer, connectionPlans } from './appender.ts'
import { callsOf } from './events.ts'

const PATH = '/api/ingest/v1/events'
const DELAYS = { eventsPerCall: 100, callsPerSecond: 20, seconds: 5 }
const POLL_MS = 50

/** The service itself, as `bun run start` runs it, with embedded stores. */
export const service: AppendPeer = {
  name: 'service',
  async start() {
    const spawned = await spawnForBench()
    const bench = await benchServiceOf(spawned)
    const before = await countOf(bench)
    const delays = await delaysOf(bench, DELAYS)
    const [p50, p99] = [percentile(delays, 0.5), percentile(delays, 0.99)]
    const settled = async () => {
      while ((await bench.backlog()) > 0) await Bun.sleep(POLL_MS)
    }
    const way = (eventsPerCall: number) => ({
      name: 'HTTP, JSON',
      eventsPerCall,
      plan: (connections: number) => ({
        protocol: 'http' as const,
        target: { port: bench.port },
        connections: connectionPlans(connections, (index) => requestsOf(bench, index, eventsPerCall)),
      }),
    })
    return {
      title: `this service ${packageJson.version}`,
      durability: 'synced (fdatasync) before the acknowledgement; one sync serves all waiting calls',
      sql: `${ms(p50)} (p99 ${ms(p99)}) after the acknowledgement, at 2,000 events/s`,
      ways: [way(100), way(1)],
      stored: async () => (await countOf(bench)) - before - delays.length * DELAYS.eventsPerCall,
      settled,
      async stop() {
        spawned.kill('SIGTERM')
        await spawned.exited
      },
    }
  },
}

/** All events of a call belong to one of our runs. */
function requestsOf({ agents }: BenchService, connection: number, eventsPerCall: number): Buffer[] {
  const { key, runIds } = agents[connection % agents.length]!
  return callsOf(connection, eventsPerCall).map((records, index) => {
    const events = records.map(({ run_id: _, ...event }) => event)
    const body = JSON.stringify({ run_id: runIds[(connection + index) % runIds.length], events })
    return wireRequest(PATH, key, 'application/json', Buffer.from(body))
  })
}

/** Events that agents reported, without those that the service wrote of its own accord. */
async function countOf(bench: BenchService): Promise<number> {
  const query = "select count() as n from events where type not like 'run.%'"
  const { rows } = await bench.call('POST', '/api/v1/query', { query })
  return Number((rows as { n: number | string }[])[0]!.n)
}
