import { expect, test } from 'bun:test'
import { Analytics } from '../../src/sql/analytics/analytics.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { loadedThrough } from '../http/query-tenants.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { type Random, seededRandom } from '../support/random.ts'

/** A query as of a time has the same answer whenever it is asked: at once, after later changes, and after merges. */

const OURS = { workspaceId: 'a0000000-0000-7000-8000-000000000001', partition: 0 }
const THEIRS = 'b0000000-0000-7000-8000-000000000002'
const START = Date.UTC(2026, 0, 31, 23, 59, 50)
const STEPS = 12
const QUERIES = [
  "select count() as n, sum(toInt64(payload.n)) as total, max(seq) as last from events where type = 'note'",
  'select run_id, status, cost_usd, active_ms, input.q as q, output.text as text, metadata.k as k from runs order by run_id',
  'select count() as n from runs where completed_at < now() - interval 2 second',
  'select * from tasks order by task_id',
  'select pause_id, kind, status, answer, waiting_ms, decided_by_person from pauses order by pause_id',
  'select * from scores order by run_id, score_id',
  'select agent_id, version, name, updated_at from agents order by agent_id',
  'select agent_id, version, created_at from agent_versions order by agent_id, version',
  'select status, count() as n, uniqExact(task_id) as tasks from runs join tasks using (run_id) group by status order by status',
]

test('an answer as of a time does not change, whatever is accepted later, and however rows are merged', async () => {
  const { client } = await freshColumnarDatabase()
  const analytics = new Analytics(client, loadedThrough(0))
  const random = seededRandom('as of')
  using session = analytics.asOf(OURS)
  const ask = async (asOf: number) => {
    const { signal } = new AbortController()
    return Promise.all(QUERIES.map(async (query) => (await session.run({ query, asOf, rows: 1_000 }, signal)).rows))
  }
  const log = new Rows(client, random)
  const first: { asOf: number; answers: unknown }[] = []
  for (let step = 0; step < STEPS; step++) {
    await log.step()
    // Also between two times of acceptance.
    log.now += random.int(0, 1) * 500
    if (step % 3 === 1) first.push({ asOf: log.now, answers: await ask(log.now) })
  }
  for (const table of ['runs', 'tasks', 'scores', 'pauses', 'run_changes', 'task_changes', 'score_changes'])
    await client.command(`optimize table ${table} final`)
  for (const { asOf, answers } of first) expect(await ask(asOf)).toEqual(answers as never)
  expect(await ask(START - 1)).toEqual([[['0', '0', '0']], [], [['0']], [], [], [], [], [], []] as never)
}, 30_000)

/** Writes rows as the sink does, with rising positions and times of acceptance. */
class Rows {
  now = START
  private seq = 0
  private readonly written: { table: string; text: string }[] = []
  private readonly runs = new Map<string, string>()
  private readonly tasks: { run_id: string; task_id: string }[] = []
  private readonly scores: { run_id: string; score_id: string }[] = []
  private readonly pauses: { run_id: string; approval_id: string }[] = []

  constructor(
    private readonly client: ColumnarClient,
    private readonly random: Random,
  ) {}

  /** Some changes that are accepted together. */
  async step(): Promise<void> {
    this.now += this.random.int(1, 1_500)
    const changes = [
      this.event,
      this.newRun,
      this.runAgain,
      this.newTask,
      this.taskAgain,
      this.score,
      this.pause,
      this.decide,
      this.version,
    ]
    for (let n = this.random.int(4, 8); n > 0; n--) this.random.pick(changes).call(this)
    for (const [table, rows] of Map.groupBy(this.written.splice(0), ({ table }) => table)) {
      const insert = `insert into ${table} settings input_format_skip_unknown_fields = 1 format JSONEachRow`
      await this.client.command([insert, ...rows.map(({ text }) => text)].join('\n'))
    }
  }

