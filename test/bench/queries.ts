import { pathExpression } from '../../src/sql/analytics/json-paths.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { eventBodies } from './bodies.ts'
import { runLoad } from './load.ts'
import type { Bench } from './parts.ts'
import { alternate, quiet } from './quiet.ts'
import { median, ms, type Report, whole } from './report.ts'
import { type BenchService, eventsLoad, startBenchService } from './servers.ts'

const TIMES = 20
const TENANTS = 4
const LOAD = { connections: 16, eventsPerCall: 100 }
const TARGETS = { ratio: 1.1, moreMs: 5, disk: 0.2, rate: 0.5, p99Ms: 100 }

/** The SQL guard's overhead, compared with the engine and a filter written by hand. */
const COMPARED: readonly (readonly [name: string, tenant: string, direct: string])[] = [
  ['point', 'select max(seq) as v from events', 'select max(seq) as v from events where {mine}'],
  [
    'aggregate',
    'select type, level, count() as n from events group by type, level order by n desc',
    `select cast(type, 'String') as type, cast(level, 'String') as level, count() as n from events where {mine}
     group by type, level order by n desc`,
  ],
  [
    'payload',
    'select sum(payload.tokens.in::Float64) as v from events where payload.tokens.in is not null',
    // The expression for the path, as one would write it by hand.
    `select sum(p::Float64) as v from (select ${pathExpression('payload.tokens.in')} as p from events where {mine}) where p is not null`,
  ],
]

const QUERY_CAPS = JSON.stringify({ at_once: TENANTS })

/** SQL on a service whose engine can also be queried directly. */
export async function measureQueries({ report, rounds, seconds }: Bench): Promise<void> {
  const { url, client } = await freshColumnarDatabase()
  const service = await startBenchService({ CLICKHOUSE_URL: url, QUERY_CAPS })
  const workspaceId = await workspaceOf(client)
  report.heading('queries: size on disk of reported events')
  await size(service, client, report, seconds)
  report.heading('queries: through the service and directly')
  for (const each of COMPARED) await compareWithEngine(service, client, workspaceId, report, each)
  report.heading(`queries: reporting while ${TENANTS} clients query without pause`)
  // With its own embedded engine, as started by default: the service and the engine share the processors.
  await whileReporting(await startBenchService({ QUERY_CAPS }), report, rounds, seconds)
}

/** The benchmark's own runs and agents are the first in the database. */
export function workspaceOf(client: ColumnarClient): Promise<string> {
  const query = 'select workspace_id as id from runs limit 1'
  return eventually(async () => (await client.query<{ id: string }>(query))[0]?.id ?? false)
}

async function size(service: BenchService, client: ColumnarClient, report: Report, seconds: number): Promise<void> {
  const load = eventsLoad(service, service.port, LOAD.eventsPerCall, { connections: LOAD.connections, seconds })
  await runLoad(load)
  await quiet(service)
  await client.command('optimize table events final', { timeoutMs: 120_000 })
  const [{ bytes, rows }] = await client.query<{ bytes: number; rows: number }>(
    `select sum(bytes_on_disk) as bytes, sum(rows) as rows from system.parts
     where database = {database:String} and table = 'events' and active`,
    { params: { database: client.database } },
  )
  const bodies = eventBodies(['00000000-0000-0000-0000-000000000000'], LOAD.eventsPerCall)
  const sent = bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0) / bodies.length / LOAD.eventsPerCall
  const ratio = bytes / rows / sent
  report.line(
    `${whole(rows)} events, ${sent.toFixed(0)} bytes of JSON each, ${(bytes / rows).toFixed(1)} bytes on disk`,
  )
  report.target(`size on disk: ${ratio.toFixed(2)} of the JSON, target at most ${TARGETS.disk}`, ratio <= TARGETS.disk)
}

async function compareWithEngine(
  service: BenchService,
  client: ColumnarClient,
  workspaceId: string,
  report: Report,
  [name, tenant, direct]: readonly [string, string, string],
): Promise<void> {
  const sql = direct.replace('{mine}', `workspace_id = toUUID('${workspaceId}')`)
  const ours: number[] = []
  const theirs: number[] = []
  for (let i = 0; i < TIMES; i++) {
    ours.push(await timed(() => ask(service, tenant)))
    theirs.push(await timed(() => client.queryText(sql, 'JSON')))
  }
  const [a, b] = [median(ours.slice(2)), median(theirs.slice(2))]
  const text = `${name}: ${ms(a)} guarded, ${ms(b)} direct, target at most ${TARGETS.ratio} times or ${TARGETS.moreMs} ms more`
  report.target(text, a <= b * TARGETS.ratio || a - b <= TARGETS.moreMs)
}

async function whileReporting(service: BenchService, report: Report, rounds: number, seconds: number): Promise<void> {
  const load = eventsLoad(service, service.port, LOAD.eventsPerCall, { connections: LOAD.connections, seconds })
  const pairs = await alternate(
    { service, rounds },
    () => runLoad(load),
    async () => {
      let [isOver, queries] = [false, 0]
      const asking = Array.from({ length: TENANTS }, async (_, index) => {
        const [, query] = COMPARED[index % COMPARED.length]!
        for (; !isOver; queries++) await ask(service, query)
      })
      const result = await runLoad(load)
      isOver = true
      await Promise.all(asking)
      return { ...result, queries }
    },
  )
  const ratio = median(pairs.map(([alone, along]) => along.callsPerSecond / alone.callsPerSecond))
  const p99 = median(pairs.map(([, along]) => along.p99))
  report.line(`${whole(median(pairs.map(([, along]) => along.queries)) / seconds)} queries/s meanwhile`)
  report.target(`reporting: ${ratio.toFixed(2)} of its rate, target at least ${TARGETS.rate}`, ratio >= TARGETS.rate)
  report.target(`reporting: p99 ${ms(p99)}, target at most ${TARGETS.p99Ms} ms`, p99 <= TARGETS.p99Ms)
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

export function ask(service: BenchService, query: string): Promise<unknown> {
  return service.call('POST', '/api/v1/query', { query })
}
