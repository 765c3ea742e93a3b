import { beforeAll, expect, test } from 'bun:test'
import { EventScan } from '../../src/activity/events/scan.ts'
import { RUN_STATUSES } from '../../src/activity/runs/state.ts'
import type { NewScore } from '../../src/activity/scores/schema.ts'
import { TASK_STATUSES } from '../../src/activity/tasks/state.ts'
import { systemClock } from '../../src/base/clock.ts'
import { definedOf } from '../../src/base/defined.ts'
import { type RunRef, runKey } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { RawJson } from '../../src/base/raw-json.ts'
import type { Activity } from '../../src/feeds/live/activity.ts'
import { type FilterInput, parseFilter, withWorkspaceEvents } from '../../src/feeds/live/filter.ts'
import { createHistory, type History, type HistoryQuery } from '../../src/feeds/live/history.ts'
import { createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { EventBlock } from '../../src/stores/journal/blocks/event-block.ts'
import { LEVELS } from '../../src/stores/journal/levels.ts'
import { type LocalJournal, openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import type { RunRow, TaskRow } from '../../src/stores/journal/rows.ts'
import { type FreshColumnarDatabase, freshColumnarDatabase } from '../support/columnar.ts'
import { batchOf, LIMITS, runRef } from '../support/events.ts'
import { matchAll } from '../support/matching.ts'
import { seededRandom } from '../support/random.ts'
import { alertRow, deliveryRow, runRow, taskRow } from '../support/rows.ts'
import { scoreBatch } from '../support/scores.ts'
import { startSink } from '../support/sink.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

const log = createLog('silent')
const { signal } = new AbortController()
const random = seededRandom('feed history')
const TYPES = ['llm.call', 'llm.call.failed', 'tool.call', 'step', 's', 'é\u0001"\\', 'a*b']
const TAGS = ['a', 'b', "it's", 'é', '😀']
const TASKS = [0, 1, 2].map(() => Bun.randomUUIDv7())
const SESSIONS = ['a chat', "it's", '😀']
const USERS = ['a person', '😀']
const NOW = 1_767_225_600_000

/** Two workspaces of three agents each, with four runs an agent. */
const runs: readonly RunRef[] = [0, 1].flatMap(() => {
  const { workspaceId } = runRef()
  return [0, 1, 2].flatMap(() => {
    const { agentId } = runRef()
    return [0, 1, 2, 3].map(() => ({ ...runRef(), workspaceId, agentId }))
  })
})
const { workspaceId } = runs[0]
/** One is missing, as if it had been deleted. */
const sessions = new Map(
  runs.slice(1).map(({ workspaceId, runId }) => {
    const session = {
      session_id: orNull(() => random.pick(SESSIONS)),
      external_user_id: orNull(() => random.pick(USERS)),
    }
    return [runKey(workspaceId, runId), session]
  }),
)
const lookUpSessions = async () => sessions

let database: FreshColumnarDatabase
let journal: LocalJournal

beforeAll(async () => {
  database = await freshColumnarDatabase()
  const dir = await temporaryDirectory()
  journal = await openLocalJournal({ dir, maxBytes: 1e12, keepBytes: 1e12, clock: systemClock, log })
  atEnd(() => journal.close())
  const sink = await startSink({ journal, client: database.client, dir, log, intervalMs: 5 })
  for (let i = 0; i < 60; i++) {
    const some = <T>(max: number, make: () => T) => Array.from({ length: random.int(0, max) }, make)
    await Promise.all([
      ...some(4, () => appendEvents(random.pick(runs), random.int(1, 12))),
      appendRuns(some(3, () => randomRun(random.pick(runs)))),
      appendTasks(some(3, () => randomTask(random.pick(runs)))),
      ...some(2, () => appendAlert(random.pick(runs))),
      ...some(3, () => journal.appendScores(scoreBatch(random.pick(runs), randomScores()))),
      ...some(2, () => journal.appendDeliveries([deliveryRow(random.pick(runs).workspaceId)])),
    ])
  }
  await appendEvents(runs[0], 1, bigObject(400_000))
  await appendTasks([taskRow(runs[0], { output: bigObject(9_000_000) })])
  await appendEvents(runs[0], 3, bigObject(300_000))
  expect(await sink.waitFor(journal.endSeq, 10_000)).toBe(true)
  await sink.stop(1_000)
  // ClickHouse also holds another journal with the same positions.
  const other = new EventBlock()
  for (const run of runs) other.add(batchOf(run, [{ type: 'step' }, { type: 'step' }]), NOW)
  await database.client.insertNative('events', other.build(1, NOW, 'other'), 'other', signal)
})

test('a replay from ClickHouse equals the journal byte for byte, for any filter, range and page size', async () => {
  for (let trial = 0; trial < 20; trial++) {
    const run = random.pick(runs)
    const asked = randomFilter(run)
    // As of webhooks: each condition concerns the kinds that have its field.
    const kinds = new Set(['event', 'task', 'run', 'score'] as const)
    const filter = random.bool(0.3) ? { ...asked, kinds, key: `any kind ${asked.key}` } : asked
    const query = {
      workspaceId: run.workspaceId,
      filter: random.bool(0.3) ? withWorkspaceEvents(filter) : filter,
      afterSeq: random.bool(0.4) ? 0 : random.int(0, journal.endSeq),
      untilSeq: random.bool(0.4) ? journal.endSeq : random.int(1, journal.endSeq),
      signal,
    }
    const bytesMax = random.pick([1, 3_000, 50_000, undefined])
    const { items, throughSeq } = await readPages(historyOf(bytesMax), query, 6)
    const expected = (await fromJournal(query)).filter(({ seq }) => seq <= throughSeq)
    expect({ filter: query.filter.key, items }).toEqual({ filter: query.filter.key, items: expected })
  }
})

test('a page ends before its size limit, and an item above the limit gets its own page', async () => {
  const query = { workspaceId, filter: filterOf({}), afterSeq: 0, untilSeq: journal.endSeq, signal }
  const bytesMax = 700_000
  const sizes: number[][] = []
  await readPages(historyOf(bytesMax), query, 1_000, (items) => sizes.push(items.map(({ text }) => text.length)))
  const large = sizes.filter((page) => page.reduce((sum, size) => sum + size, 0) > bytesMax)
  expect(large).toEqual([[expect.any(Number)]])
  expect(large[0][0]).toBeGreaterThan(9_000_000)
  expect(sizes.length).toBeLessThan(8)
})

test('a page of small activities ends after 5,000', async () => {
  const run = { ...runRef(), workspaceId: runRef().workspaceId }
  const block = new EventBlock()
  for (let i = 0; i < 3; i++) block.add(batchOf(run, new Array(5_000).fill({ type: 's' })), NOW)
  await database.client.insertNative('events', block.build(1, NOW, 'many'), 'many', signal)
  const history = createHistory({ columnar: database.client, epoch: 'many', lookUpSessions, bytesMax: 1e9 })
  const pages: number[] = []
  const query = { workspaceId: run.workspaceId, filter: filterOf({}), afterSeq: 0, untilSeq: 15_000, signal }
  const { items } = await readPages(history, query, 100, (page) => pages.push(page.length))
  expect(pages).toEqual([5_000, 5_000, 5_000])
  expect(items.map(({ seq }) => seq)).toEqual(Array.from({ length: 15_000 }, (_, i) => i + 1))
})

test('skips a billion positions without a match in a few queries', async () => {
  let queries = 0
  // Answers at once, without rows: a slow query would make the next range smaller, and the machine may be slow.
  const counting = (() => {
    queries++
    return Promise.resolve([])
  }) as typeof database.client.query
  const history = createHistory({ columnar: { query: counting }, epoch: journal.epoch, lookUpSessions })
  const query = { workspaceId, filter: filterOf({}), afterSeq: journal.endSeq, untilSeq: 1e9, signal }
  expect(await readPages(history, query, 5)).toEqual({ items: [], throughSeq: 1e9 })
  expect(queries).toBeLessThan(20)
})

test('a replay fails as unavailable without ClickHouse, and ends when it is aborted', async () => {
  const away = createColumnarClient({ ...database.backend, url: 'http://127.0.0.1:1' }, 'x')
  const query = { workspaceId, filter: filterOf({}), afterSeq: 0, untilSeq: 10, signal }
  const history = createHistory({ columnar: away, epoch: journal.epoch, lookUpSessions })
  await expect(history.read(query)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  const aborted = AbortSignal.abort(new Error('the client went away'))
  await expect(historyOf().read({ ...query, signal: aborted })).rejects.toThrow('the client went away')
})

function historyOf(bytesMax?: number): History {
  return createHistory({ columnar: database.client, epoch: journal.epoch, lookUpSessions, bytesMax })
}

/** Reads page after page, at most `pagesMax`. */
async function readPages(
  history: History,
  query: HistoryQuery,
  pagesMax: number,
  onPage?: (items: readonly Activity[]) => void,
): Promise<{ items: Activity[]; throughSeq: number }> {
  const items: Activity[] = []
  let throughSeq = query.afterSeq
  for (let pages = 0; throughSeq < query.untilSeq && pages < pagesMax; pages++) {
    const page = await history.read({ ...query, afterSeq: throughSeq })
    expect(page.throughSeq).toBeGreaterThan(throughSeq)
    items.push(...page.items)
    onPage?.(page.items)
    throughSeq = page.throughSeq
  }
  return { items, throughSeq }
}

async function fromJournal({ workspaceId, filter, afterSeq, untilSeq }: HistoryQuery): Promise<Activity[]> {
  const frames = await journal.read(afterSeq, 1e9)
  return (
    await matchAll(frames, { epoch: journal.epoch, afterSeq, workspaceId, filters: [filter], lookUpSessions })
  )[0]!.filter(({ seq }) => seq <= untilSeq)
}

function filterOf(input: FilterInput) {
  return parseFilter(input, 'filter', { agentId: null, runId: null })
}

/** A filter of fields that can match together. */
function randomFilter(run: RunRef) {
  const list = <T>(from: readonly T[]) => Array.from({ length: random.int(1, 3) }, () => random.pick(from))
  const maybe = (field: FilterInput) => (random.bool(0.3) ? field : {})
  const prefixes = TYPES.map((type) => `${type.slice(0, random.int(0, type.length))}*`).filter((type) =>
    /^[^*]*\*$/.test(type),
  )
  const types = [...TYPES.filter((type) => !type.includes('*')), ...prefixes]
  const own = [
    { ...maybe({ kind: list(['event', 'task', 'run']) }) },
    { ...maybe({ type: list(types) }), ...maybe({ level: random.pick(LEVELS) }), ...maybe({ task_id: list(TASKS) }) },
    { ...maybe({ status: list([...TASK_STATUSES, ...RUN_STATUSES]) }) },
    { ...maybe({ status: list(TASK_STATUSES) }), task_id: list(TASKS) },
    { ...maybe({ status: list(RUN_STATUSES) }), tag: list(TAGS) },
    { session_id: list(SESSIONS) },
    { external_user_id: list(USERS) },
  ]
  return filterOf({
    ...maybe({ agent_id: [run.agentId, ...list(runs).map(({ agentId }) => agentId)] }),
    ...maybe({ run_id: [run.runId, ...list(runs).map(({ runId }) => runId)] }),
    ...maybe({ session_id: list(SESSIONS) }),
    ...maybe({ external_user_id: list(USERS) }),
    ...random.pick(own),
  })
}

/** @param payload of each event; random by default */
function appendEvents(run: RunRef, count: number, payload?: string) {
  const events = Array.from({ length: count }, () => {
    const level = random.bool() ? `,"level":"${random.pick(LEVELS)}"` : ''
    const at = new Date(NOW + random.int(-1e12, 1e12)).toISOString()
    const task = random.bool(0.3) ? `,"task_id":"${random.pick(TASKS)}"` : ''
    return `{"type":${JSON.stringify(random.pick(TYPES))}${level}${task},"payload":${payload ?? json()},"occurred_at":"${at}"}`
  })
  const scan = new EventScan()
  scan.scan(new TextEncoder().encode(`{"run_id":"${run.runId}","events":[${events.join(',')}]}`), LIMITS, false)
  return journal.appendEvents({ run, scan, rows: undefined, ids: undefined })
}

function appendAlert({ workspaceId }: RunRef) {
  const row = alertRow(workspaceId, { type: random.pick(TYPES), level: random.int(1, 4), payload: json() })
  return journal.appendSystemEvents([row], [crypto.randomUUID()])
}

async function appendRuns(rows: readonly RunRow[]) {
  if (rows.length > 0)
    await journal.appendRuns(
      rows,
      rows.map(() => crypto.randomUUID()),
    )
}

async function appendTasks(rows: readonly TaskRow[]) {
  if (rows.length > 0)
    await journal.appendTasks(
      rows,
      rows.map(() => crypto.randomUUID()),
    )
}

function randomRun(run: RunRef): RunRow {
  return {
    ...runRow(run),
    agent_version: random.int(1, 1e6),
    status: random.pick(RUN_STATUSES),
    external_run_id: orNull(text),
    parent_run_id: orNull(() => random.pick(runs).runId),
    session_id: orNull(() => random.pick(SESSIONS)),
    external_user_id: orNull(() => random.pick(USERS)),
    tags: Array.from({ length: random.int(0, 3) }, () => random.pick(TAGS)),
    metadata: json(),
    input: json(),
    output: orNull(json),
    error_message: orNull(text),
    error_detail: orNull(json),
    created_at: time(),
    started_at: orNull(time),
    completed_at: orNull(time),
    duration_ms: orNull(() => random.int(0, 2 ** 50)),
    waiting_ms: random.int(0, 2 ** 50),
    waiting_since: orNull(time),
    input_tokens: random.int(0, 2 ** 53 - 1),
    output_tokens: random.int(0, 1_000),
    cost_usd: random.pick([0, 0.1, 1e-9, 1 / 3, 1e21, random.next()]),
    event_count: random.int(0, 1e9),
    last_event_at: orNull(time),
    is_recount: random.bool(),
  }
}

function randomTask(run: RunRef): TaskRow {
  return taskRow(run, {
    task_id: random.pick(TASKS),
    parent_task_id: orNull(() => runRef().runId),
    name: text(),
    status: random.pick(TASK_STATUSES),
    input: orNull(json),
    output: orNull(json),
    error_message: orNull(text),
    created_at: time(),
    updated_at: time(),
    started_at: orNull(time),
    completed_at: orNull(time),
  })
}

function orNull<T>(make: () => T): T | null {
  return random.bool() ? null : make()
}

function time(): number {
  return NOW + random.int(-1e9, 1e9)
}

function text(): string {
  return random.pick(['', 'plain', 'é😀"\\\n\t', '\u0001\u2028/', "it's", 'null', '\\N'])
}

/** Texts that parsing and serializing would change. */
function json(): string {
  return random.pick([
    '{}',
    '{ "n" : 12345678901234567890, "x":1.0e5 }',
    '{\r\n  "a":\t[1,\n2]}',
    '{"s":"\\u0000\\ud800\\/\\n","é":"😀\u2028"}',
    `{"__proto__":{"a":null},"a":1,"a":2,"t":"${'x'.repeat(random.int(0, 3_000))}"}`,
  ])
}

function bigObject(bytes: number): string {
  return `{"big":"${'y'.repeat(bytes)}"}`
}

/** Scores with each of the members that may be missing, or none. */
function randomScores(): Partial<NewScore>[] {
  const maybe = <T>(value: T) => (random.bool(0.3) ? value : undefined)
  const score = () => ({
    id: maybe('mine'),
    ...random.pick([{ value: 0.5 }, { value: true }, { label: 'é' }, { text: 'a\nb' }]),
    ...random.pick([{}, { task_id: random.pick(TASKS) }, { event_id: 'e' }, { session_id: random.pick(SESSIONS) }]),
    comment: maybe('because'),
    source: maybe('judge' as const),
    metadata: maybe(new RawJson('{"a": 1.0}')),
  })
  return Array.from({ length: random.int(1, 4) }, () => definedOf(score()))
}
