import { createLog } from '../../src/base/log.ts'
import { startEmbeddedPostgres } from '../../src/stores/postgres/embedded.ts'
import { ownedEvenly, startCluster, stateOf, type TestCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import type { SpawnedService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'
import type { Campaign, CampaignOptions } from './campaign.ts'
import { killIfAlive, LossCampaign, quantile } from './losses.ts'

const VICTIMS = ['node', 'NATS server', 'node and NATS server', 'Postgres', 'paused node'] as const
type Victim = (typeof VICTIMS)[number]
/** Longer than a node's lease. */
const PAUSE_MS = 4_000

/** Loses random parts of a cluster under load. */
export const cluster: Campaign = {
  describe: 'kills and pauses nodes, NATS servers and Postgres of a cluster of three at random under load',
  rounds: 100,
  shortRounds: 5,
  run: (options) => new ClusterCampaign(options).run(),
}

class ClusterCampaign extends LossCampaign<Victim> {
  private cluster!: TestCluster
  private readonly started: SpawnedService[] = []
  private readonly takeoverMs: number[] = []
  private calls = 0

  constructor(options: CampaignOptions) {
    super(options, { victims: VICTIMS, betweenMs: [200, 1_500], settleMs: 120_000, progressRounds: 5 })
  }

  protected async start() {
    const log = createLog('silent')
    const postgres = await startEmbeddedPostgres({ dataDir: await temporaryDirectory(), log, connections: 200 })
    atEnd(() => postgres.stop())
    // What the campaign itself polls.
    const unlimited = { RATE_LIMIT_READS_PER_MINUTE: '0', RATE_LIMIT_QUERIES_PER_MINUTE: '0' }
    const env = { ...this.world.backends.env, ...unlimited, LOG_LEVEL: 'info' }
    this.cluster = await startCluster({ natsServers: 3, databaseUrl: postgres.url, env })
    this.started.push(...this.cluster.nodes)
    await this.settle()
    const [service] = this.cluster.nodes
    return { service, urls: this.cluster.urls }
  }

  protected api() {
    const { nodes } = this.cluster
    return nodes[this.calls++ % nodes.length].api
  }

  protected async settle(): Promise<void> {
    await ownedEvenly(this.cluster.nodes[0], 3).catch((error) => {
      this.showLogs()
      throw error
    })
  }

  protected async stop(): Promise<void> {
    const { failures } = this.checks
    failures.expect('requests to a model after its last answer', this.world.extra.join(', '), '')
    // Killing processes must never damage the journal.
    for (const line of this.logged(/damaged|set back/)) failures.add(line)
    if (failures.result.length > 0) this.showLogs()
    for (const node of this.cluster.nodes) {
      node.kill('SIGTERM')
      failures.expect('exit code at the end', await node.exited, 0)
    }
  }

  private showLogs(): void {
    for (const line of this.logged(/"level":"(warn|error)"|"message":"cluster: /)) this.options.progress(line)
  }

  /** Matching lines of the logs of all nodes, including those that were killed. */
  private logged(like: RegExp): string[] {
    const lines = this.started.flatMap((node, index) =>
      node
        .output()
        .stderr.split('\n')
        .map((line) => `process ${index}: ${line}`),
    )
    return lines.filter((line) => like.test(line))
  }

  protected async lose(victim: Victim): Promise<void> {
    const { nodes, nats } = this.cluster
    const index = this.random.int(0, nodes.length - 1)
    const server = this.random.pick(nats)
    if (victim === 'paused node') return this.pause(index)
    if (victim === 'Postgres') return killPostgres()
    if (victim !== 'node') await server.kill()
    if (victim !== 'NATS server') await this.killNode(index)
    await Bun.sleep(this.random.int(0, 2_000))
    if (victim !== 'node') await server.start()
    if (victim !== 'NATS server') this.started.push(await this.cluster.restart(index))
  }

  /** Kills a node, and measures how long its partitions have no owner. */
  private async killNode(index: number): Promise<void> {
    const { nodes } = this.cluster
    const victim = nodes[index]
    const other = nodes[(index + 1) % nodes.length]
    const before = await stateOf(victim).catch(() => undefined)
    victim.kill('SIGKILL')
    await victim.exited
    const instance = before?.nodes.find(({ is_this }) => is_this)?.instance_id
    if (instance === undefined || !before?.partitions.some(({ owner }) => owner === instance)) return
    const startedAt = performance.now()
    const isTakenOver = async () => {
      const state = await stateOf(other).catch(() => undefined)
      return state?.partitions.every(({ owner }) => owner !== null && owner !== instance)
    }
    await eventually(isTakenOver, { timeoutMs: this.losses.settleMs, intervalMs: 20 })
    this.takeoverMs.push(performance.now() - startedAt)
  }

  private async pause(index: number): Promise<void> {
    const victim = this.cluster.nodes[index]
    victim.kill('SIGSTOP')
    await Bun.sleep(PAUSE_MS)
    victim.kill('SIGCONT')
  }

  protected figures() {
    return {
      'take-over, median ms': quantile(this.takeoverMs, 0.5),
      'take-over, p99 ms': quantile(this.takeoverMs, 0.99),
    }
  }
}

/** Kills the embedded Postgres, which this process starts again. */
async function killPostgres(): Promise<void> {
  for (const { pid, command } of childrenOf(process.pid)) if (command.includes('postgres')) killIfAlive(pid)
}
