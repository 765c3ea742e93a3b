import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { type Fate, type FateOf, type LatePostgres, latePostgres } from '../support/late-postgres.ts'
import { freshDatabase } from '../support/postgres.ts'
import { allInSql, type SpawnedService, spawnService, UNLIMITED } from '../support/service.ts'
import type { Campaign, CampaignOptions } from './campaign.ts'
import { LossCampaign } from './losses.ts'
import { Promises } from './promises.ts'

type Weather = Exclude<Fate['kind'], 'now'> | 'everything'

const WEATHERS: readonly Weather[] = ['late', 'refused', 'unheard', 'afterwards', 'everything']
/** How many of the exchanges meet it. */
const SHARE = 0.08
/** Most delays are short; statements are given up after 10 s. */
const [SHORT_MS, LONG_MS, LONG_SHARE] = [40, 3_000, 0.1] as const

/** Postgres answers late, or a connection breaks before or after it has done what it was asked. */
export const answers: Campaign = {
  describe: 'delays answers of Postgres, and breaks its connections before and after statements have an effect',
  rounds: 1_000,
  shortRounds: 40,
  run: (options) => new AnswersCampaign(options).run(),
}

class AnswersCampaign extends LossCampaign<Weather> {
  private service!: SpawnedService
  private postgres!: LatePostgres
  private promises!: Promises

  constructor(options: CampaignOptions) {
    super(options, { victims: WEATHERS, betweenMs: [20, 300], settleMs: 120_000, progressRounds: 20 })
  }

  protected async start() {
    this.postgres = await latePostgres((await freshDatabase()).url)
    const env = { ...this.world.backends.env, DATABASE_URL: this.postgres.url, LOG_LEVEL: 'error', ...UNLIMITED }
    this.service = await spawnService(env)
    const { agentId, agentKey } = await newAgent(this.service.api)
    const { random, checks } = this
    this.promises = new Promises({ api: this.service.api, agentId, agentKey, random, failures: checks.failures })
    return { service: this.service, urls: [this.service.url, this.service.url] }
  }

  protected api() {
    return this.service.api
  }

  protected async lose(weather: Weather): Promise<void> {
    this.postgres.meddle(fates(this.random.int(0, 2 ** 31), weather))
    await Bun.sleep(this.random.int(200, 1_500))
    this.postgres.meddle(undefined)
  }

  protected async settle(): Promise<void> {
    await this.promises.stop()
    const isReady = async () => (await this.api()('GET', '/readyz')).data.status === 'ready'
    await eventually(isReady, { timeoutMs: this.losses.settleMs, intervalMs: 100 })
  }

  protected async stop(): Promise<void> {
    await allInSql(this.service.api)
    await this.checks.check('promises', () => this.promises.check())
    this.service.kill('SIGTERM')
    this.checks.failures.expect('exit code at the end', await this.service.exited, 0)
  }

  protected figures() {
    const statements = [...this.postgres.counts].map(([kind, times]) => [`statements: ${kind}`, times])
    return { ...this.promises.figures, ...Object.fromEntries(statements) }
  }
}

/** The seed and the statement decide, not the order in which connections are served, so that a seed repeats most of it. */
function fates(seed: number, weather: Weather): FateOf {
  return (statement, nth) => {
    const drawn = (what: string) => Number(Bun.hash(`${seed} ${what} ${nth} ${statement}`) % 1_000_000n) / 1_000_000
    if (drawn('hit') >= SHARE) return { kind: 'now' }
    const kind = weather === 'everything' ? WEATHERS[Math.floor(drawn('kind') * (WEATHERS.length - 1))] : weather
    if (kind === 'refused' || kind === 'unheard') return { kind }
    const ms = Math.ceil(drawn('ms') * (drawn('long') < LONG_SHARE ? LONG_MS : SHORT_MS))
    return { kind: kind as 'late' | 'afterwards', ms }
  }
}
