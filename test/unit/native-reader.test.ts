import { expect, test } from 'bun:test'
import { EventScan } from '../../src/activity/events/scan.ts'
import { ScanPool } from '../../src/activity/events/scan-pool.ts'
import { NativeBlock } from '../../src/stores/clickhouse/native-reader.ts'
import { EventBlock } from '../../src/stores/journal/blocks/event-block.ts'
import { RecordBlock } from '../../src/stores/journal/blocks/record-block.ts'
import { LEVELS } from '../../src/stores/journal/levels.ts'
import type { DeliveryRow, EventColumns, RunRow, TaskToAppend } from '../../src/stores/journal/rows.ts'
import { batchOf, LIMITS, runRef } from '../support/events.ts'
import { seededRandom } from '../support/random.ts'

const random = seededRandom('native reader')
const TRIALS = 50
const RECEIVED_AT = 1_700_000_000_456
const TEXTS = [
  '',
  ' ',
  'plain',
  'é😀',
  '\u0000\u0001',
  '"\\\n\t',
  '\u2028',
  'null',
  '\\N',
  'x'.repeat(127),
  'y'.repeat(20_000),
]
const TYPES = ['t', 'é😀', '"\\\n\t', '\u2028', 'x'.repeat(LIMITS.type_length)]
const PAYLOADS = [
  ...['{}', '{ "n" : 12345678901234567890 }', '{"é":"\\u0000😀"}', `{"t":"${'z'.repeat(70_000)}"}`],
  // Around the size from which on payloads are not copied when they are added.
  ...[1_023, 1_024, 1_025].map((bytes) => `{"t":"${'s'.repeat(bytes - 8)}"}`),
]

test('event blocks round-trip exactly', () => {
  const block = new EventBlock()
  for (let trial = 0; trial < TRIALS; trial++) {
    const firstSeq = random.pick([1, 2 ** 32 - 2, 2 ** 52])
    const expected: Record<string, unknown>[] = []
    // A block without tasks has no column of them; in others, so have some batches.
    const hasTasks = trial % 3 !== 0
    for (let batch = random.int(1, 4); batch > 0; batch--) {
      const run = runRef()
      const withTasks = hasTasks && random.bool()
      const events = Array.from({ length: random.int(1, 10) }, () => ({
        id: text(),
        type: random.pick(TYPES),
        level: random.int(1, LEVELS.length),
        payload: random.pick(PAYLOADS),
        occurredAt: random.int(-2_000_000_000_000, 9_000_000_000_000),
        taskId: withTasks && random.bool() ? Bun.randomUUIDv7() : null,
      }))
      const json = events.map(
        ({ type, level, payload, occurredAt, taskId }) =>
          `{"type":${JSON.stringify(type)},"level":"${LEVELS[level - 1]}","payload":${payload},` +
          `${taskId === null ? '' : `"task_id":"${taskId}",`}` +
          `"occurred_at":"${new Date(occurredAt).toISOString()}"}`,
      )
      const scan = new EventScan()
      scan.scan(Buffer.from(`{"run_id":"${run.runId}","events":[${json}]}`), LIMITS, false)
      block.add({ run, scan, rows: undefined, ids: events.map(({ id }) => id) }, RECEIVED_AT)
      for (const { id, type, level, payload, occurredAt, taskId } of events)
        expected.push({
          workspace_id: run.workspaceId,
          agent_id: run.agentId,
          run_id: run.runId,
          seq: firstSeq + expected.length,
          event_id: id,
          type,
          level,
          payload,
          occurred_at: occurredAt,
          received_at: RECEIVED_AT,
          task_id: taskId,
        })
    }
    const read = readBack(block.build(firstSeq, RECEIVED_AT, 'epoch-1'))
    block.clear()
    const isNamed = expected.some(({ task_id }) => task_id !== null)
    expect(rowsOf(read)).toEqual(isNamed ? expected : expected.map(({ task_id, ...row }) => row))
    // By column, in any order.
    for (const row of [expected.length - 1, 0, random.int(0, expected.length - 1)]) {
      expect<unknown>(read.strings('payload').at(row)).toBe(expected[row].payload)
      expect<unknown>(read.numbers('level').at(row)).toBe(expected[row].level)
      expect<unknown>(read.numbers('occurred_at').at(row)).toBe(expected[row].occurred_at)
      expect<unknown>(read.uuids('task_id').at(row)).toBe(expected[row].task_id)
    }
  }
})

