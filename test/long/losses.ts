import { createWorld, expectEffects, KINDS, startApprover, type World, withRetries } from '../crash/hosted-life.ts'
import { expectAcknowledged, Reporting } from '../crash/reporting.ts'
import { type Api, newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import type { SpawnedService } from '../support/service.ts'
import { type CampaignOptions, type CampaignResult, Failures } from './campaign.ts'
import { type Watching, watchEach } from './watching.ts'

interface HostedRun {
  readonly kind: 'worker' | 'parent'
  readonly tag: string
  readonly runId: string
}

/** What is checked in the end: hosted runs and feeds. */
class LossChecks {
  readonly failures = new Failures()
  readonly hosted: Promise<HostedRun>[] = []
  /** Counts the 5xx responses that no loss explains: it throws at anything but 503. */
  readonly call: ReturnType<typeof withRetries>

  /**
   * @param api of a service that may be asked now
   * @param settleMs how long it may take until everything has arrived
   */
  constructor(
    private readonly world: World,
    api: () => Api,
    private readonly settleMs: number,
  ) {
    this.call = withRetries(api)
  }

  /** Starts a hosted run, which {@link checkHosted} checks. */
  invoke(kind: HostedRun['kind'], agentId: string, tag: string): void {
    this.hosted.push(this.start(kind, agentId, tag))
  }

  async checkHosted(): Promise<void> {
    for (const { kind, tag, runId } of await Promise.all(this.hosted)) {
      await this.check(`hosted run ${tag}`, async () => {
        const ended = async () => {
          const { data } = await this.call('GET', `/api/v1/runs/${runId}`)
          return data.status !== 'queued' && data.completed_at !== null && data
        }
        const run = await eventually(ended, { timeoutMs: this.settleMs, intervalMs: 50 })
        this.failures.expect(`status of ${tag}`, run.status, 'completed')
        this.failures.expect(`output of ${tag}`, run.output?.text, KINDS[kind].output)
        expectEffects(this.world, kind, tag)
      })
    }
  }

  async checkWatcher(watcher: Watching, reporting: Reporting): Promise<void> {
    await this.check('feed', () =>
      eventually(() => watcher.eventCount >= reporting.eventCount, { timeoutMs: this.settleMs, intervalMs: 50 }),
    )
    await watcher.stop()
    for (const line of watcher.failures.result) this.failures.add(line)
    this.failures.expect('events of a feed', watcher.eventCount, reporting.eventCount)
  }

  async check(what: string, check: () => Promise<unknown>): Promise<void> {
    await check().catch((error: Error) => this.failures.add(`${what}: ${error.message}`))
  }

  private async start(kind: HostedRun['kind'], agentId: string, tag: string): Promise<HostedRun> {
    const body = { background: true, input: { message: tag } }
    const { status, data, text } = await this.call('POST', `/api/v1/agents/${agentId}/invoke`, body)
    if (status !== 202) throw new Error(`invoke: ${status} ${text}`)
    return { kind, tag, runId: data.run_id }
  }
}

const CLIENTS = 8
/** Every second round starts a hosted run of each kind. */
const HOSTED_ROUNDS = 2

export interface LossOptions<Victim> {
  readonly victims: readonly Victim[]
  /** Bounds of the time between two losses. */
  readonly betweenMs: readonly [number, number]
  /** How long it may take until everything has arrived. */
  readonly settleMs: number
  /** Rounds between two lines of progress. */
  readonly progressRounds: number
}

/** A campaign that loses processes at random under load: everything acknowledged must be stored exactly once, everywhere. */
export abstract class LossCampaign<Victim extends string> {
  protected readonly random
  protected readonly world
  protected readonly checks
  private readonly lost = new Map<Victim, number>()

  constructor(
    protected readonly options: CampaignOptions,
    protected readonly losses: LossOptions<Victim>,
  ) {
    this.random = options.random
    this.world = createWorld(options.random, () => {})
    this.checks = new LossChecks(this.world, () => this.api(), losses.settleMs)
  }

  async run(): Promise<CampaignResult> {
    const { checks, random } = this
    const { service, urls } = await this.start()
    const { workspaceKey } = service
    const { agentId, agentKey } = await newAgent(service.api)
    const hostedAgents = await this.world.createAgents(service)
    const stopApproving = startApprover(checks.call, () => {})
    const watchers = await watchEach(urls, { workspaceKey, agentId })
    const reporting = new Reporting({ url: urls, agentId, agentKey, random, clients: CLIENTS })
    await this.loseAll(reporting, (kind, round) => checks.invoke(kind, hostedAgents[kind].agentId, `${kind}-${round}`))
    await reporting.stop()
    await this.settle()
    await checks.check('acknowledged reports', () => expectAcknowledged(this.api(), agentId, reporting))
    await checks.checkHosted()
    await stopApproving()
    for (const watcher of watchers) await checks.checkWatcher(watcher, reporting)
    await this.stop()
    return { figures: this.allFigures(reporting, watchers), failures: checks.failures.result }
  }

  /** Starts what is to be lost. @returns a service, and where clients report and feeds begin */
  protected abstract start(): Promise<{ service: SpawnedService; urls: readonly string[] }>
  /** Of a service that may be asked now. */
  protected abstract api(): Api
  protected abstract lose(victim: Victim): Promise<void>
  /** Waits until everything that was lost is back. */
  protected abstract settle(): Promise<void>
  /** Stops in order, after the checks. */
  protected abstract stop(): Promise<void>
  protected abstract figures(): CampaignResult['figures']

  private async loseAll(reporting: Reporting, invoke: (kind: HostedRun['kind'], round: number) => void): Promise<void> {
    const { rounds, progress } = this.options
    const { victims, betweenMs, progressRounds } = this.losses
    for (let round = 0; round < rounds; round++) {
      if (round % HOSTED_ROUNDS === 0) for (const kind of ['worker', 'parent'] as const) invoke(kind, round)
      await Bun.sleep(this.random.int(...betweenMs))
      const victim = this.random.pick(victims)
      this.lost.set(victim, (this.lost.get(victim) ?? 0) + 1)
      await this.lose(victim)
      if (round % progressRounds === progressRounds - 1)
        progress(`${round + 1} of ${rounds} rounds, ${reporting.eventCount.toLocaleString('en')} events acknowledged`)
    }
  }

  private allFigures(reporting: Reporting, watchers: readonly Watching[]): CampaignResult['figures'] {
    return {
      ...Object.fromEntries([...this.lost].map(([victim, times]) => [`losses of ${victim}`, times])),
      'runs acknowledged': reporting.runs.size,
      'events acknowledged': reporting.eventCount,
      'calls sent again': reporting.retries,
      'hosted runs': this.checks.hosted.length,
      'tool calls counted': this.world.backends.tools.calls.length,
      'feed reconnections': watchers.reduce((sum, { reconnects }) => sum + reconnects, 0),
      ...this.figures(),
    }
  }
}

/** A share of the sorted values lies below the result; 0 when there are none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
}

/** Kills a process that may have ended by itself. */
export function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}
