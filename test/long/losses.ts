import { expectEffects, KINDS, type World, withRetries } from '../crash/hosted-life.ts'
import type { Reporting } from '../crash/reporting.ts'
import type { Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { Failures } from './campaign.ts'
import type { Watching } from './watching.ts'

interface HostedRun {
  readonly kind: 'worker' | 'parent'
  readonly tag: string
  readonly runId: string
}

/** What campaigns that lose processes under load check in the end: hosted runs and feeds. */
export class LossChecks {
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