test('a batch that cannot be added leaves no part of it between the rows of others', () => {
  const block = new EventBlock()
  const task = Bun.randomUUIDv7()
  const one = batchOf(runRef(), [{ type: 'one', payload: { n: 1 } }])
  const two = batchOf(runRef(), [{ type: 'two' }, { type: 'two', payload: { n: 2 }, task_id: task }])
  const broken = { ...one, scan: { ...one.scan, payloadEnd: null as unknown as Int32Array } }
  const long = batchOf(runRef(), [
    { type: 'long', payload: { t: 'x'.repeat(9_000) }, task_id: Bun.randomUUIDv7() },
    { type: 'no level' },
  ])
  long.scan.level[1] = 0
  const system = { event_id: 'e', type: 'broken', level: 2, payload: undefined as unknown as string, occurred_at: 1 }
  const ids = { workspace_id: one.run.workspaceId, agent_id: one.run.agentId, run_id: one.run.runId }
  block.add(one, RECEIVED_AT)
  expect(() => block.add(broken, RECEIVED_AT)).toThrow()
  expect(() => block.add(long, RECEIVED_AT)).toThrow('an event has no level')
  expect(() => block.addSystemEvents([{ ...ids, ...system }], ['1'])).toThrow()
  block.add(two, RECEIVED_AT)
  const rows = rowsOf(readBack(block.build(1, RECEIVED_AT, 'epoch-1')))
  expect(rows.map(({ type, payload, run_id, task_id }) => [type, payload, run_id, task_id])).toEqual([
    ['one', '{"n":1}', one.run.runId, null],
    ['two', '{}', two.run.runId, null],
    ['two', '{"n":2}', two.run.runId, task],
  ])
})

test('an event block keeps every payload when the memory that it was read from is used again', () => {
  const payloads = [10, 5_000, 300, 2_000].map((bytes) => ({ t: 'abcd'[bytes % 4]!.repeat(bytes) }))
  const bodies = payloads.map((payload) => JSON.stringify({ run_id: runRef().runId, events: [{ type: 't', payload }] }))
  const block = new EventBlock()
  const scans = new ScanPool()
  const memory = Buffer.alloc(100_000)
  for (const body of bodies) {
    scans.use(Buffer.from(body), LIMITS, false, (scan) => {
      block.add({ run: runRef(), scan, rows: undefined, ids: undefined }, RECEIVED_AT)
      // As reports by OpenTelemetry are added, which have no body in JSON.
      scan.text.copy(memory)
      const columns: EventColumns = { ...scan, text: memory, body: undefined }
      block.add({ run: runRef(), scan: columns, rows: undefined, ids: undefined }, RECEIVED_AT)
    })
    memory.fill(0)
  }
  const stored = rowsOf(readBack(block.build(1, RECEIVED_AT, 'epoch-1'))).map(({ payload }) => payload)
  expect(stored).toEqual(payloads.flatMap((payload) => [JSON.stringify(payload), JSON.stringify(payload)]))
})

test('blocks of runs, tasks and deliveries round-trip exactly, with and without nulls', () => {
  roundTrip(RecordBlock.ofRuns(), runRow)
  roundTrip(RecordBlock.ofTasks(), taskRow)
  roundTrip(RecordBlock.ofDeliveries(), newDelivery)
})

function roundTrip<Row extends RunRow | TaskToAppend | DeliveryRow>(block: RecordBlock<Row>, newRow: () => Row): void {
  for (let trial = 0; trial < TRIALS; trial++) {
    const rows = Array.from({ length: random.int(1, 20) }, newRow)
    block.add(rows, [])
    expect<unknown>(rowsOf(readBack(block.build(7, RECEIVED_AT, 'epoch-1')))).toEqual(
      rows.map((row, i) => ({ ...row, seq: 7 + i, received_at: RECEIVED_AT })),
    )
    block.clear()
  }
}

test('a column missing from an older block is absent, and reading it by name throws', () => {
  const block = new RecordBlock<TaskToAppend>({
    columns: [
      ['run_id', 'UUID'],
      ['name', 'String'],
    ],
    runOf: ({ workspace_id, agent_id, run_id }) => ({ workspaceId: workspace_id, agentId: agent_id, runId: run_id }),
    lengthOf: () => 0,
  })
  const row = taskRow()
  block.add([row], [])
  const read = readBack(block.build(1, RECEIVED_AT, 'epoch-1'))
  expect(read.row(0)).toEqual({ run_id: row.run_id, name: row.name, seq: 1, received_at: RECEIVED_AT })
  expect(() => read.strings('status')).toThrow(RangeError)
  expect(() => read.numbers('name')).toThrow(RangeError)
  expect(() => read.strings('seq')).toThrow(RangeError)
})

test('rejects a column type that the journal does not write', () => {
  const pieces = new EventBlock()
  pieces.add(batchOf(runRef(), [{ type: 't' }]), RECEIVED_AT)
  const bytes = Buffer.concat(pieces.build(1, RECEIVED_AT, 'epoch-1'))
  const at = bytes.indexOf('UInt64')
  bytes.write('UInt63', at)
  expect(() => new NativeBlock(bytes)).toThrow('UInt63')
})

