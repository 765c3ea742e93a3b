import { beforeAll, describe, expect, test } from 'bun:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { eventually } from '../support/eventually.ts'
import { LiveStream, newReporter, newTenant, type Reporter } from '../support/feeds.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'

const PATH = '/api/ingest/v1/events'
let service: TestService
let agent: Reporter

beforeAll(async () => {
  service = await startTestService()
  agent = await newReporter(service.api)
})

function send(body: unknown, { key = agent.agentKey, query = '', headers = {} } = {}) {
  return service.api('POST', PATH + query, body, { key, headers })
}

/** The events of a run from SQL, once it has everything up to position `waitFor`. */
async function inSql(runId: string, waitFor: number) {
  const query =
    'select event_id, type, level, payload::String as payload, toString(occurred_at) as at from events where run_id = {run:UUID} order by seq'
  return rowsInSql(service.api, query, { params: { run: runId }, wait_for: waitFor })
}

describe('events', () => {
  test('are accepted with their positions, and readable in SQL value for value, with defaults', async () => {
    const run_id = await agent.start()
    const before = Date.now()
    const { status, data } = await send(
      `{"run_id":"${run_id.toUpperCase()}","events":[{"type":"llm.call","level":"warn","payload":{"n":12345678901234567890},"occurred_at":"2026-01-31T10:30:00.123456+01:00","id":"mine"},{"type":"plain"}]}`,
    )
    expect([status, data]).toEqual([
      200,
      { accepted: 2, duplicates: 0, first_seq: data.first_seq, last_seq: data.first_seq + 1 },
    ])
    const [first, second] = await inSql(run_id, data.last_seq)
    expect(first).toEqual({
      event_id: 'mine',
      type: 'llm.call',
      level: 'warn',
      payload: '{"n":12345678901234567890}',
      at: '2026-01-31 09:30:00.123',
    })
    expect(second).toMatchObject({ type: 'plain', level: 'info', payload: '{}' })
    expect(second.event_id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
    expect(Date.parse(`${second.at.replace(' ', 'T')}Z`)).toBeWithin(before, Date.now() + 1)
  })

  test('may name their task, which lists, SQL and feeds show, and feeds filter by', async () => {
    const run_id = await agent.start()
    const task_id = Bun.randomUUIDv7()
    const events = [{ type: 'a' }, { type: 'b', task_id: task_id.toUpperCase() }, { type: 'c', task_id: run_id }]
    const { data } = await send({ run_id, events })
    const { items } = (await service.api('GET', `/api/v1/runs/${run_id}/events`)).data
    expect(items.map((event: { task_id?: string }) => event.task_id)).toEqual([undefined, task_id, run_id])
    const query = 'select type from events where task_id = {task:UUID} or (run_id = {run:UUID} and task_id is null)'
    const more = { params: { task: task_id, run: run_id }, wait_for: data.last_seq }
    expect(await rowsInSql(service.api, query, more)).toEqual([{ type: 'a' }, { type: 'b' }])
    const feed = await LiveStream.open(service, `/api/v1/stream?after=0&task_id=${task_id}`)
    await feed.until(() => feed.items.length > 0)
    await feed.close()
    expect(feed.items.map(({ event }) => [event?.type, event?.task_id])).toEqual([['b', task_id]])
    const refused = await send({ run_id, events: [{ type: 'a', task_id: 'mine' }] })
    expect([refused.status, refused.error?.message]).toEqual([400, 'events[0].task_id: expected a UUID; got "mine"'])
  })

  test('as many as a call may have, with every field and payloads of many values, are accepted', async () => {
    const run_id = await agent.start()
    const payload = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`field_${n}`, [n, null, {}]]))
    const event = (n: number) => ({
      id: `event-${n}`,
      type: 'tool.call',
      level: 'info',
      payload,
      occurred_at: '2026-01-31T09:30:00.123Z',
    })
    const many = await send({ run_id, events: Array.from({ length: 5_000 }, (_, n) => event(n)) })
    expect([many.status, many.error, many.data?.accepted]).toEqual([200, null, 5_000])
    const large = { ...event(5_000), payload: { numbers: Array(200_000).fill(1) } }
    const one = await send({ run_id, events: [large] })
    expect([one.status, one.error, one.data?.accepted]).toEqual([200, null, 1])
  })

  test('with a duplicate id are counted but not stored, within a call and across calls', async () => {
    const run_id = await agent.start()
    const first = await send({
      run_id,
      events: [{ type: 'a', id: '1' }, { type: 'a', id: '1' }, { type: 'b', id: '2' }, { type: 'c' }],
    })
    expect(first.data).toMatchObject({ accepted: 3, duplicates: 1 })
    const again = await send({ run_id, events: [{ type: 'a', id: '2' }] })
    expect(again.data).toEqual({ accepted: 0, duplicates: 1, first_seq: null, last_seq: null })
    const other = await send({ run_id: await agent.start(), events: [{ type: 'a', id: '1' }] })
    expect(other.data).toMatchObject({ accepted: 1, duplicates: 0 })
    expect((await inSql(run_id, other.data.last_seq)).map((row: { type: string }) => row.type)).toEqual(['a', 'b', 'c'])
  })

  test('are all or nothing per call; with ?partial=true invalid events are skipped and listed', async () => {
    const run_id = await agent.start()
    const events = [{ type: 'good' }, { type: 'bad', level: 'loud' }, { type: 'good too' }]
    const whole = await send({ run_id, events })
    expect([whole.status, whole.error?.message]).toEqual([
      400,
      'events[1].level: expected one of debug, info, warn, error; got "loud"',
    ])
    const bad = Array.from({ length: 30 }, () => ({ type: '', level: 'loud' }))
    const { error: all } = await send({ run_id, events: [...events, ...bad] })
    expect(all?.param).toBe('events[1].level')
    expect(all?.problems?.slice(0, 2)).toEqual([
      { param: 'events[1].level', message: 'expected one of debug, info, warn, error; got "loud"' },
      { param: 'events[3].type', message: 'expected a non-empty string; got ""' },
    ])
    expect(all?.problems).toHaveLength(20)
    const strict = await send({ run_id, events }, { query: '?partial=false' })
    expect(strict.status).toBe(400)
    const partial = await send({ run_id, events }, { query: '?partial=true' })
    expect(partial.data).toMatchObject({ accepted: 2, duplicates: 0, rejected: [{ index: 1 }] })
    expect(await inSql(run_id, partial.data.last_seq)).toHaveLength(2)
    const none = await send({ run_id, events: [{}] }, { query: '?partial=true' })
    expect(none.data).toEqual({
      accepted: 0,
      duplicates: 0,
      first_seq: null,
      last_seq: null,
      rejected: [{ index: 0, message: 'events[0].type: required' }],
    })
    expect((await send({ run_id, events }, { query: '?partial=maybe' })).error?.message).toContain('query.partial')
    expect((await send({ run_id, events }, { query: '?patrial=true' })).error?.message).toContain('patrial')
  })

  test('with payloads that ClickHouse JSON cannot hold are kept, are null in SQL, and break no query', async () => {
    const run_id = await agent.start()
    const payloads = [
      '{"a":1}',
      '{"a":"\\ud800"}',
      '{"a":2,"a":3}',
      '{"a":123456789012345678901234567890}',
      '{"a":1e400}',
      '{"a":4}',
    ]
    const { data } = await send(
      `{"run_id":"${run_id}","events":[${payloads.map((payload) => `{"type":"t","payload":${payload}}`)}]}`,
    )
    const query = 'select payload.a as a from events where run_id = {run:UUID} order by seq'
    const asked = { query, params: { run: run_id }, wait_for: data.last_seq }
    const answer = await service.api('POST', '/api/v1/query', asked)
    expect(answer.data.rows.map(({ a }: { a: unknown }) => a)).toEqual([1, null, 2, null, null, 4])
    const { text } = await service.api('GET', `/api/v1/runs/${run_id}/events`)
    for (const payload of payloads) expect(text).toContain(payload)
  })

  test('of one call stay together and in order across concurrent calls', async () => {
    const run_id = await agent.start()
    const calls = await Promise.all(
      Array.from({ length: 40 }, (_, call) =>
        send({ run_id, events: Array.from({ length: 5 }, (_, i) => ({ type: `${call}.${i}` })) }),
      ),
    )
    const last = Math.max(...calls.map(({ data }) => data.last_seq))
    const types = (await inSql(run_id, last)).map((row: { type: string }) => row.type)
    const expected = calls
      .map(({ data }, call) => ({ call, first: data.first_seq }))
      .sort((a, b) => a.first - b.first)
      .flatMap(({ call }) => [0, 1, 2, 3, 4].map((i) => `${call}.${i}`))
    expect(types).toEqual(expected)
  })

  test('are stored on an ended run without changing its status', async () => {
    const run_id = await agent.start()
    await agent.end(run_id)
    expect((await send({ run_id, events: [{ type: 'late' }] })).data).toMatchObject({ accepted: 1 })
    await eventually(async () => {
      const { data } = await service.api('GET', `/api/v1/runs/${run_id}`)
      return data.status === 'completed' && data.event_count === 1 && data.last_event_at !== null
    })
  })

  test.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ] as const)('are accepted compressed, in %s', async (encoding, compress) => {
    const body = compress(JSON.stringify({ run_id: await agent.start(), events: [{ type: 'a' }] }))
    expect((await send(body, { headers: { 'content-encoding': encoding } })).data).toMatchObject({ accepted: 1 })
  })

  test('retried with the same Idempotency-Key are stored once, and the response is replayed', async () => {
    const run_id = await agent.start()
    const headers = { 'idempotency-key': 'batch-1' }
    const body = { run_id, events: [{ type: 'a' }, { type: 'b' }] }
    const first = await send(body, { headers })
    const again = await send(body, { headers })
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([200, first.text, 'true'])
    expect((await send({ ...body, events: [{ type: 'c' }] }, { headers })).error?.code).toBe('CONFLICT')
    expect(await inSql(run_id, first.data.last_seq)).toHaveLength(2)
  })
})

