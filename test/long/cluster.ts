import { createLog } from '../../src/base/log.ts'
import { startEmbeddedPostgres } from '../../src/postgres/embedded.ts'
import { createWorld, startApprover } from '../crash/hosted-life.ts'
import { expectAcknowledged, Reporting } from '../crash/reporting.ts'
import { type Api, newAgent } from '../support/api.ts'
import { ownedEvenly, startCluster, stateOf, type TestCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import type { Random } from '../support/random.ts'
import type { SpawnedService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'
import type { Campaign, CampaignOptions, CampaignResult } from './campaign.ts'
import { LossChecks } from './losses.ts'
import { type Watching, watchEach } from './watching.ts'

const CLIENTS = 8
const VICTIMS = ['node', 'NATS server', 'node and NATS server', 'Postgres', 'paused node'] as const
type Victim = (typeof VICTIMS)[number]
const PROGRESS_ROUNDS = 5
/** Every second round starts a hosted run of each kind. */
const HOSTED_ROUNDS = 2
/** Longer than a node's lease. */
const PAUSE_MS = 4_000
const SETTLE_MS = 120_000

/** Kills random parts of a cluster under load; afterwards everything acknowledged must be stored exactly once, everywhere. */
export const cluster: Campaign = {
  describe: 'kills and pauses nodes, NATS servers and Postgres of a cluster of three at random under load',
  rounds: 100,
  shortRounds: 5,
  run: (options) => new ClusterCampaign(options).run(),
}

class ClusterCampaign {
  private cluster!: TestCluster
  private readonly started: SpawnedService[] = []
  private readonly random: Random
  private readonly killed: Partial<Record<Victim, number>> = {}
  private readonly takeoverMs: number[] = []
  private readonly world
  private calls = 0
  private readonly checks

  constructor(private readonly options: CampaignOptions) {
    this.random = options.random
    this.world = createWorld(options.random, () => {})
    this.checks = new LossChecks(this.world, () => this.anyApi(), SETTLE_MS)
  }

  async run(): Promise<CampaignResult> {
    const { rounds, progress } = this.options
    const log = createLog('silent')
    const postgres = await startEmbeddedPostgres({ dataDir: await temporaryDirectory(), log, connections: 200 })
    atEnd(() => postgres.stop())
    // What the campaign itself polls.
    const unlimited = { RATE_LIMIT_READS_PER_MINUTE: '0', RATE_LIMIT_QUERIES_PER_MINUTE: '0' }
    const env = { ...this.world.backends.env, ...unlimited, LOG_LEVEL: 'error' }
    this.cluster = await startCluster({ natsServers: 3, databaseUrl: postgres.url, env })
    this.started.push(...this.cluster.nodes)
    await ownedEvenly(this.cluster.nodes[0], 3)
    const [first] = this.cluster.nodes
    const { agentId, agentKey } = await newAgent(first.api)
    const hostedAgents = await this.world.createAgents(first)
    const stopApproving = startApprover(this.checks.call, () => {})
    const { urls, workspaceKey } = this.cluster
    const watchers = await watchEach(urls, { workspaceKey, agentId })
    const reporting = new Reporting({ url: urls, agentId, agentKey, random: this.random, clients: CLIENTS })

    for (let round = 0; round < rounds; round++) {
      if (round % HOSTED_ROUNDS === 0)
        for (const kind of ['worker', 'parent'] as const)
          this.checks.invoke(kind, hostedAgents[kind].agentId, `${kind}-${round}`)
      await Bun.sleep(this.random.int(200, 1_500))
      await this.lose(this.random.pick(VICTIMS))
      if (round % PROGRESS_ROUNDS === PROGRESS_ROUNDS - 1)
        progress(`${round + 1} of ${rounds} rounds, ${reporting.eventCount.toLocaleString('en')} events acknowledged`)
    }
    await reporting.stop()
    await ownedEvenly(this.cluster.nodes[0], 3)
    await this.checks.check('acknowledged reports', () =>
      expectAcknowledged(this.cluster.nodes[0].api, agentId, reporting),
    )
    await this.checks.checkHosted()
    await stopApproving()
    this.checks.failures.expect('requests to a model after its last answer', this.world.extra.join(', '), '')
    for (const watcher of watchers) await this.checks.checkWatcher(watcher, reporting)
    // Killing processes must never damage the journal.
    for (const line of this.errors(/damaged|set back/)) this.checks.failures.add(line)
    if (this.checks.failures.result.length > 0) for (const line of this.errors(/./)) progress(line)
    for (const node of this.cluster.nodes) {
      node.kill('SIGTERM')
      this.checks.failures.expect('exit code at the end', await node.exited, 0)
    }
    return { figures: this.figures(reporting, watchers), failures: this.checks.failures.result }
  }

  private anyApi(): Api {
    const { nodes } = this.cluster
    return nodes[this.calls++ % nodes.length].api
  }

  /** Matching lines of the logs of all nodes, including those that were killed. */
  private errors(like: RegExp): string[] {
    const lines = this.started.flatMap((node, index) =>
      node
        .output()
        .stderr.split('\n')
        .map((line) => `process ${index}: ${line}`),
    )
    return lines.filter((line) => like.test(line))
  }

  private async lose(victim: Victim): Promise<void> {
    this.killed[victim] = (this.killed[victim] ?? 0) + 1
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
    await eventually(isTakenOver, { timeoutMs: SETTLE_MS, intervalMs: 20 })
    this.takeoverMs.push(performance.now() - startedAt)
  }

  private async pause(index: number): Promise<void> {
    const victim = this.cluster.nodes[index]
    victim.kill('SIGSTOP')
    await Bun.sleep(PAUSE_MS)
    victim.kill('SIGCONT')
  }

  private figures(reporting: Reporting, watchers: readonly Watching[]): CampaignResult['figures'] {
    const sorted = this.takeoverMs.sort((a, b) => a - b)
    return {
      ...Object.fromEntries(Object.entries(this.killed).map(([victim, times]) => [`losses of ${victim}`, times])),
      'runs acknowledged': reporting.runs.size,
      'events acknowledged': reporting.eventCount,
      'calls sent again': reporting.retries,
      'hosted runs': this.checks.hosted.length,
      'tool calls counted': this.world.backends.tools.calls.length,
      'feed reconnections': watchers.reduce((sum, { reconnects }) => sum + reconnects, 0),
      'take-over, median ms': Math.round(sorted[sorted.length >> 1] ?? 0),
      'take-over, p99 ms': Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? 0),
    }
  }
}

/** Kills the embedded Postgres, which this process starts again. */
async function killPostgres(): Promise<void> {
  for (const { pid, command } of childrenOf(process.pid))
    if (command.includes('postgres'))
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has exited together with another one.
      }
}
