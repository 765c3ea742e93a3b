import { expect, test } from 'bun:test'
import { EventScan } from '../../src/activity/events/scan.ts'
import { NIL_UUID } from '../../src/base/ids.ts'
import { EventBlock } from '../../src/stores/journal/blocks/event-block.ts'
import { RecordBlock } from '../../src/stores/journal/blocks/record-block.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { batchOf, LIMITS, runRef } from '../support/events.ts'
import { alertRow, deliveryRow, runRow, taskRow } from '../support/rows.ts'

const NO_SIGNAL = new AbortController().signal

test('events arrive in ClickHouse exactly', async () => {
  const { client } = await freshColumnarDatabase()
  const [one, two] = [runRef(), runRef()]
  const scan = new EventScan()
  const payload = '{"n":12345678901234567890,"s":"\\u0000","é":"😀"}'
  scan.scan(
    new TextEncoder().encode(
      `{"run_id":"${one.runId}","events":[{"type":"caf\\u00e9","level":"error","payload":${payload},"occurred_at":"1900-01-01T00:00:00.001Z"}]}`,
    ),
    LIMITS,
    false,
  )
  const block = new EventBlock()
  block.add({ run: one, scan, rows: undefined, ids: ['mine'] }, 1_700_000_000_123)
  const task = Bun.randomUUIDv7()
  block.add(
    batchOf(two, [
      { type: 'a' },
      { type: 'b', level: 'debug', task_id: task },
      { type: 'c', occurred_at: '2299-12-31T23:59:59.999Z' },
    ]),
    1_700_000_000_123,
  )
  const pieces = block
    .build(2 ** 33 - 1, 1_700_000_000_456, 'epoch-1')
    .map((piece): Uint8Array => new Uint8Array(piece))
  block.clear()
  block.add(batchOf(two, [{ type: 'd' }]), 1_700_000_000_123)
  // In one load, blocks with and without a column of tasks.
  pieces.push(...block.build(2 ** 33 + 3, 1_700_000_000_456, 'epoch-1'))
  await client.insertNative('events', pieces, 'token', NO_SIGNAL)
  const rows = await client.query<Record<string, unknown>>('select * from events order by seq')
  expect(rows[0]).toEqual({
    workspace_id: one.workspaceId,
    agent_id: one.agentId,
    run_id: one.runId,
    seq: 2 ** 33 - 1,
    event_id: 'mine',
    type: 'café',
    level: 'error',
    payload,
    occurred_at: '1900-01-01 00:00:00.001',
    received_at: '2023-11-14 22:13:20.456',
    task_id: null,
    epoch: 'epoch-1',
  })
  expect(
    rows.slice(1).map((row) => [row.run_id, row.seq, row.type, row.level, row.payload, row.occurred_at, row.task_id]),
  ).toEqual([
    [two.runId, 2 ** 33, 'a', 'info', '{}', '2023-11-14 22:13:20.123', null],
    [two.runId, 2 ** 33 + 1, 'b', 'debug', '{}', '2023-11-14 22:13:20.123', task],
    [two.runId, 2 ** 33 + 2, 'c', 'info', '{}', '2299-12-31 23:59:59.999', null],
    [two.runId, 2 ** 33 + 3, 'd', 'info', '{}', '2023-11-14 22:13:20.123', null],
  ])
  const ids = rows.slice(1).map((row) => row.event_id as string)
  expect(ids.every((id) => /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id))).toBe(true)
  expect(ids).toEqual([...new Set(ids)].sort())
})