test('a block that is cut off at any byte is refused, or reads as the whole one', () => {
  const events = new EventBlock()
  events.add(batchOf(runRef(), [{ type: 't', payload: { a: 1 } }, { type: 'é😀' }]), RECEIVED_AT)
  const runs = RecordBlock.ofRuns()
  runs.add([{ ...runRow(), tags: ['a', 'b'], input: '{}', metadata: '{}' }], [])
  for (const block of [events, runs]) {
    const whole = Buffer.concat(block.build(1, RECEIVED_AT, 'epoch-1'))
    const expected = rowsOf(new NativeBlock(whole))
    const lengths = Array.from({ length: whole.length }, (_, length) => length)
    const readable = lengths.filter((length) => {
      try {
        expect(rowsOf(new NativeBlock(whole.subarray(0, length)))).toEqual(expected)
        return true
      } catch (error) {
        expect((error as Error).message).toContain('is cut off')
        return false
      }
    })
    // Only the last column, which is not read, may be missing.
    const type = 'LowCardinality(String)'
    const { length: ignored } = whole.subarray(whole.indexOf(type) + type.length)
    expect(readable).toEqual(lengths.slice(-ignored))
  }
})

/** The block as it lies in a frame: inside a larger buffer. */
function readBack(pieces: readonly Uint8Array[]): NativeBlock {
  const ahead = Buffer.alloc(random.int(0, 9), 0xff)
  const memory = Buffer.concat([ahead, ...pieces, Buffer.alloc(random.int(0, 9), 0xff)])
  const behind = pieces.reduce((sum, { length }) => sum + length, ahead.length)
  return new NativeBlock(memory.subarray(ahead.length, behind))
}

function rowsOf(block: NativeBlock): Record<string, unknown>[] {
  return Array.from({ length: block.rows }, (_, row) => block.row(row))
}

function runRow(): RunRow {
  return {
    ...ids(),
    agent_name: text(),
    agent_version: integer(),
    runtime_type: text(),
    status: text(),
    trigger_type: text(),
    external_run_id: orNull(text),
    parent_run_id: orNull(uuid),
    session_id: orNull(uuid),
    external_user_id: orNull(text),
    tags: Array.from({ length: random.int(0, 4) }, text),
    metadata: random.pick(PAYLOADS),
    input: random.pick(PAYLOADS),
    output: orNull(text),
    error_message: orNull(text),
    error_detail: orNull(text),
    created_at: integer(),
    started_at: orNull(integer),
    completed_at: orNull(integer),
    duration_ms: orNull(integer),
    waiting_ms: integer(),
    waiting_since: orNull(integer),
    input_tokens: integer(),
    output_tokens: integer(),
    cache_read_tokens: integer(),
    cache_write_tokens: integer(),
    reasoning_tokens: integer(),
    cost_usd: random.pick([0, -0, 0.1, 1 / 3, 1e-300, -1e21, Number.MAX_VALUE, random.next()]),
    event_count: integer(),
    last_event_at: orNull(integer),
    pending: orNull(text),
    is_recount: random.bool(),
  }
}

function newDelivery(): DeliveryRow {
  return {
    workspace_id: uuid(),
    webhook_id: uuid(),
    delivery_id: text(),
    type: text(),
    run_id: orNull(uuid),
    activity_seq: integer(),
    attempt: integer(),
    status: random.pick(['pending', 'succeeded', 'failed']),
    http_status: orNull(integer),
    duration_ms: integer(),
    response: orNull(text),
    at: integer(),
  }
}

function taskRow(): TaskToAppend {
  return {
    ...ids(),
    task_id: uuid(),
    parent_task_id: orNull(uuid),
    name: text(),
    status: text(),
    input: orNull(text),
    output: orNull(text),
    error_message: orNull(text),
    created_at: integer(),
    updated_at: integer(),
    started_at: orNull(integer),
    completed_at: orNull(integer),
  }
}

function ids() {
  return { workspace_id: uuid(), agent_id: uuid(), run_id: uuid() }
}

function uuid(): string {
  const hex = Buffer.from(random.bytes(16)).toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

function text(): string {
  return random.pick(TEXTS)
}

/** Up to 53 bits, either sign. */
function integer(): number {
  const edges = [
    0,
    1,
    -1,
    2 ** 31,
    -(2 ** 31),
    2 ** 32,
    -(2 ** 32) - 1,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
  ]
  return random.bool() ? random.pick(edges) : random.int(-1e15, 1e15)
}

function orNull<T>(make: () => T): T | null {
  return random.bool() ? null : make()
}