describe('the run of an events call', () => {
  test('rejects an unknown run and one of another workspace as NOT_FOUND, one of another agent as FORBIDDEN', async () => {
    const events = [{ type: 'a' }]
    const run_id = await agent.start()
    expect((await send({ run_id: Bun.randomUUIDv7(), events })).error).toMatchObject({ code: 'NOT_FOUND' })
    const other = await newReporter(service.api)
    expect((await send({ run_id, events }, { key: other.agentKey })).error).toMatchObject({ code: 'FORBIDDEN' })
    const foreign = await newReporter((await newTenant(service)).api)
    expect((await send({ run_id, events }, { key: foreign.agentKey })).error).toMatchObject({ code: 'NOT_FOUND' })
    expect((await send({ run_id, events }, { key: service.workspaceKey })).error).toMatchObject({ code: 'FORBIDDEN' })
  })

  test('a call over the event rate limit is rejected as a whole, with Retry-After', async () => {
    const limited = await startTestService({ RATE_LIMIT_EVENTS_PER_SECOND: '10' })
    const reporter = await newReporter(limited.api)
    const events = Array.from({ length: 8 }, () => ({ type: 'a' }))
    const body = { run_id: await reporter.start(), events }
    await reporter.events(body.run_id, events)
    const rejected = await limited.api('POST', PATH, body, { key: reporter.agentKey })
    expect([rejected.status, rejected.error?.code]).toEqual([429, 'RATE_LIMITED'])
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    await limited.stop()
  })
})