test('events whose JSON ClickHouse cannot read still become pauses, and do not block other events', async () => {
  const { client } = await freshColumnarDatabase()
  const run = runRef()
  const [first, second] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()]
  const times = { requested_at: '2023-11-14T22:13:20.123Z', expires_at: null }
  const block = new EventBlock()
  const events = [
    ['approval.requested', { approval_id: first, expires_at: times.requested_at, tool: 'pay', input: { n: '\ud800' } }],
    ['approval.decided', { approval_id: first, decision: 'rejected', ...times, tool: 'pay', input: { n: '\ud800' } }],
    ['input.requested', {}],
    ['approval.decided', { approval_id: 7, decision: [], requested_at: 'x', comment: 1, options: 2, decided_by: 3 }],
    ['input.answered', { request_id: second, ...times, question: 'Who?', options: ['a'], answer: 'b' }],
  ] as const
  const { agentId: agent_id, runId: run_id, workspaceId: workspace_id } = run
  const owner = { workspace_id, agent_id, run_id, level: 2, occurred_at: 1_700_000_000_456 }
  const rowOf = ([type, payload]: (typeof events)[number], n: number) => {
    return { ...owner, event_id: `${n}`, type, payload: JSON.stringify(payload) }
  }
  block.addSystemEvents(events.map(rowOf), [])
  await client.insertNative('events', block.build(1, 1_700_000_000_456, 'epoch-1'), 'token', NO_SIGNAL)
  expect(await client.query('select count() as rows from events')).toEqual([{ rows: events.length }])
  const rows = await client.query<Record<string, unknown>>(
    'select * from (select * from pauses final order by seq desc limit 1 by pause_id) order by seq',
  )
  expect(rows.find(({ pause_id }) => pause_id === first)).toMatchObject({
    status: 'rejected',
    tool: 'pay',
    input: null,
    requested_at: '2023-11-14 22:13:20.123',
    expires_at: null,
    decided_at: '2023-11-14 22:13:20.456',
  })
  expect(rows.find(({ pause_id }) => pause_id === second)).toMatchObject({
    ...{ kind: 'input', status: 'answered', question: 'Who?', options: ['a'], answer: 'b', tool: null },
  })
})

const ref = runRef()
const run = runRow(ref, {
  agent_version: 3,
  status: 'completed',
  external_run_id: 'x',
  parent_run_id: Bun.randomUUIDv7(),
  tags: ['a', 'é'],
  input: '{"n":12345678901234567890}',
  output: '{"ok":true}',
  completed_at: 1_700_000_000_002,
  duration_ms: 1,
  waiting_ms: 5,
  waiting_since: null,
  input_tokens: 2 ** 40,
  output_tokens: 7,
  cost_usd: 0.25,
  event_count: 2 ** 40,
  last_event_at: 1_700_000_000_001,
})

test('the newest state of a run and of a task wins, with and without nulls', async () => {
  const { client } = await freshColumnarDatabase()
  const blocks = RecordBlock.ofRuns()
  blocks.add([runRow(ref), run], [])
  await client.insertNative('runs', blocks.build(1, 1_700_000_000_456, 'epoch-1'), 'token', NO_SIGNAL)
  const [state] = await client.query<Record<string, unknown>>('select * from runs final')
  expect(state).toMatchObject({
    run_id: run.run_id,
    agent_name: 'Ada',
    agent_version: 3,
    status: 'completed',
    parent_run_id: run.parent_run_id,
    session_id: null,
    tags: ['a', 'é'],
    input: run.input,
    output: run.output,
    error_message: null,
    created_at: '2023-11-14 22:13:20.000',
    duration_ms: 1,
    waiting_ms: 5,
    waiting_since: null,
    input_tokens: 2 ** 40,
    cost_usd: 0.25,
    event_count: 2 ** 40,
    last_event_at: '2023-11-14 22:13:20.001',
    seq: 2,
  })
  const task = taskRow(ref, { output: '{}', started_at: null })
  const tasks = RecordBlock.ofTasks()
  tasks.add([task, { ...task, status: 'failed', error_message: 'no', parent_task_id: run.run_id }], [])
  await client.insertNative('task_changes', tasks.build(3, 1_700_000_000_456, 'epoch-1'), 'token', NO_SIGNAL)
  const rows = await client.query<Record<string, unknown>>(
    'select status, error_message, parent_task_id, input, output, seq from tasks final',
  )
  expect(rows).toEqual([
    { status: 'failed', error_message: 'no', parent_task_id: run.run_id, input: null, output: '{}', seq: 4 },
  ])
})

test('run_changes omits input and output', async () => {
  const { client } = await freshColumnarDatabase()
  const blocks = RecordBlock.ofRuns()
  blocks.add([run], [])
  await client.insertNative('run_changes', blocks.build(1, 1_700_000_000_456, 'epoch-1'), 'token', NO_SIGNAL)
  const rows = await client.query<Record<string, unknown>>('select * from run_changes order by seq')
  expect(rows).toMatchObject([
    { run_id: run.run_id, seq: 1, event_count: run.event_count, last_event_at: '2023-11-14 22:13:20.001' },
  ])
  expect(Object.keys(rows[0])).not.toContain('input')
  expect(Object.keys(rows[0])).not.toContain('output')
})

