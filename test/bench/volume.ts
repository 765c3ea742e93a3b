import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import type { Bench } from './parts.ts'
import { ask, timed, workspaceOf } from './queries.ts'
import { median, ms, type Report, whole } from './report.ts'
import { type BenchService, startBenchService } from './servers.ts'

const DAYS = 30
const AGENTS = 20
const EVENTS_PER_RUN = 25
const RUNS_ASKED = 20
const COUNTS_ASKED = 7
const TARGETS = { countMs: 300, runMs: 15 }

const BY_HOUR = 'select toStartOfHour(occurred_at) as hour, agent_id, count() as n from events'
const COUNTS: readonly (readonly [name: string, query: string])[] = [
  ['count by hour and agent', `${BY_HOUR} group by hour, agent_id order by hour`],
  ['the same, of one type', `${BY_HOUR} where type = 'llm.call' group by hour, agent_id order by hour`],
]

/** SQL over a long history of one workspace. */
export async function measureVolume({ report, rows }: Bench): Promise<void> {
  const { url, client } = await freshColumnarDatabase()
  const service = await startBenchService({ CLICKHOUSE_URL: url })
  const workspaceId = await workspaceOf(client)
  report.heading(`volume: ${whole(rows)} events of one workspace in ${DAYS} days`)
  report.line(`filled in ${ms(await timed(() => fill(client, workspaceId, rows)))}`)
  for (const [name, query] of COUNTS) await compareWithScan(service, report, name, query)
  await oneRun(service, client, report)
}

/** Also the time of the same query when it reads all events. */
async function compareWithScan(service: BenchService, report: Report, name: string, query: string): Promise<void> {
  const times: number[] = []
  for (let i = 0; i < COUNTS_ASKED; i++) times.push(await timed(() => ask(service, query)))
  // A function that might fail rules out the projection.
  const scan = await timed(() => ask(service, query.replace('count()', 'count() + throwIf(count() = 0)')))
  const text = `${name}: ${ms(median(times))}, ${ms(scan)} if it reads all events, target at most ${TARGETS.countMs} ms`
  report.target(text, median(times) <= TARGETS.countMs)
}

/** Each run is asked for once, because ClickHouse remembers where it found one. */
async function oneRun(service: BenchService, client: ColumnarClient, report: Report): Promise<void> {
  const found = await client.query<{ id: string }>(
    `select any(run_id) as id from events where epoch = 'filled' group by cityHash64(run_id) % ${RUNS_ASKED}`,
  )
  const times: number[] = []
  for (const { id } of found)
    times.push(
      await timed(() => ask(service, `select seq, type, payload from events where run_id = '${id}' order by seq`)),
    )
  const text = `one run's events: ${ms(median(times))}, target at most ${TARGETS.runMs} ms`
  report.target(text, median(times) <= TARGETS.runMs)
}

/** Generates the events in the engine: reporting them would take minutes. */
async function fill(client: ColumnarClient, workspaceId: string, rows: number): Promise<void> {
  const perDay = Math.ceil(rows / DAYS)
  for (let day = 1; day <= DAYS; day++) {
    await client.command(
      `insert into events (workspace_id, agent_id, run_id, seq, event_id, type, level, payload, occurred_at, received_at, epoch)
       select toUUID('${workspaceId}'), reinterpretAsUUID(toUInt128(intHash64(run % ${AGENTS}))),
         reinterpretAsUUID(bitShiftLeft(toUInt128(intHash64(run)), 64) + ${day}), ${day} * 10000000000 + number,
         leftPad(toString(number), 26, '0'), ['llm.call', 'tool.call.finished', 'agent.note'][number % 3 + 1], 'info',
         concat('{"tokens":{"in":', toString(rand(number) % 4000), ',"out":', toString(number % 900), '},"step":', toString(number % 20), '}'),
         at - toIntervalMillisecond(number % 500), at, 'filled'
       from (select number, intDiv(number, ${100 * EVENTS_PER_RUN}) * 100 + number % 100 as run,
         toDateTime64(today() - ${day}, 3, 'UTC') + toIntervalMillisecond(intDiv(number * 86400000, ${perDay})) as at
         from numbers(${perDay}))`,
      { timeoutMs: 120_000 },
    )
  }
  // Days that are over have usually been merged.
  await client.command('optimize table events final', { timeoutMs: 600_000 })
}
