import { beforeAll, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { usageRecord } from '../support/usage.ts'

/** `POST /api/v1/workspace/recount`: usage is counted again from the stored events (docs/usage.md). */

let service: TestService
let tenant: Tenant
let agent: Reporter

const { url: databaseUrl, sql } = await freshDatabase()

beforeAll(async () => {
  const prices = { m: { input: 1, output: 10, cache_read: 0.1 } }
  service = await startTestService({ DATABASE_URL: databaseUrl, MODEL_PRICES: JSON.stringify(prices) })
})

/** A workspace of its own, because one recount is for all of its runs. */
async function newWorkspace(): Promise<void> {
  tenant = await newTenant(service)
  agent = await newReporter(tenant.api)
}

/** 1,000,000 tokens that cost 1 * 0.2 + 0.1 * 0.8 + 10 * 0.1 = 1.28. */
const CALL = {
  type: 'llm.call',
  payload: {
    model: 'm',
    usage: { input_tokens: 200_000, cache_read_input_tokens: 800_000, output_tokens: 100_000 },
  },
}
const counted = (calls: number) => ({
  usage: usageRecord(calls * 1_000_000, calls * 100_000, { cache_read_tokens: calls * 800_000 }),
  cost_usd: Number((calls * 1.28).toFixed(10)),
})

const runOf = async (runId: string) => (await tenant.api('GET', `/api/v1/runs/${runId}`)).data

async function startRun(calls: number, more: object = {}): Promise<string> {
  const runId = await agent.start(more)
  await agent.events(runId, [{ type: 'note' }, ...Array.from({ length: calls }, () => CALL)])
  await eventually(async () => (await runOf(runId)).event_count === calls + 1)
  return runId
}

/** Gives the run the usage that an earlier version had counted. */
const forget = (runId: string) =>
  sql`update runs set input_tokens = 8, cache_read_tokens = 0, cost_usd = 999 where run_id = ${runId}`

const recount = () => tenant.api('POST', '/api/v1/workspace/recount')

async function recountIsDone(): Promise<void> {
  await eventually(async () => {
    const [row] = await sql`select done_at from recounts where workspace_id = ${tenant.workspaceId}`
    return row?.done_at !== null
  })
}

test('usage is counted again from the stored events, in the API and in SQL; what was right stays', async () => {
  await newWorkspace()
  const wrong = await startRun(3)
  const right = await startRun(1)
  await agent.end(right)
  await forget(wrong)
  const other = await newReporter((await newTenant(service)).api)
  const foreign = await other.start()
  await sql`update runs set input_tokens = 8 where run_id = ${foreign}`
  expect(await recount()).toMatchObject({ status: 202, data: { runs: 2 } })
  await eventually(async () => expect(await runOf(wrong)).toMatchObject(counted(3)))
  expect(await runOf(right)).toMatchObject(counted(1))
  const query = 'select input_tokens, cache_read_tokens, cost_usd from runs where run_id = {run:UUID}'
  await eventually(async () => {
    const { data } = await tenant.api('POST', '/api/v1/query', { query, params: { run: wrong } })
    expect(data.rows).toEqual([{ input_tokens: 3_000_000, cache_read_tokens: 2_400_000, cost_usd: 3.84 }])
  })
  expect((await sql`select input_tokens from runs where run_id = ${foreign}`)[0]).toEqual({ input_tokens: 8 })
})

test('usage that the end of a run reported stays, and that of runs whose events have not all been kept', async () => {
  await newWorkspace()
  const reported = await startRun(1)
  const usage = { input_tokens: 5, output_tokens: 6, cost_usd: 0.5 }
  await tenant.api('POST', '/api/ingest/v1/run/complete', { run_id: reported, usage }, { key: agent.agentKey })
  const expired = await startRun(2)
  // As if retention had deleted an event.
  await sql`update runs set event_count = event_count + 1, cost_usd = 7 where run_id = ${expired}`
  // The answer counts them as well.
  expect((await recount()).data).toEqual({ runs: 2 })
  await recountIsDone()
  expect(await runOf(reported)).toMatchObject({ usage: usageRecord(5, 6), cost_usd: 0.5 })
  expect(await runOf(expired)).toMatchObject({ usage: counted(2).usage, cost_usd: 7 })
})

test('events that arrive meanwhile count once, and one recount runs at a time', async () => {
  await newWorkspace()
  const runId = await startRun(2)
  const idle = await startRun(2)
  let calls = 2
  let isOver = false
  const reporting = (async () => {
    while (!isOver) {
      await agent.events(runId, [CALL])
      calls++
    }
  })()
  for (let round = 0; round < 3; round++) {
    await forget(idle)
    const answers = await Promise.all([recount(), recount()])
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409])
    expect(answers.find(({ status }) => status === 409)).toMatchObject({ error: { code: 'CONFLICT' } })
    await recountIsDone()
  }
  isOver = true
  await reporting
  await eventually(async () => (await runOf(runId)).event_count === calls + 1)
  expect(await runOf(runId)).toMatchObject(counted(calls))
  expect(await runOf(idle)).toMatchObject(counted(2))
})

test('a recount that was interrupted continues after the runs that it had done', async () => {
  await newWorkspace()
  const older = await startRun(1)
  const newer = await startRun(1)
  await forget(older)
  await forget(newer)
  await sql`
    insert into recounts (workspace_id, recount_id, requested_at, after_created_at, after_run_id)
    select workspace_id, gen_random_uuid(), now(), created_at, run_id from runs where run_id = ${newer}`
  await recountIsDone()
  expect(await runOf(older)).toMatchObject(counted(1))
  expect((await runOf(newer)).cost_usd).toBe(999)
})

test('a workspace that cannot be counted keeps no other one waiting', async () => {
  await newWorkspace()
  await forget(await startRun(1))
  const stuck = tenant.workspaceId
  await sql.unsafe(
    `alter table runs add constraint stuck check (workspace_id <> '${stuck}' or input_tokens = 8) not valid`,
  )
  await recount()
  await newWorkspace()
  const runId = await startRun(1)
  await forget(runId)
  await recount()
  await recountIsDone()
  expect(await runOf(runId)).toMatchObject(counted(1))
  const isStuck = async () => (await sql`select from recounts where workspace_id = ${stuck} and done_at is null`).length
  expect(await isStuck()).toBe(1)
  await sql`alter table runs drop constraint stuck`
  await eventually(async () => expect(await isStuck()).toBe(0))
})