  private event() {
    this.insert(['events'], {
      ...this.eventOf(Bun.randomUUIDv7()),
      type: 'note',
      payload: JSON.stringify({ n: this.random.int(0, 9) }),
    })
  }

  private newRun() {
    this.run(Bun.randomUUIDv7(), 'running')
  }

  /** Another state, or the same with newer counts, which may come long after the end. */
  private runAgain() {
    if (this.runs.size === 0) return
    const [runId, status] = this.random.pick([...this.runs])
    this.run(runId, status === 'running' ? this.random.pick(['running', 'completed', 'failed']) : status)
  }

  private run(run_id: string, status: string) {
    const isEnd = status !== 'running'
    this.runs.set(run_id, status)
    const row = {
      run_id,
      status,
      cost_usd: this.random.int(0, 99) / 8,
      duration_ms: isEnd ? 5_000 : null,
      waiting_ms: this.random.int(0, 900),
      completed_at: isEnd ? this.now : null,
      metadata: JSON.stringify({ k: this.random.int(0, 9) }),
    }
    this.insert(['runs', 'run_changes'], {
      ...row,
      input: `{"q":"${run_id}"}`,
      output: isEnd ? `{"text":"${run_id}"}` : null,
    })
  }

  private newTask() {
    if (this.runs.size === 0) return
    const task = { run_id: this.random.pick([...this.runs.keys()]), task_id: Bun.randomUUIDv7() }
    this.tasks.push(task)
    this.task(task, 'running')
  }

  private taskAgain() {
    if (this.tasks.length > 0) this.task(this.random.pick(this.tasks), this.random.pick(['completed', 'failed']))
  }

  private task(task: { run_id: string; task_id: string }, status: string) {
    this.insert(['task_changes'], {
      ...task,
      status,
      name: 'look up',
      output: JSON.stringify({ n: this.random.int(0, 9) }),
    })
  }

  private score() {
    if (this.runs.size === 0) return
    const added = { run_id: this.random.pick([...this.runs.keys()]), score_id: `${this.random.int(0, 3)}` }
    this.scores.push(added)
    this.insert(['score_changes'], {
      ...this.random.pick(this.scores),
      ...{ name: 'quality', value: this.random.int(0, 9), data_type: 'number', source: 'api', metadata: '{}' },
    })
  }

  private pause() {
    const run_id = Bun.randomUUIDv7()
    const pause = { run_id, approval_id: Bun.randomUUIDv7() }
    this.pauses.push(pause)
    this.insert(['events'], {
      ...this.eventOf(run_id),
      type: 'approval.requested',
      payload: JSON.stringify(pause),
    })
  }

  private decide() {
    if (this.pauses.length === 0) return
    const { run_id, approval_id } = this.random.pick(this.pauses)
    const decision = this.random.pick(['approved', 'rejected'])
    const payload = { approval_id, decision, decided_by: { email: 'ada@example.com' }, comment: 'ok' }
    this.insert(['events'], {
      ...this.eventOf(run_id),
      type: 'approval.decided',
      payload: JSON.stringify(payload),
    })
  }

  private version() {
    const version = ++this.seq
    const row = { agent_id: this.random.pick([OURS.workspaceId, THEIRS]), version, name: `v${version}`, metadata: '{}' }
    this.insert(['agent_versions'], { ...row, version_created_at: this.now })
  }

  private eventOf(run_id: string) {
    return { run_id, event_id: Bun.randomUUIDv7(), level: 'info', occurred_at: this.now }
  }

  /** Another workspace has the same rows, to be told apart. */
  private insert(tables: readonly string[], row: object) {
    const seq = ++this.seq
    for (const workspace_id of [OURS.workspaceId, THEIRS]) {
      const all = { workspace_id, agent_id: THEIRS, seq, received_at: this.now, ...row }
      for (const table of tables) this.written.push({ table, text: JSON.stringify(all) })
    }
  }
}