test('a load of tasks that ended before ClickHouse had copied them is completed by its repeat', async () => {
  const { client } = await freshColumnarDatabase()
  const view = 'task_changes_to_tasks'
  const [{ definition }] = await client.query<{ definition: string }>(
    `select create_table_query as definition from system.tables where database = currentDatabase() and name = '${view}'`,
  )
  const load = (firstSeq: number, rows: number) => {
    const tasks = RecordBlock.ofTasks()
    tasks.add(
      Array.from({ length: rows }, () => taskRow(runRef())),
      [],
    )
    const block = Buffer.concat(tasks.build(firstSeq, 1_700_000_000_456, 'epoch-1'))
    return () => client.insertNative('task_changes', [block], `from ${firstSeq}`, NO_SIGNAL)
  }
  const rowsOf = async (table: string) => (await client.query<{ n: number }>(`select count() as n from ${table}`))[0].n
  const [whole, half] = [load(1, 2), load(3, 5)]
  await whole()
  await client.command(`drop view ${view} sync`)
  await half()
  await client.command(definition)
  expect([await rowsOf('task_changes'), await rowsOf('tasks final')]).toEqual([7, 2])
  for (let repeat = 0; repeat < 2; repeat++) {
    await half()
    await whole()
    expect([await rowsOf('task_changes'), await rowsOf('tasks final')]).toEqual([7, 7])
  }
})

test('deliveries arrive in ClickHouse exactly', async () => {
  const { client } = await freshColumnarDatabase()
  const { workspaceId } = runRef()
  const first = deliveryRow(workspaceId, { activity_seq: 2 ** 40, response: 'ö'.repeat(500) })
  const second = deliveryRow(workspaceId, {
    status: 'pending',
    run_id: null,
    http_status: null,
    response: null,
    attempt: 9,
  })
  const blocks = RecordBlock.ofDeliveries()
  blocks.add([first, second], [])
  await client.insertNative('deliveries', blocks.build(7, 1_700_000_000_456, 'epoch-1'), 'token', NO_SIGNAL)
  const at = '2023-11-14 22:13:20.000'
  const more = { received_at: '2023-11-14 22:13:20.456', epoch: 'epoch-1' }
  expect(await client.query('select * from deliveries order by seq')).toEqual([
    { ...first, at, seq: 7, ...more },
    { ...second, at, seq: 8, ...more },
  ])
})

test('the transitions of alerts are made of workspace events, once, and nothing in them stops a load', async () => {
  const { client } = await freshColumnarDatabase()
  const run = runRef()
  const { workspaceId } = run
  const alert = Bun.randomUUIDv7()
  const transition = {
    ...{ alert_id: alert, name: '"series":{},"state":"x"', series: { state: '"series":', n: 1e20, none: null } },
    ...{
      state: 'firing',
      previous_state: 'pending',
      value: 2.5,
      at: '2026-01-31T09:30:00.123Z',
      rows: [{ state: 'y', value: 1e20 }],
    },
  }
  const block = new EventBlock()
  const reported = batchOf(run, [{ type: 'alert.fired', payload: transition }])
  block.add(reported, 1_700_000_000_123)
  const rows = [
    alertRow(workspaceId, { payload: JSON.stringify(transition) }),
    alertRow(workspaceId, {
      type: 'alert.changed',
      payload: JSON.stringify({ ...transition, series: {}, value: null, at: 'noon' }),
    }),
    alertRow(workspaceId, { type: 'alert.resolved', payload: '{"alert_id":1,"series":"\\ud800","value":{"a":[' }),
    alertRow(workspaceId, { type: 'webhook.disabled', payload: JSON.stringify(transition) }),
  ]
  block.addSystemEvents(
    rows,
    rows.map(() => crypto.randomUUID()),
  )
  const pieces = [Buffer.concat(block.build(1, 1_700_000_000_123, 'epoch-1'))]
  for (let repeat = 0; repeat < 2; repeat++) await client.insertNative('events', pieces, 'token', NO_SIGNAL)
  expect(await client.query('select count() as n from events')).toEqual([{ n: 5 }])
  const more = { workspace_id: workspaceId, received_at: '2023-11-14 22:13:20.123', epoch: 'epoch-1' }
  const states = { state: 'firing', previous_state: 'pending' }
  const series = JSON.stringify(transition.series)
  expect(await client.query('select * from alert_states order by seq')).toEqual([
    { ...more, ...states, alert_id: alert, series, value: 2.5, at: '2026-01-31 09:30:00.123', seq: 2 },
    { ...more, ...states, alert_id: alert, series: '{}', value: null, at: '2023-11-14 22:13:20.000', seq: 3 },
    {
      ...more,
      ...{ alert_id: NIL_UUID, series: '"\\ud800"', state: '', previous_state: '', value: null },
      ...{ at: '2023-11-14 22:13:20.000', seq: 4 },
    },
  ])
})
