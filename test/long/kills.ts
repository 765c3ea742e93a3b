import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import { freePort, type SpawnedService, spawnService } from '../support/service.ts'
import type { Campaign, CampaignOptions } from './campaign.ts'
import { killIfAlive, LossCampaign, quantile } from './losses.ts'

const VICTIMS = ['service', 'clickhouse', 'postgres', 'service and clickhouse', 'all'] as const
type Victim = (typeof VICTIMS)[number]

/** Kills random processes under load. */
export const kills: Campaign = {
  describe: 'kills the service, ClickHouse and Postgres at random under load',
  rounds: 300,
  shortRounds: 10,
  run: (options) => new KillCampaign(options).run(),
}

class KillCampaign extends LossCampaign<Victim> {
  private service: SpawnedService | undefined
  private readonly readyMs: number[] = []
  private readonly env = { ...this.world.backends.env, PORT: String(freePort()), LOG_LEVEL: 'silent' }

  constructor(options: CampaignOptions) {
    super(options, { victims: VICTIMS, betweenMs: [50, 600], settleMs: 120_000, progressRounds: 10 })
  }

  protected async start() {
    const service = await this.startService()
    return { service, urls: [service.url, service.url] }
  }

  protected api() {
    return this.service!.api
  }

  protected async lose(victim: Victim): Promise<void> {
    const service = this.service!
    const children = childrenOf(service.pid)
    const killChildren = (name: string) => {
      for (const { pid, command } of children) if (command.includes(name)) killIfAlive(pid)
    }
    const killsService = victim !== 'clickhouse' && victim !== 'postgres'
    if (killsService) service.kill('SIGKILL')
    if (victim === 'clickhouse' || victim === 'service and clickhouse' || victim === 'all')
      killChildren('engine/server.ts')
    if (victim === 'postgres' || victim === 'all') killChildren('postgres')
    if (!killsService) return
    await service.exited
    await this.startService()
  }

  protected async settle(): Promise<void> {
    const isReady = async () => {
      const { data } = await this.api()('GET', '/readyz')
      if (data.status !== 'ready') throw new Error(`not ready: ${JSON.stringify(data)}`)
    }
    await eventually(isReady, { timeoutMs: this.losses.settleMs, intervalMs: 100 })
  }

  protected async stop(): Promise<void> {
    this.service!.kill('SIGTERM')
    this.checks.failures.expect('exit code at the end', await this.service!.exited, 0)
  }

  protected figures() {
    return {
      'starts until ready, median ms': quantile(this.readyMs, 0.5),
      'starts until ready, worst ms': quantile(this.readyMs, 1),
    }
  }

  private async startService(): Promise<SpawnedService> {
    const before = this.service
    const startedAt = performance.now()
    this.service = await spawnService({
      ...this.env,
      ...(before && { DATA_DIR: before.dataDir, BOOTSTRAP_WORKSPACE_KEY: before.workspaceKey }),
    })
    this.readyMs.push(performance.now() - startedAt)
    return this.service
  }
}
