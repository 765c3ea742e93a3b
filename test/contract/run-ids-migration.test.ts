import { expect, test } from 'bun:test'
import { copyFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { insertKey } from '../../src/keys/store.ts'
import { mintToken } from '../../src/keys/token.ts'
import type { Sql } from '../../src/postgres/connect.ts'
import { migratePostgres } from '../../src/postgres/migrate.ts'
import { type Api, createApi } from '../support/api.ts'
import { untilStatus } from '../support/hosted.ts'
import { startModelServer } from '../support/model-server.ts'
import { emptyDatabase } from '../support/postgres.ts'
import { startTestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** Migration of a database from before run_ids were unique per workspace only. */

const MIGRATIONS = join(import.meta.dir, '..', '..', 'sql', 'postgres')
const MIGRATION = '0008_runs_per_workspace.sql'
const NOW = '2026-01-31T09:30:00.123Z'

test('runs of the previous version continue after the migration', async () => {
  const database = await emptyDatabase()
  const { sql } = database
  await migratePostgres(database.url, createLog('error'), await migrationsBefore(MIGRATION))
  const workspaces = [await oldWorkspace(sql), await oldWorkspace(sql)] as const
  const [first, second] = workspaces

  const model = startModelServer({ text: 'Thanks.' })
  const service = await startTestService({ DATABASE_URL: database.url, OPENAI_BASE_URL: model.url })
  for (const { key, agentKey, external, child, waiting, taskId, pauseId } of workspaces) {
    const api = createApi(service.url, key)
    expect((await api('GET', `/api/v1/runs/${external}/children`)).data.items).toMatchObject([{ run_id: child }])
    expect((await api('GET', `/api/v1/runs/${external}/tasks`)).data.items).toMatchObject([{ id: taskId, name: 'old' }])
    const ingest = (path: string, body: object) =>
      api('POST', `/api/ingest/v1/${path}`, { run_id: external, ...body }, { key: agentKey })
    const task = await ingest('tasks', { task: { id: taskId, name: 'new', status: 'completed' } })
    expect(task.data).toMatchObject({ created: false, applied: true })
    expect((await ingest('events', { events: [{ id: 'a', type: 'late' }] })).data.accepted).toBe(1)
    expect((await ingest('run/complete', {})).data.status).toBe('completed')
    const answered = await api('POST', `/api/v1/input-requests/${pauseId}/answer`, { answer: 'the first' })
    expect(answered.data).toMatchObject({ run_id: waiting, status: 'completed', output: { text: 'Thanks.' } })
    await untilStatus({ api }, waiting, 'completed')
  }

  const start = (api: Api, { agentId, agentKey }: OldWorkspace, run_id: string) =>
    api('POST', '/api/ingest/v1/run/start', { agent_id: agentId, run_id }, { key: agentKey })
  expect((await start(service.api, first, second.external)).data).toEqual({ run_id: second.external })
  expect((await start(service.api, second, first.waiting)).data).toEqual({ run_id: first.waiting })
  expect((await start(service.api, first, first.external)).error?.code).toBe('CONFLICT')
})

test('keeps foreign keys within a workspace, and run_ids unique in it', async () => {
  const database = await emptyDatabase()
  const { sql } = database
  await migratePostgres(database.url, createLog('error'), await migrationsBefore(MIGRATION))
  const [first, second] = [await oldWorkspace(sql), await oldWorkspace(sql)]
  await migratePostgres(database.url, createLog('error'))
  const refusal = (statement: PromiseLike<unknown>) =>
    Promise.resolve(statement).then(
      () => null,
      (error: { code: string }) => error.code,
    )
  for (const table of ['tasks', 'hosted_runs', 'run_steps', 'tool_calls', 'pauses']) {
    const [row] = await sql`select from ${sql(table)} where workspace_id = ${first.workspaceId}`
    expect(row).toBeDefined()
    const moved = sql`
      update ${sql(table)} set workspace_id = ${second.workspaceId} where workspace_id = ${first.workspaceId}`
    expect([table, await refusal(moved)]).toEqual([table, '23503'])
  }
  const again = sql`
    insert into runs select (json_populate_record(r, '{"status":"failed"}')).* from runs r where run_id = ${first.external}`
  expect(await refusal(again)).toBe('23505')
})

async function migrationsBefore(name: string): Promise<string> {
  const directory = await temporaryDirectory()
  for (const each of (await readdir(MIGRATIONS)).filter((file) => file < name))
    await copyFile(join(MIGRATIONS, each), join(directory, each))
  return directory
}

interface OldWorkspace {
  readonly workspaceId: string
  readonly key: string
  readonly agentId: string
  readonly agentKey: string
  /** A running run of an external agent, with a task and a child. */
  readonly external: string
  readonly child: string
  readonly taskId: string
  /** A run of a hosted agent that waits for an answer. */
  readonly waiting: string
  readonly pauseId: string
}

/** A workspace as the previous version left it, row by row, because its statements no longer exist. */
async function oldWorkspace(sql: Sql): Promise<OldWorkspace> {
  const [workspaceId, agentId, hostedId, external, child, waiting, taskId, callId, pauseId] = Array.from(
    { length: 9 },
    () => crypto.randomUUID() as string,
  ) as [string, string, string, string, string, string, string, string, string]
  await sql`
    insert into workspaces (workspace_id, name, created_at, updated_at) values (${workspaceId}, 'old', ${NOW}, ${NOW})`
  for (const [id, type] of [
    [agentId, 'external'],
    [hostedId, 'hosted'],
  ] as const)
    await sql`
      insert into agents (agent_id, workspace_id, name, runtime_type, metadata, created_at, updated_at)
      values (${id}, ${workspaceId}, 'old', ${type}, '{}', ${NOW}, ${NOW})`
  const newRun = (id: string, agent: string, type: string, status: string, parent: string | null) => sql`
    insert into runs (run_id, workspace_id, agent_id, agent_version, runtime_type, status, trigger_type, parent_run_id,
      metadata, input, pending, created_at, started_at)
    values (${id}, ${workspaceId}, ${agent}, 1, ${type}, ${status}, 'sdk', ${parent}, '{}', '{}',
      ${status === 'running' ? null : JSON.stringify({ type: 'input', id: pauseId, run_id: waiting, question: 'Which?', expires_at: null })}::text::json,
      ${NOW}, ${NOW})`
  await newRun(external, agentId, 'external', 'running', null)
  await newRun(child, agentId, 'external', 'running', external)
  await newRun(waiting, hostedId, 'hosted', 'awaiting_input', null)
  await sql`
    insert into tasks (run_id, task_id, workspace_id, agent_id, name, status, created_at, updated_at)
    values (${external}, ${taskId}, ${workspaceId}, ${agentId}, 'old', 'running', ${NOW}, ${NOW})`
  const agent = {
    name: 'old',
    model: 'm',
    tools: [],
    outputSchema: null,
    allowInputRequests: true,
    temperature: null,
    maxOutputTokens: null,
    maxSteps: 20,
    timeoutSeconds: 300,
    budgetUsd: null,
  }
  const plan = { agent, system: 'You help.', history: [], user: 'Hello', isStreamed: false, depth: 0 }
  await sql`
    insert into hosted_runs (run_id, workspace_id, agent_id, root_run_id, plan, phase, queued_at)
    values (${waiting}, ${workspaceId}, ${hostedId}, ${waiting}, ${JSON.stringify(plan)}::text::json, 'paused', ${NOW})`
  const asked = [{ id: 'call_1', name: 'request_input', arguments: '{"question":"Which?"}' }]
  await sql`
    insert into run_steps (run_id, step, workspace_id, attempt, tool_calls, input_tokens, output_tokens, created_at)
    values (${waiting}, 1, ${workspaceId}, 'a', ${JSON.stringify(asked)}::text::json, 1, 1, ${NOW})`
  await sql`
    insert into tool_calls (call_id, run_id, workspace_id, step, position, tool_call_id, tool, input, status)
    values (${callId}, ${waiting}, ${workspaceId}, 1, 0, 'call_1', 'request_input', '{"question":"Which?"}', 'held')`
  await sql`
    insert into pauses (pause_id, workspace_id, agent_id, run_id, call_id, type, status, question, created_at, frame)
    values (${pauseId}, ${workspaceId}, ${hostedId}, ${waiting}, ${callId}, 'input', 'pending', 'Which?', ${NOW}, 1)`
  const newKey = async (agent_id: string | null) => {
    const token = mintToken(agent_id === null ? 'workspace' : 'agent')
    const row = { key_id: crypto.randomUUID(), workspace_id: workspaceId, agent_id, name: null, expires_at: null }
    await insertKey(sql, token, { ...row, created_at: new Date(NOW) })
    return token.text
  }
  const keys = { key: await newKey(null), agentKey: await newKey(agentId) }
  return { workspaceId, ...keys, agentId, external, child, taskId, waiting, pauseId }
}
