import { beforeAll, expect, test } from 'bun:test'
import { type FleetReport, runFleet } from '../../src/cli/demo/fleet.ts'
import { HistoryClock, writeHistory } from '../../src/cli/demo/history.ts'
import { startModelServer } from '../../src/cli/demo/hosted/model-server.ts'
import { createRandom } from '../../src/cli/demo/random.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** With this seed, the first dozen conversations and jobs cover all agents; one fails and one is cancelled. */
const SEED = 67
const DAYS = 0.1
const DAY_MS = 86_400_000

let service: TestService
let report: FleetReport

/** The demo with its history in a service whose clock it moves, as with `--serve`; then some seconds live. */
beforeAll(async () => {
  const clock = new HistoryClock(Date.now() - DAYS * DAY_MS)
  const model = startModelServer({ port: 0, random: createRandom(SEED), pass: (ms) => clock.pass(ms) })
  atEnd(() => model.stop())
  service = await startTestService({ OPENAI_BASE_URL: model.modelUrl, EGRESS_ALLOW: model.host }, { clock })
  const { signal: stop } = new AbortController()
  const options = { url: service.url, key: service.workspaceKey, rate: 0.5, agents: 7, durationSeconds: 2, seed: SEED }
  report = await runFleet(options, model, {
    stop,
    async onCompany(company, client) {
      await writeHistory(company, client, { days: DAYS, seed: SEED, clock, stop })
      clock.release()
    },
  })
}, 60_000)

const rows = (query: string) => rowsInSql(service.api, query)

async function items(path: string): Promise<Record<string, unknown>[]> {
  return (await service.api('GET', path)).data.items
}

test('SQL contains exactly what the clients reported, and every report was accepted', () => {
  const { reported, total, ackMs, lastProblem } = report.progress
  expect({ differences: report.differences, problem: lastProblem() }).toEqual({ differences: [], problem: undefined })
  expect(report.keysRevoked).toBe(true)
  expect([total('queued'), total('rejected'), total('dropped')]).toEqual([0, 0, 0])
  expect(reported['runs completed']).toBeGreaterThan(3)
  expect(reported['runs cancelled']).toBeGreaterThan(0)
  expect(reported.events).toBeGreaterThan(30)
  expect(ackMs(99)).toBeGreaterThan(ackMs(0.1))
})

test('every view has something to show: nested steps, conversations, sessions, users, failures, history', async () => {
  const [runs] =
    await rows(`select uniqExact(agent_id) as agents, uniqExactIf(external_user_id, external_user_id != '') as users,
    uniqExactIf(session_id, session_id != '') as sessions,
    countIf(status = 'failed') as failed, countIf(parent_run_id is not null) as children,
    sum(cost_usd) > 0 as costs, dateDiff('hour', min(created_at), max(created_at)) as hours,
    countIf(duration_ms > 1000 and created_at < now() - toIntervalMinute(10)) as lasting from runs`)
  expect(Number(runs?.agents)).toBe(11)
  for (const name of ['users', 'failed', 'children', 'costs', 'lasting'])
    expect({ [name]: Number(runs?.[name]) }).not.toEqual({ [name]: 0 })
  expect(Number(runs?.hours)).toBeGreaterThan(1)
  expect(Number(runs?.sessions)).toBeGreaterThan(7)

  const [tasks] = await rows(`select countIf(parent_task_id is not null) as nested from tasks`)
  expect(Number(tasks?.nested)).toBeGreaterThan(20)
  const [events] = await rows(`select countIf(level = 'error') as errors, countIf(task_id is not null) as nested,
    countIf(type = 'llm.call' and length(toString(payload.gen_ai.input.messages)) > 2) as conversations from events`)
  for (const name of ['errors', 'nested', 'conversations'])
    expect({ [name]: Number(events?.[name]) }).not.toEqual({ [name]: 0 })

  const [scores] = await rows(`select countIf(source = 'judge' and value > 0) as judged, uniqExact(s.name) as names,
    countIf(dateDiff('minute', r.created_at, s.created_at) not between 0 and 30) as misdated
    from scores s join runs r on r.run_id = s.run_id`)
  expect([scores?.names, scores?.misdated].map(Number)).toEqual([3, 0])
  expect(Number(scores?.judged)).toBeGreaterThan(3)
})

test('approvals and questions of different ages wait, and a run resumes when somebody decides', async () => {
  const pending = await items('/api/v1/approvals?status=pending')
  expect((await items('/api/v1/input-requests?status=pending')).length).toBeGreaterThan(0)
  const ages = pending.map(({ created_at }) => Date.now() - Date.parse(String(created_at)))
  expect(Math.max(...ages) - Math.min(...ages)).toBeGreaterThan(60_000)
  const refund = pending.find(({ tool }) => tool === 'issue_refund')
  const decided = await service.api('POST', `/api/v1/approvals/${refund?.approval_id}/approve`, {})
  expect(decided.data).toMatchObject({ status: 'completed', output: { text: expect.stringContaining('on their way') } })
})

test('agents have versions, and there is a board', async () => {
  const agents = await items('/api/v1/agents?limit=50')
  const desk = agents.find(({ name }) => name === 'Refund desk')
  expect(desk?.version).toBe(3)
  expect(agents.find(({ name }) => name === 'Support chat')?.version).toBe(3)
  const versions = await rows(
    `select uniqExact(agent_version) as versions from runs where agent_id = '${desk?.agent_id}'`,
  )
  expect(Number(versions[0]?.versions)).toBeGreaterThan(1)
  const [board] = await items('/api/v1/boards')
  expect(board).toMatchObject({ name: 'Larkspur agents (demo)' })
  for (const { query_id } of (board?.charts ?? []) as { query_id: string }[]) {
    const params = { from: '2020-01-01 00:00:00', to: '2030-01-01 00:00:00', step: 3_600 }
    const { data, error } = await service.api('POST', `/api/v1/queries/${query_id}/run`, { params })
    expect(error).toBeNull()
    expect(data.row_count).toBeGreaterThan(0)
  }
})

test('a second demo reuses what the first created; the hosted agents rest if the service uses another model', async () => {
  const model = startModelServer({ port: 0, random: createRandom(SEED), pass: Bun.sleep })
  atEnd(() => model.stop())
  const options = { url: service.url, key: service.workspaceKey, rate: 0.1, agents: 7, durationSeconds: 1, seed: SEED }
  const { progress, differences } = await runFleet(options, model, { stop: new AbortController().signal })
  expect([progress.isHosting, differences, progress.lastProblem()]).toEqual([false, [], undefined])
  for (const [path, number] of [
    ['/api/v1/agents', 11],
    ['/api/v1/boards', 1],
    ['/api/v1/queries', 7],
    ['/api/v1/keys?status=active&type=agent', 0],
  ] as const)
    expect({ [path]: (await items(path)).length }).toEqual({ [path]: number })
})
