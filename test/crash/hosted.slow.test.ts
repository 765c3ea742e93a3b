import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/postgres.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { freePort, type SpawnedService, spawnService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'
import {
  type Agents,
  createWorld,
  expectEffects,
  expectNothingRepeated,
  KINDS,
  POINTS,
  type Point,
  readStored,
  startApprover,
  withRetries,
} from './hosted-life.ts'

/** Rounds that each kill the service once or twice, at points that differ between test runs. CRASH_ROUNDS sets more, to cover all points. */
const ROUNDS = Number(process.env.CRASH_ROUNDS ?? 5)
const ROUND_MS_MAX = 60_000
const SESSION_TURNS = 3

test(
  'a service killed at any point continues its runs where they were, and does nothing twice',
  async () => {
    const random = seededRandom('hosted crash')
    const campaign = await Campaign.start(random)
    const points: (Point | 'any time')[] = shuffled([...POINTS], random)
    for (let round = 0; round < ROUNDS; round++) {
      const isAnyTime = round === ROUNDS - 1 || round > points.length
      const point = isAnyTime ? 'any time' : (points[round] ?? random.pick(POINTS))
      await campaign.round(point, `r${round}`)
    }
    await campaign.check()
  },
  ROUNDS * ROUND_MS_MAX,
)

interface StartedRun {
  readonly kind: keyof typeof KINDS
  readonly tag: string
  readonly runId: string
}

class Campaign {
  private service!: SpawnedService
  private agents!: Agents
  private trap: { readonly point: Point | 'any time'; readonly fire: () => void } | undefined
  private readonly world
  private readonly call
  private readonly started: StartedRun[] = []
  /** The user messages of each session, in order. */
  private readonly sessions = new Map<string, string[]>()

  private constructor(
    private readonly random: Random,
    private readonly env: Record<string, string>,
    private readonly sql: Sql,
  ) {
    this.world = createWorld(random, (point) => this.reached(point))
    this.call = withRetries(() => this.service.api)
  }

  static async start(random: Random): Promise<Campaign> {
    const [DATA_DIR, database, columnar] = await Promise.all([
      temporaryDirectory(),
      freshDatabase(),
      freshColumnarDatabase(),
    ])
    const sql = connectPostgres(database.url, { log: createLog('error'), max: 1 })
    atEnd(() => sql.end({ timeout: 1 }))
    const stores = { DATA_DIR, DATABASE_URL: database.url, CLICKHOUSE_URL: columnar.url }
    const env = { PORT: String(freePort()), LOG_LEVEL: 'warn', ...stores }
    const campaign = new Campaign(random, env, sql)
    await campaign.startService()
    campaign.agents = await campaign.world.createAgents(campaign.service)
    return campaign
  }

  /** Starts runs of every kind, kills the service at a point, perhaps again during recovery, and waits until all have ended. */
  async round(point: Point | 'any time', name: string): Promise<void> {
    const stopApproving = startApprover(this.call, (reached) => this.reached(reached))
    const killed = this.kill(point)
    const runs = this.startAll(name)
    await killed

    const stored = [await readStored(this.sql, this.world)]

    await this.startService()

    if (this.random.bool(0.3)) {
      await this.kill(this.random.pick(['any time', 'model asked', 'tool answered', 'approve sent']), 300)
      stored.push(await readStored(this.sql, this.world))
      await this.startService()
    }
    const ids = (await runs).map(({ runId }) => runId)
    await eventually(async () => {
      const open = await this.sql`
          select run_id, phase, owner from hosted_runs where phase <> 'ended' and root_run_id = any(${ids}::uuid[])`
      expect([...open], `after a kill at: ${point}`).toEqual([])
    })

    await stopApproving()
    for (const each of stored) expectNothingRepeated(this.world, each)
  }

  private reached(point: Point): void {
    if (this.trap?.point !== point) return
    this.trap.fire()
    this.trap = undefined
  }

  /** Kills the service when it reaches that point, or after `limitMs`, because the point may have passed already. */
  private async kill(point: Point | 'any time', limitMs = 5_000): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const service = this.service
    // Immediately, not in the next iteration of the event loop.
    const fire = () => {
      service.kill('SIGKILL')
      resolve()
    }
    const timer = setTimeout(fire, point === 'any time' ? this.random.int(0, 150) : limitMs)
    this.trap = { point, fire }
    await promise
    clearTimeout(timer)
    this.trap = undefined
    await service.exited
  }

  private async startService(): Promise<void> {
    const key = this.service?.workspaceKey
    this.service = await spawnService({
      ...this.world.backends.env,
      ...this.env,
      ...(key !== undefined && { BOOTSTRAP_WORKSPACE_KEY: key }),
    })
  }

  private async startAll(name: string): Promise<StartedRun[]> {
    const session = this.startRun('talker', `${name}-t0`, { start_session: true }).then(async (first) => {
      const turns = [first]
      for (let turn = 1; turn < SESSION_TURNS; turn++)
        turns.push(await this.startRun('talker', `${name}-t${turn}`, { session_id: first.sessionId }))
      this.sessions.set(
        first.sessionId!,
        turns.map(({ tag }) => tag),
      )
      return turns
    })
    const all = await Promise.all([
      this.startRun('worker', `${name}-w1`),
      this.startRun('worker', `${name}-w2`),
      this.startRun('parent', `${name}-p`),
      session,
    ])
    const runs = all.flat()
    this.started.push(...runs)
    return runs
  }

  private async startRun(kind: StartedRun['kind'], tag: string, more: object = {}) {
    const { agentId } = this.agents[kind]
    const body = { background: true, input: { message: tag }, ...more }
    const answer = this.call('POST', `/api/v1/agents/${agentId}/invoke`, body)
    setTimeout(() => this.reached('invoke sent'), this.random.int(0, 3))
    const { status, data, text } = await answer
    expect([status, text]).toEqual([202, text])
    return { kind, tag, runId: data.run_id as string, sessionId: data.session_id as string | null }
  }

  /** Checks all rounds in Postgres, in events, in SQL, and in the calls that the tools received. */
  async check(): Promise<void> {
    await this.checkRuns()
    await this.checkSessions()
    for (const { kind, tag } of this.started) expectEffects(this.world, kind, tag)
    await this.checkEvents()
    this.service.kill('SIGTERM')
    expect(await this.service.exited).toBe(0)
    expect(this.service.output().stderr).toBe('')
  }

  private async checkRuns(): Promise<void> {
    for (const { kind, tag, runId } of this.started) {
      const { data } = await this.call('GET', `/api/v1/runs/${runId}`)
      const text = kind === 'talker' ? `${KINDS.talker.output} ${tag}` : KINDS[kind].output
      expect(data).toMatchObject({ status: 'completed', output: { text }, pending: null, input: { message: tag } })
    }
    const left = await this.sql`select run_id, status from runs where completed_at is null`
    expect([...left]).toEqual([])
    const [{ count }] = await this.sql<[{ count: number }]>`select count(*)::int as count from runs`
    // Every parent has a child, and there are no other runs.
    expect(count).toBe(this.started.length + this.started.filter(({ kind }) => kind === 'parent').length)
    await eventually(async () => (await this.sql`select from outbox limit 1`).length === 0)
  }

  private async checkSessions(): Promise<void> {
    for (const [sessionId, tags] of this.sessions) {
      const { data } = await this.call('GET', `/api/v1/sessions/${sessionId}/messages`)
      const contents = data.items.map(({ content }: { content: string }) => content)
      expect(contents).toEqual(tags.flatMap((tag) => [tag, `${KINDS.talker.output} ${tag}`]))
      expect((await this.call('GET', `/api/v1/sessions/${sessionId}`)).data.active_run_id).toBeNull()
    }
  }

  private async checkEvents(): Promise<void> {
    const stored = await this.sql<{ runId: string; steps: number; calls: number; pauses: number }[]>`
      select r.run_id as "runId", (select count(*)::int from run_steps s where s.run_id = r.run_id) as steps,
        (select count(*)::int from tool_calls c where c.run_id = r.run_id) as calls,
        (select count(*)::int from pauses p where p.run_id = r.run_id) as pauses
      from runs r`
    const query =
      'select run_id, count() as n, uniqExact(event_id) as ids, ' +
      [
        'run.started',
        'run.completed',
        'llm.call',
        'tool.call.started',
        'tool.call.finished',
        'approval.requested',
        'approval.decided',
      ]
        .map((type) => `countIf(type = '${type}') as \`${type}\``)
        .join(', ') +
      ' from events group by run_id'
    await eventually(
      async () => {
        const { data } = await this.call('POST', '/api/v1/query', { query })
        const rows = data.rows.map(({ n, ids, ...row }: { n: number; ids: number }) => {
          expect(ids).toBe(n)
          return row
        })
        expect(byRun(rows)).toEqual(
          byRun(
            stored.map(({ runId, steps, calls, pauses }) => ({
              run_id: runId,
              'run.started': 1,
              'run.completed': 1,
              'llm.call': steps,
              'tool.call.started': calls,
              'tool.call.finished': calls,
              'approval.requested': pauses,
              'approval.decided': pauses,
            })),
          ),
        )
      },
      { intervalMs: 100 },
    )
    const runs = (
      await this.call('POST', '/api/v1/query', { query: 'select status, count() as n from runs group by 1' })
    ).data.rows
    expect(runs).toEqual([{ status: 'completed', n: stored.length }])
  }
}

/** The two databases sort UUIDs differently. */
function byRun(rows: readonly { readonly run_id: string }[]) {
  return Object.fromEntries(rows.map((row) => [row.run_id, row]))
}

function shuffled<T>(items: T[], random: Random): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = random.int(0, i)
    ;[items[i], items[j]] = [items[j]!, items[i]!]
  }
  return items
}
