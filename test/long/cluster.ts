import { createLog } from '../../src/log.ts'
import { startEmbeddedPostgres } from '../../src/postgres/embedded.ts'
import { createWorld, expectEffects, KINDS, startApprover, withRetries } from '../crash/hosted-life.ts'
import { expectAcknowledged, Reporting } from '../crash/reporting.ts'
import { type Api, newAgent } from '../support/api.ts'
import { ownedEvenly, startCluster, stateOf, type TestCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import type { Random } from '../support/random.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'
import { type Campaign, type CampaignOptions, type CampaignResult, Failures } from './campaign.ts'
import { Watching } from './watching.ts'

const CLIENTS = 8
const PROCESSES = ['node', 'Postgres', 'paused node'] as const
const VICTIMS = [...PROCESSES, 'NATS server', 'node and NATS server'] as const
type Victim = (typeof VICTIMS)[number]
/** With fewer rounds no NATS server is killed: each of their elections takes up to nine seconds. */
const NATS_ROUNDS_MIN = 10
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

interface HostedRun {
  readonly kind: 'worker' | 'parent'
  readonly tag: string
  readonly runId: string
}

class ClusterCampaign {
  private cluster!: TestCluster
  private readonly random: Random
  private readonly failures = new Failures()
  private readonly hosted: Promise<HostedRun>[] = []
  private readonly killed: Partial<Record<Victim, number>> = {}
  private readonly takeoverMs: number[] = []
  private readonly world
  private calls = 0
  private readonly call = withRetries(() => this.anyApi())

  constructor(private readonly options: CampaignOptions) {
    this.random = options.random
    this.world = createWorld(options.random, () => {})
  }

  async run(): Promise<CampaignResult> {
    const { rounds, progress } = this.options
    const log = createLog('silent')
    const postgres = await startEmbeddedPostgres({ dataDir: await temporaryDirectory(), log, connections: 200 })
    atEnd(() => postgres.stop())
    // What the campaign itself polls.
    const unlimited = { RATE_LIMIT_READS_PER_MINUTE: '0', RATE_LIMIT_QUERIES_PER_MINUTE: '0' }
    const env = { ...this.world.backends.env, ...unlimited, LOG_LEVEL: 'silent' }
    this.cluster = await startCluster({ natsServers: 3, databaseUrl: postgres.url, env })
    await ownedEvenly(this.cluster.nodes[0], 3)
    const [first] = this.cluster.nodes
    const { agentId, agentKey } = await newAgent(first.api)
    const hostedAgents = await this.world.createAgents(first)
    const stopApproving = startApprover(this.call, () => {})
    const watchers = await this.startWatchers(agentId)
    const { urls } = this.cluster
    const reporting = new Reporting({ url: urls, agentId, agentKey, random: this.random, clients: CLIENTS })

    for (let round = 0; round < rounds; round++) {
      if (round % HOSTED_ROUNDS === 0)
        for (const kind of ['worker', 'parent'] as const)
          this.hosted.push(this.invoke(kind, hostedAgents[kind].agentId, `${kind}-${round}`))
      await Bun.sleep(this.random.int(200, 1_500))
      await this.lose(this.random.pick<Victim>(rounds < NATS_ROUNDS_MIN ? PROCESSES : VICTIMS))
      if (round % PROGRESS_ROUNDS === PROGRESS_ROUNDS - 1)
        progress(`${round + 1} of ${rounds} rounds, ${reporting.eventCount.toLocaleString('en')} events acknowledged`)
    }
    await reporting.stop()
    await ownedEvenly(this.cluster.nodes[0], 3)
    await this.check('acknowledged reports', () => expectAcknowledged(this.cluster.nodes[0].api, agentId, reporting))
    await this.checkHosted()
    await stopApproving()
    this.failures.expect('requests to a model after its last answer', this.world.extra.join(', '), '')
    for (const watcher of watchers) await this.checkWatcher(watcher, reporting)
    for (const node of this.cluster.nodes) {
      node.kill('SIGTERM')
      this.failures.expect('exit code at the end', await node.exited, 0)
    }
    return { figures: this.figures(reporting, watchers), failures: this.failures.result }
  }

  /** One that begins at each node. */
  private startWatchers(agentId: string): Promise<Watching[]> {
    const { urls, workspaceKey } = this.cluster
    return Promise.all(
      urls.map((_, index) => {
        const url = [...urls.slice(index), ...urls.slice(0, index)]
        return Watching.start(`watcher ${index}`, { url, workspaceKey, agentId })
      }),
    )
  }

  private anyApi(): Api {
    const { nodes } = this.cluster
    return nodes[this.calls++ % nodes.length].api
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
    if (victim !== 'NATS server') await this.cluster.restart(index)
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

  private async invoke(kind: HostedRun['kind'], agentId: string, tag: string): Promise<HostedRun> {
    const body = { background: true, input: { message: tag } }
    const { status, data, text } = await this.call('POST', `/api/v1/agents/${agentId}/invoke`, body)
    if (status !== 202) throw new Error(`invoke: ${status} ${text}`)
    return { kind, tag, runId: data.run_id }
  }

  private async checkHosted(): Promise<void> {
    for (const { kind, tag, runId } of await Promise.all(this.hosted)) {
      await this.check(`hosted run ${tag}`, async () => {
        const ended = async () => {
          const { data } = await this.call('GET', `/api/v1/runs/${runId}`)
          return data.status !== 'queued' && data.completed_at !== null && data
        }
        const run = await eventually(ended, { timeoutMs: SETTLE_MS, intervalMs: 50 })
        this.failures.expect(`status of ${tag}`, run.status, 'completed')
        this.failures.expect(`output of ${tag}`, run.output?.text, KINDS[kind].output)
        expectEffects(this.world, kind, tag)
      })
    }
  }

  private async checkWatcher(watcher: Watching, reporting: Reporting): Promise<void> {
    await this.check('feed', () =>
      eventually(() => watcher.eventCount >= reporting.eventCount, { timeoutMs: SETTLE_MS, intervalMs: 50 }),
    )
    await watcher.stop()
    for (const line of watcher.failures.result) this.failures.add(line)
    this.failures.expect('events of a feed', watcher.eventCount, reporting.eventCount)
  }

  private async check(what: string, check: () => Promise<unknown>): Promise<void> {
    await check().catch((error: Error) => this.failures.add(`${what}: ${error.message}`))
  }

  private figures(reporting: Reporting, watchers: readonly Watching[]): CampaignResult['figures'] {
    const sorted = this.takeoverMs.sort((a, b) => a - b)
    return {
      ...Object.fromEntries(Object.entries(this.killed).map(([victim, times]) => [`losses of ${victim}`, times])),
      'runs acknowledged': reporting.runs.size,
      'events acknowledged': reporting.eventCount,
      'calls sent again': reporting.retries,
      'hosted runs': this.hosted.length,
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
