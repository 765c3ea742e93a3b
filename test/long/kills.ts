import { createWorld, startApprover } from '../crash/hosted-life.ts'
import { expectAcknowledged, Reporting } from '../crash/reporting.ts'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import type { Random } from '../support/random.ts'
import { freePort, type SpawnedService, spawnService } from '../support/service.ts'
import type { Campaign, CampaignOptions, CampaignResult } from './campaign.ts'
import { LossChecks } from './losses.ts'
import { Watching } from './watching.ts'

const CLIENTS = 8
const VICTIMS = ['service', 'clickhouse', 'postgres', 'service and clickhouse', 'all'] as const
type Victim = (typeof VICTIMS)[number]
/** Rounds between two lines of progress. */
const PROGRESS_ROUNDS = 10
/** Every second round starts a hosted run of each kind. */
const HOSTED_ROUNDS = 2
const SETTLE_MS = 60_000

/** Kills random processes under load; afterwards everything acknowledged must be stored exactly once, everywhere. */
export const kills: Campaign = {
  describe: 'kills the service, ClickHouse and Postgres at random under load',
  rounds: 300,
  shortRounds: 10,
  run: (options) => new KillCampaign(options).run(),
}

class KillCampaign {
  private service!: SpawnedService
  private readonly random: Random
  private readonly killed: Partial<Record<Victim, number>> = {}
  private readonly readyMs: number[] = []
  private readonly world
  private readonly checks
  private readonly env: Record<string, string>

  constructor(private readonly options: CampaignOptions) {
    this.random = options.random
    this.world = createWorld(options.random, () => {})
    this.checks = new LossChecks(this.world, () => this.service.api, SETTLE_MS)
    this.env = { ...this.world.backends.env, PORT: String(freePort()), LOG_LEVEL: 'silent' }
  }

  async run(): Promise<CampaignResult> {
    const { rounds, progress } = this.options
    await this.startService()
    const { url, workspaceKey } = this.service
    const { agentId, agentKey } = await newAgent(this.service.api)
    const hostedAgents = await this.world.createAgents(this.service)
    const stopApproving = startApprover(this.checks.call, () => {})
    const watchers = await Promise.all(
      ['first watcher', 'second watcher'].map((name) => Watching.start(name, { url, workspaceKey, agentId })),
    )
    const reporting = new Reporting({ url, agentId, agentKey, random: this.random, clients: CLIENTS })

    for (let round = 0; round < rounds; round++) {
      if (round % HOSTED_ROUNDS === 0)
        for (const kind of ['worker', 'parent'] as const)
          this.checks.invoke(kind, hostedAgents[kind].agentId, `${kind}-${round}`)
      await Bun.sleep(this.random.int(50, 600))
      await this.kill(this.random.pick(VICTIMS))
      if (round % PROGRESS_ROUNDS === PROGRESS_ROUNDS - 1)
        progress(`${round + 1} of ${rounds} rounds, ${reporting.eventCount.toLocaleString('en')} events acknowledged`)
    }
    await reporting.stop()
    await this.settle()
    await this.checks.check('acknowledged reports', () => expectAcknowledged(this.service.api, agentId, reporting))
    await this.checks.checkHosted()
    await stopApproving()
    for (const watcher of watchers) await this.checks.checkWatcher(watcher, reporting)
    this.service.kill('SIGTERM')
    this.checks.failures.expect('exit code at the end', await this.service.exited, 0)
    return { figures: this.figures(reporting, watchers), failures: this.checks.failures.result }
  }

  private async startService(): Promise<void> {
    const before = this.service
    const startedAt = performance.now()
    this.service = await spawnService({
      ...this.env,
      ...(before && { DATA_DIR: before.dataDir, BOOTSTRAP_WORKSPACE_KEY: before.workspaceKey }),
    })
    this.readyMs.push(performance.now() - startedAt)
  }

  private async kill(victim: Victim): Promise<void> {
    this.killed[victim] = (this.killed[victim] ?? 0) + 1
    const children = childrenOf(this.service.pid)
    const killChildren = (name: string) => {
      for (const { pid, command } of children)
        if (command.includes(name)) {
          try {
            process.kill(pid, 'SIGKILL')
          } catch {
            // It has exited by itself, because the service is gone.
          }
        }
    }
    const killsService = victim !== 'clickhouse' && victim !== 'postgres'
    if (killsService) this.service.kill('SIGKILL')
    if (victim === 'clickhouse' || victim === 'service and clickhouse' || victim === 'all')
      killChildren('engine/server.ts')
    if (victim === 'postgres' || victim === 'all') killChildren('postgres')
    if (!killsService) return
    await this.service.exited
    await this.startService()
  }

  private async settle(): Promise<void> {
    await eventually(() => this.service.api('GET', '/readyz').then(({ data }) => data?.status === 'ready'), {
      timeoutMs: SETTLE_MS,
      intervalMs: 100,
    })
  }

  private figures(reporting: Reporting, watchers: readonly Watching[]): CampaignResult['figures'] {
    const sorted = this.readyMs.sort((a, b) => a - b)
    return {
      ...Object.fromEntries(Object.entries(this.killed).map(([victim, times]) => [`kills of ${victim}`, times])),
      'runs acknowledged': reporting.runs.size,
      'events acknowledged': reporting.eventCount,
      'calls sent again': reporting.retries,
      'hosted runs': this.checks.hosted.length,
      'tool calls counted': this.world.backends.tools.calls.length,
      'feed reconnections': watchers.reduce((sum, { reconnects }) => sum + reconnects, 0),
      'starts until ready, median ms': Math.round(sorted[sorted.length >> 1] ?? 0),
      'starts until ready, worst ms': Math.round(sorted.at(-1) ?? 0),
    }
  }
}
