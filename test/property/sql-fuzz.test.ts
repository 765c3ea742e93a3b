import { beforeAll, expect, test } from 'bun:test'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { inParallel } from '../support/in-parallel.ts'
import { seededRandom } from '../support/random.ts'
import { OPERATOR_TOKEN, startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { type Bait, fuzzQuery } from './sql-grammar.ts'

/**
 * Random queries of a grammar over HTTP by one tenant of a database with rows of another tenant: no answer and no
 * message contains foreign data, and the engine survives. QUERIES sets their number.
 */

const QUERIES = Number(process.env.QUERIES ?? 250)
/** Strings that no query can contain. */
const FOREIGN = 'Zk7Foreign'
const IN_FILE = 'Zk7File'
const IN_PROCESS = 'Zk7Process'

const random = seededRandom('sql-fuzz')
let service: TestService
let bait: Bait
let ours: { workspaceId: string; key: string }
let enginePid: () => number | undefined

beforeAll(async () => {
  const { client, backend, url } = await freshColumnarDatabase()
  enginePid = () => (backend as { pid?: number }).pid
  service = await startTestService({ CLICKHOUSE_URL: url })
  const file = join(await temporaryDirectory(), 'secret')
  await writeFile(file, IN_FILE)
  process.env.FUZZ_MARK = IN_PROCESS
  ours = await newWorkspace()
  const theirs = await newWorkspace()
  bait = { database: client.database, workspaces: [ours.workspaceId, theirs.workspaceId], file }
  for (const [{ workspaceId }, word] of [
    [ours, 'ours'],
    [theirs, FOREIGN],
  ] as const)
    await fill(client, workspaceId, word)
})

test('no query reads anything that does not belong to the caller', async () => {
  const queries = Array.from({ length: QUERIES }, () => fuzzQuery(random, bait))
  const pid = enginePid()
  const outcomes = { answered: 0, refused: 0 }
  const unavailable: string[] = []
  const forbidden = [FOREIGN, IN_FILE, IN_PROCESS, bait.database, 'additional_table_filters', 'PREWHERE workspace']
  await inParallel(
    queries,
    async (query) => {
      const params = { p: 'AggregateFunction(sum, UInt64)', n: 1, t: ['a'], i: 'workspace_id', q: '}' }
      const answer = await service.api('POST', '/api/v1/query', { query, params }, { key: ours.key })
      // What the caller itself wrote may come back, in a message or as the name of a column.
      const own = forbidden.filter((text) => query.includes(text))
      for (const text of forbidden.filter((text) => !own.includes(text))) expect(answer.text, query).not.toContain(text)
      const values = JSON.stringify(answer.data?.rows?.map(Object.values) ?? [])
      for (const text of [FOREIGN, IN_FILE, IN_PROCESS]) expect(values, query).not.toContain(text)
      if (!query.includes(bait.workspaces[1])) expect(answer.text, query).not.toContain(bait.workspaces[1])
      expect([200, 400, 503], `${query}: ${answer.text}`).toContain(answer.status)
      if (answer.status === 200) outcomes.answered++
      else if (answer.status === 400) outcomes.refused++
      else unavailable.push(query)
    },
    3,
  )
  expect(enginePid()).toBe(pid)
  // The grammar is useful: many queries run, many are rejected, and none makes the service unavailable.
  expect(unavailable).toEqual([])
  expect(Math.min(outcomes.answered, outcomes.refused), JSON.stringify(outcomes)).toBeGreaterThan(QUERIES / 10)
})

async function newWorkspace(): Promise<{ workspaceId: string; key: string }> {
  const { data } = await service.api('POST', '/api/v1/workspaces', { name: 'w' }, { key: OPERATOR_TOKEN })
  return { workspaceId: data.workspace_id, key: data.key }
}

type Client = ReturnType<typeof createColumnarClient>

/** Fills every table with rows that contain the word. */
async function fill(client: Client, workspace: string, word: string): Promise<void> {
  const params = { workspace, word }
  await client.command(
    `insert into events (workspace_id, agent_id, run_id, seq, event_id, type, level, payload, occurred_at, received_at, epoch)
     select {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, number, {word:String} || toString(number), {word:String}, 'info',
            '{"a":{"b":' || toString(number) || '},"word":"' || {word:String} || '"}', now64(3), now64(3), {word:String}
     from numbers(30)`,
    { params },
  )
  for (const table of ['runs', 'run_changes'])
    await client.command(
      `insert into ${table} (workspace_id, agent_id, run_id, agent_name, status, tags, created_at, seq)
       select {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, {word:String}, {word:String}, [{word:String}], now64(3), 1`,
      { params },
    )
  for (const table of ['tasks', 'task_changes'])
    await client.command(
      `insert into ${table} (workspace_id, agent_id, run_id, task_id, name, status, input, created_at, updated_at, seq)
       select {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, {word:String}, {word:String},
              '{"word":"' || {word:String} || '"}', now64(3), now64(3), 1`,
      { params },
    )
}
