import packageJson from '../../../../package.json' with { type: 'json' }
import { temporaryDirectory } from '../../../support/teardown.ts'
import { runLoad } from '../../load.ts'
import { otlpLoad } from '../../otlp.ts'
import { ITEMS_PER_EXPORT } from '../../otlp-bodies.ts'
import { median, ms, whole } from '../../report.ts'
import { benchServiceOf, spawnForBench, startScript } from '../../servers.ts'
import { eachPeer, markdown, type PeerOptions } from '../peer.ts'

interface Collector {
  readonly title: string
  readonly durability: string
  /** Where its exports go. */
  readonly port: number
  readonly agents: Parameters<typeof otlpLoad>[0]['agents']
  /** Spans in SQL, and how many of an export it counts. */
  stored(): Promise<number>
  readonly storedPerExport: number
  /** Resolves once SQL shows all acknowledged spans. */
  settled(): Promise<void>
  stop(): Promise<void>
}

interface CollectorPeer {
  readonly name: string
  start(): Promise<Collector>
}

const POLL_MS = 20
const WARM_UP_SECONDS = 1
const TRACES_PER_EXPORT = 8
const HEADER = ['collector', 'spans/s acknowledged', 'p50', 'p99', 'spans/s until in SQL', 'an acknowledgement means']

const service: CollectorPeer = {
  name: 'service',
  async start() {
    const spawned = await spawnForBench()
    const bench = await benchServiceOf(spawned)
    return {
      title: `this service ${packageJson.version}`,
      durability: 'synced; in SQL soon after',
      ...{ port: bench.port, agents: bench.agents },
      // Beside the roots of the traces: those are runs.
      storedPerExport: ITEMS_PER_EXPORT - TRACES_PER_EXPORT,
      async stored() {
        const query = "select count() as n from events where type = 'llm.call'"
        const { rows } = await bench.call('POST', '/api/v1/query', { query })
        return Number((rows as { n: number | string }[])[0]!.n)
      },
      async settled() {
        while ((await bench.backlog()) > 0) await Bun.sleep(POLL_MS)
      },
      async stop() {
        spawned.kill('SIGTERM')
        await spawned.exited
      },
    }
  },
}

const naive = (isSynced: boolean): CollectorPeer => ({
  name: isSynced ? 'naive-collector-synced' : 'naive-collector',
  async start() {
    const args = [await temporaryDirectory(), isSynced ? '1' : '0']
    const { port, pid } = await startScript('peers/otlp/naive-otlp-server.ts', args)
    return {
      title: `decode, then INSERT into ClickHouse (chdb ${packageJson.dependencies.chdb})`,
      durability: isSynced ? 'in SQL, synced (fsync_after_insert)' : 'in SQL, not synced (the default)',
      port,
      agents: [{ agentId: 'none', key: 'none', runIds: [] }],
      storedPerExport: ITEMS_PER_EXPORT,
      stored: async () => Number(await (await fetch(`http://127.0.0.1:${port}/`)).text()),
      settled: async () => {},
      stop: async () => void process.kill(pid, 'SIGTERM'),
    }
  },
})

export const COLLECTORS: readonly CollectorPeer[] = [service, naive(false), naive(true)]

/** OpenTelemetry spans until SQL shows them. */
export async function measureCollectors(options: PeerOptions): Promise<void> {
  const { report, seconds, rounds } = options
  report.heading(`peers: OpenTelemetry spans of 2 KB, ${ITEMS_PER_EXPORT} an export, 8 connections`)
  const rows: string[][] = []
  await eachPeer(options, COLLECTORS, async (peer) => {
    const collector = await peer.start()
    const measured: Awaited<ReturnType<typeof measure>>[] = []
    try {
      await measure(collector, WARM_UP_SECONDS)
      for (let round = 0; round < rounds; round++) measured.push(await measure(collector, seconds))
    } finally {
      await collector.stop()
    }
    const of = (figure: keyof (typeof measured)[number]) => median(measured.map((each) => each[figure]))
    const [acknowledged, inSql] = [of('acknowledged'), of('inSql')].map(whole) as [string, string]
    rows.push([collector.title, acknowledged, ms(of('p50')), ms(of('p99')), inSql, collector.durability])
    report.line(rows.at(-1)!.join(' · '))
  })
  for (const line of markdown(HEADER, rows).split('\n')) report.line(line)
}

async function measure(collector: Collector, seconds: number) {
  const before = await collector.stored()
  const result = await runLoad(otlpLoad(collector, 'traces', collector.port, seconds))
  if (result.firstFailure !== null) throw new Error(`an export was refused: ${result.firstFailure}`)
  const loadedAt = performance.now()
  await collector.settled()
  const took = result.calls / result.callsPerSecond + (performance.now() - loadedAt) / 1000
  const [expected, stored] = [result.calls * collector.storedPerExport, (await collector.stored()) - before]
  if (stored < expected) throw new Error(`${collector.title} acknowledged ${expected} spans and has ${stored}`)
  return {
    acknowledged: result.callsPerSecond * ITEMS_PER_EXPORT,
    inSql: (result.calls * ITEMS_PER_EXPORT) / took,
    p50: result.p50,
    p99: result.p99,
  }
}
