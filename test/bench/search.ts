import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import type { Sql } from '../../src/stores/postgres/connect.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { freshDatabase } from '../support/postgres.ts'
import type { Bench } from './parts.ts'
import { timed, workspaceOf } from './queries.ts'
import { median, ms, type Report, whole } from './report.ts'
import { type BenchService, startBenchService } from './servers.ts'

const DAYS = 5
const EVENTS_PER_RUN = 20
/** The share of the rows of the part `volume`: indexing them takes longer than inserting them. */
const SHARE = 1 / 50
const WORDS = 50_000
const TIMES = 5
const TARGET_MS = 1_000

const SEARCHES: readonly (readonly [name: string, q: string])[] = [
  ['a rare word', 'word49999'],
  ['a frequent word', 'word1'],
  ['two words', 'word20 word700'],
  ['a phrase', '"word1 word2 word3"'],
  ['a word that was never said', 'nowhere'],
]

/** Search in a long history of one workspace. */
export async function measureSearch({ report, rows }: Bench): Promise<void> {
  const { url, client } = await freshColumnarDatabase()
  const database = await freshDatabase()
  const service = await startBenchService({ CLICKHOUSE_URL: url, DATABASE_URL: database.url })
  const workspaceId = await workspaceOf(client)
  const runs = Math.ceil((rows * SHARE) / EVENTS_PER_RUN)
  report.heading(`search: ${whole(runs)} runs of ${EVENTS_PER_RUN} events in ${DAYS} days`)
  const filled = await timed(() =>
    fill(client, database.sql, { workspaceId, agentId: service.agents[0]!.agentId, runs }),
  )
  report.line(`filled in ${ms(filled)}`)
  await measureAll(service, report, 'before the index is built')
  const indexed = await timed(() =>
    client.command('alter table events materialize index said settings mutations_sync = 1', { timeoutMs: 600_000 }),
  )
  report.line(`indexed in ${ms(indexed)}, ${((indexed * 1_000) / (runs * EVENTS_PER_RUN)).toFixed(1)} µs an event`)
  await measureAll(service, report, 'indexed')
}

async function measureAll(service: BenchService, report: Report, state: string): Promise<void> {
  const [{ id }] = (await found(service, 'word1')) as [{ id: string }]
  for (const [name, q] of [...SEARCHES, ['the end of an id', id.slice(-12)] as const]) {
    const times: number[] = []
    let count = 0
    for (let i = 0; i < TIMES; i++)
      times.push(
        await timed(async () => {
          count = (await found(service, q)).length
        }),
      )
    const text = `${state}, ${name}: ${ms(median(times))}, ${whole(count)} runs on the page, target at most ${TARGET_MS} ms`
    report.target(text, median(times) <= TARGET_MS)
  }
}

async function found(service: BenchService, q: string): Promise<{ readonly id: string }[]> {
  const { items } = await service.call('GET', `/api/v1/runs?${new URLSearchParams({ q })}`)
  return (items as { run_id: string }[]).map(({ run_id }) => ({ id: run_id }))
}

interface History {
  readonly workspaceId: string
  readonly agentId: string
  readonly runs: number
}

/** Generates runs and events in the stores: reporting them would take minutes. Words are as frequent as in texts. */
async function fill(client: ColumnarClient, sql: Sql, { workspaceId, agentId, runs }: History): Promise<void> {
  await sql`
    insert into runs (run_id, workspace_id, agent_id, agent_version, runtime_type, status, trigger_type, metadata, input,
      created_at, started_at)
    select md5('run' || n)::uuid, ${workspaceId}, ${agentId}, 1, 'external', 'running', 'sdk', '{}', '{}', at, at
    from (select n, now() - ${`${DAYS} days`}::interval * n / ${runs} as at from generate_series(0, ${runs - 1}::int) n) numbered`
  const id =
    "toUUID(replaceRegexpOne(lower(hex(MD5(concat('run', toString(n))))), '(.{8})(.{4})(.{4})(.{4})(.{12})', '\\\\1-\\\\2-\\\\3-\\\\4-\\\\5'))"
  const owner = `toUUID('${workspaceId}') as workspace_id, toUUID('${agentId}') as agent_id`
  const at = `now64(3, 'UTC') - toIntervalMillisecond(intDiv(n * ${DAYS * 86_400_000}, ${runs}))`
  const options = { timeoutMs: 300_000, settings: { exclude_materialize_skip_indexes_on_insert: 'said' } }
  await client.command(
    `insert into runs (workspace_id, agent_id, run_id, status, trigger_type, metadata, input, created_at, started_at, seq, received_at)
     select ${owner}, ${id}, 'running', 'sdk', '{}', '{}', ${at} as at, at, 1, at from (select number as n from numbers(${runs}))`,
    options,
  )
  const word = `concat('word', toString(toUInt32(pow(${WORDS}, cityHash64(number, i) / 18446744073709551616.0))))`
  await client.command(
    `insert into events (workspace_id, agent_id, run_id, seq, event_id, type, level, payload, occurred_at, received_at, epoch)
     select ${owner}, ${id}, 1000000000 + number, toString(number), 'llm.call', 'info',
       concat('{"request_id":"req_', hex(cityHash64(number)), '","messages":[{"role":"user","content":"',
         arrayStringConcat(arrayMap(i -> ${word}, range(25)), ' '), '"}]}'), ${at} as at, at, 'filled'
     from (select number, intDiv(number, ${EVENTS_PER_RUN}) as n from numbers(${runs * EVENTS_PER_RUN}))`,
    options,
  )
  await client.command('optimize table events final', { timeoutMs: 600_000 })
}
