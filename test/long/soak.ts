import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { spawnService, UNLIMITED } from '../support/service.ts'
import { type Campaign, type CampaignResult, ServiceCampaign } from './campaign.ts'
import { Watching } from './watching.ts'

const CLIENTS = 16
const EVENTS_PER_CALL = 100
const CALLS_PER_RUN = 20
const CALIBRATION_MS = 10_000
const SHARE = 0.7
const SAMPLE_MS = 10_000
const QUERY_MS = 1_000
/** Buffers, caches and indexes fill up first. */
const WARM_UP_SHARE = 0.25
/** The allowed growth of memory from the first quarter to the end. */
const GROWTH_MAX = 1.25

/** Reports at 70 % of the service's highest rate, with feeds and queries, for the given time. */
export const soak: Campaign = {
  describe: 'reports at 70 % of the highest rate for an hour, with feeds and queries',
  rounds: 1,
  shortRounds: 1,
  minutes: 60,
  shortMinutes: 0.5,
  run: (options) => new Soak(options).run(),
}

interface Sample {
  readonly residentMiB: number
  readonly descriptors: number
  readonly lag: number
}

class Soak extends ServiceCampaign {
  private agentId!: string
  private agentKey!: string
  private acknowledged = 0
  private runs = 0
  private calls = 0
  private queries = 0

  protected start() {
    return spawnService({ LOG_LEVEL: 'warn', ...UNLIMITED })
  }

  protected async act(): Promise<CampaignResult['figures']> {
    const { minutes, progress } = this.options
    const { agentId, agentKey } = await newAgent(this.service.api)
    this.agentId = agentId
    this.agentKey = agentKey
    const watching = await Watching.start('watcher', { ...this.service, agentId })

    const highest = await this.calibrate()
    const perSecond = highest * SHARE
    progress(`${Math.round(highest * EVENTS_PER_CALL).toLocaleString('en')} events/s at most; goes on at 70 % of it`)
    const samples = await this.load(perSecond, minutes * 60_000)
    await this.checkCounts(watching)
    return this.figures(perSecond, samples)
  }

  /** @returns calls per second without pauses between them */
  private async calibrate(): Promise<number> {
    const before = this.calls
    const endsAt = performance.now() + CALIBRATION_MS
    await Promise.all(Array.from({ length: CLIENTS }, () => this.report(() => performance.now() < endsAt)))
    return (this.calls - before) / (CALIBRATION_MS / 1000)
  }

  private async load(callsPerSecond: number, milliseconds: number): Promise<Sample[]> {
    const startedAt = performance.now()
    const isOver = () => performance.now() - startedAt >= milliseconds
    let started = 0
    const pace = async () => {
      const due = startedAt + (started++ / callsPerSecond) * 1000
      const wait = due - performance.now()
      if (wait > 0) await Bun.sleep(wait)
      return !isOver()
    }
    const samples: Sample[] = []
    await Promise.all([
      Promise.all(Array.from({ length: CLIENTS }, () => this.report(pace))),
      this.query(isOver),
      this.sample(isOver, samples),
    ])
    return samples
  }

  /** One client: run after run, each with some calls. */
  private async report(mayGoOn: () => boolean | Promise<boolean>): Promise<void> {
    while (await mayGoOn()) {
      const run_id = Bun.randomUUIDv7()
      await this.call('run/start', { agent_id: this.agentId, run_id })
      let n = 0
      for (let call = 0; call < CALLS_PER_RUN && (call === 0 || (await mayGoOn())); call++) {
        const events = Array.from({ length: EVENTS_PER_CALL }, () => ({
          type: 'tool.call',
          payload: { n: n++, tool: 'search', text: 'x'.repeat(100) },
        }))
        if (await this.call('events', { run_id, events })) this.acknowledged += EVENTS_PER_CALL
      }
      await this.call('run/complete', { run_id })
      this.runs++
    }
  }

  private async call(path: string, body: unknown): Promise<boolean> {
    const { status, text } = await this.service.api('POST', `/api/ingest/v1/${path}`, body, { key: this.agentKey })
    this.calls++
    this.countStatus(status)
    if (status !== 200) this.failures.add(`${path}: ${status} ${text.slice(0, 200)}`)
    return status === 200
  }

  private async query(isOver: () => boolean): Promise<void> {
    // Of the last minute: a query over all events takes longer as the table grows, whatever the service does.
    const query =
      'SELECT type, count() AS n, uniq(run_id) AS runs FROM events WHERE received_at > now() - INTERVAL 1 MINUTE GROUP BY type'
    while (!isOver()) {
      const { status, text } = await this.service.api('POST', '/api/v1/query', { query })
      this.queries++
      if (status !== 200) this.failures.add(`query: ${status} ${text.slice(0, 200)}`)
      await Bun.sleep(QUERY_MS)
    }
  }

  private async sample(isOver: () => boolean, samples: Sample[]): Promise<void> {
    const startedAt = performance.now()
    while (!isOver()) {
      await Bun.sleep(SAMPLE_MS)
      const { data } = await this.service.api('GET', '/readyz')
      samples.push({ ...this.resources(), lag: data?.consumers?.clickhouse?.lag ?? -1 })
      if (samples.length % 6 === 0) {
        const { residentMiB, lag } = samples.at(-1)!
        const minutes = Math.round((performance.now() - startedAt) / 60_000)
        this.options.progress(
          `${minutes} min, ${Math.round(residentMiB)} MiB in the service, ${lag} rows behind in SQL`,
        )
      }
    }
  }

  private async checkCounts(watching: Watching): Promise<void> {
    const count = async () => {
      const { data } = await this.service.api('POST', '/api/v1/query', { query: 'SELECT count() AS n FROM events' })
      return data?.rows[0].n
    }
    const settled = { timeoutMs: 120_000, intervalMs: 500 }
    await eventually(async () => (await count()) >= this.acknowledged, settled).catch(() => {})
    this.failures.expect('events in SQL', await count(), this.acknowledged)
    await eventually(() => watching.eventCount >= this.acknowledged, settled).catch(() => {})
    await watching.stop()
    this.failures.expect('events in the feed', watching.eventCount, this.acknowledged)
    for (const line of watching.failures.result) this.failures.add(line)
  }

  private figures(perSecond: number, samples: readonly Sample[]): CampaignResult['figures'] {
    const warm = samples[Math.floor(samples.length * WARM_UP_SHARE)]
    const last = samples.at(-1)
    if (warm !== undefined && last !== undefined && samples.length > 12) {
      if (last.residentMiB > warm.residentMiB * GROWTH_MAX)
        this.failures.add(`memory grew from ${Math.round(warm.residentMiB)} to ${Math.round(last.residentMiB)} MiB`)
      if (last.descriptors > warm.descriptors + 10)
        this.failures.add(`open files grew from ${warm.descriptors} to ${last.descriptors}`)
    }
    return {
      'events/s': Math.round(perSecond * EVENTS_PER_CALL),
      'events acknowledged': this.acknowledged,
      runs: this.runs,
      queries: this.queries,
      'responses by status': this.statusesText(),
      'memory after a quarter, MiB': Math.round(warm?.residentMiB ?? 0),
      'memory at the end, MiB': Math.round(last?.residentMiB ?? 0),
      'open files after a quarter': warm?.descriptors ?? 0,
      'open files at the end': last?.descriptors ?? 0,
      'most rows behind in SQL': Math.max(0, ...samples.map(({ lag }) => lag)),
    }
  }
}
