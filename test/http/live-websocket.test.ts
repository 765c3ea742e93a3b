import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import {
  type Activity,
  gauge,
  LiveSocket,
  newReporter,
  newTenant,
  numbered,
  numbersOf,
  type SocketMessage,
} from '../support/feeds.ts'
import { inParallel } from '../support/in-parallel.ts'
import { dataOf, freePort, startTestService, type TestService } from '../support/service.ts'

/** The WebSocket of docs/feeds.md#websocket: its messages, and what a subscription gets. */

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})

const epochOf = ({ cursor }: SocketMessage) => cursor!.split('.')[0]

/** Waits until a subscription has `count` items, and for any that follow. */
async function settled(socket: LiveSocket, id: string, count: number): Promise<Activity[]> {
  await socket.until(() => socket.items(id).length >= count)
  await socket.ask({ op: 'ping' })
  return socket.items(id)
}

describe('on a WebSocket', () => {
  test('a subscription is confirmed, gets new activity, and ends on unsubscribe', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    const socket = await LiveSocket.open(tenant)
    const answer = await socket.subscribe('mine', { filter: { kind: 'event' } })
    expect(answer).toEqual({
      op: 'subscribed',
      id: 'mine',
      cursor: expect.stringMatching(/^[0-9a-z]+\.\d+$/),
      recovered: false,
    })
    const { first_seq } = await agent.events(runId, [{ type: 'hello', level: 'warn', payload: { a: 1 } }])
    const [activity] = await settled(socket, 'mine', 1)
    expect(activity).toEqual({
      cursor: `${epochOf(answer)}.${first_seq}`,
      kind: 'event',
      agent_id: agent.agentId,
      run_id: runId,
      received_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      event: {
        id: expect.any(String),
        seq: first_seq,
        type: 'hello',
        level: 'warn',
        payload: { a: 1 },
        occurred_at: expect.any(String),
      },
    })
    await socket.subscribe('another', { filter: { kind: 'event' } })
    expect(await socket.ask({ op: 'unsubscribe', id: 'mine' })).toEqual([])
    await agent.events(runId, [{ type: 'later' }])
    await settled(socket, 'another', 1)
    expect(socket.items('mine')).toHaveLength(1)
    // Its id is free again.
    await socket.subscribe('mine', { after: 0, filter: { kind: 'event' } })
    expect(await settled(socket, 'mine', 3)).toHaveLength(3)
    await socket.close()
  })

  test('a client that disconnects is removed with all its subscriptions', async () => {
    const tenant = await newTenant(service)
    const [before, subscriptions] = [
      await gauge(service, 'feed_connections'),
      await gauge(service, 'feed_subscriptions'),
    ]
    const socket = await LiveSocket.open(tenant)
    for (let i = 0; i < 10; i++) await socket.subscribe(`${i}`)
    expect(await gauge(service, 'feed_connections')).toBe(before + 1)
    expect(await gauge(service, 'feed_subscriptions')).toBe(subscriptions + 10)
    await socket.close()
    await eventually(async () => (await gauge(service, 'feed_connections')) === before)
    expect(await gauge(service, 'feed_subscriptions')).toBe(subscriptions)
  })
})

describe('an activity equals what the API returns,', () => {
  const PAYLOAD =
    '{"whole":1.0,"large":12345678901234567890,"tiny":1e-400,"zero":-0,"nul":"\\u0000","text":"a\\nb\\u2028\u2028</x>",' +
    '\n"list":[\r\n1,\n\n2\r]\n,"__proto__":{"x":[]},"":null,"twice":1,"twice":2}'
  /** Line breaks between tokens are not part of the value. */
  const oneLine = (json: string) => json.replace(/[\r\n]+/g, ' ')
  const squeezed = (json: string) => json.replace(/[\r\n ]+/g, '')

  test('value for value: events', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    const live = await LiveSocket.open(tenant)
    await live.subscribe('s', { filter: { kind: 'event' } })
    const event = `{"id":"an \\"id\\"","type":"a\\n\\u0007 b","level":"error","payload":${PAYLOAD},"occurred_at":"2020-02-29T23:59:59.5+01:00"}`
    const body = `{"run_id":"${runId}","events":[${event},{"type":"plain"}]}`
    const sent = await tenant.api('POST', '/api/ingest/v1/events', body, { key: agent.agentKey })
    expect(sent.status).toBe(200)
    await settled(live, 's', 2)
    await live.subscribe('r', { filter: { kind: 'event' }, after: 0 })
    await settled(live, 'r', 2)
    const read = await tenant.api('GET', `/api/v1/runs/${runId}/events`)
    for (const id of ['s', 'r']) {
      const items = live.items(id)
      expect(items.map(({ event, received_at }) => ({ ...event, received_at }))).toEqual(read.data.items)
      const [text] = live.texts.filter((each) => each.startsWith(`{"op":"activity","id":"${id}"`))
      expect(text).toContain(`"payload":${oneLine(PAYLOAD)},`)
    }
    expect(squeezed(read.text)).toContain(`"payload":${squeezed(PAYLOAD)},`)
  })

  test('value for value: tasks, and runs without input, output and version', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const parent = await agent.start()
    const live = await LiveSocket.open(tenant)
    const runId = Bun.randomUUIDv7()
    await live.subscribe('s', { filter: { kind: ['task', 'run'], run_id: runId } })
    await agent.start({
      run_id: runId,
      tags: ['b', 'a', '"x"'],
      metadata: { n: 1.5, deep: { list: [null, 'ü\n'] } },
      input: { secret: 'INPUT' },
      trigger_type: 'webhook',
      external_run_id: 'order "7"',
      parent_run_id: parent,
    })
    const { data: started } = await tenant.api('GET', `/api/v1/runs/${runId}`)
    const above = await agent.task(runId, { name: 'first', status: 'pending' })
    const task = await agent.task(runId, {
      name: 'second ✓',
      status: 'failed',
      input: { a: [1] },
      output: { b: null },
      error_message: 'no\nway',
      parent_task_id: above,
    })
    const { data: tasks } = await tenant.api('GET', `/api/v1/runs/${runId}/tasks`)
    await agent.events(runId, numbered(4))
    await eventually(async () => (await tenant.api('GET', `/api/v1/runs/${runId}`)).data.event_count === 4)
    await tenant.api(
      'POST',
      '/api/ingest/v1/run/fail',
      { run_id: runId, error_message: 'it\nbroke', error_detail: { why: [1.25, {}] } },
      { key: agent.agentKey },
    )
    const { data: failed } = await tenant.api('GET', `/api/v1/runs/${runId}`)
    await settled(live, 's', 4)
    await live.subscribe('r', { filter: { kind: ['task', 'run'], run_id: runId }, after: 0 })
    await settled(live, 'r', 4)
    const bare = ({ input, output, version, ...rest }: Record<string, unknown>) => rest
    for (const id of ['s', 'r']) {
      const items = live.items(id)
      expect(items.flatMap(({ run }) => run ?? [])).toEqual([bare(started), bare(failed)])
      expect(items.flatMap(({ task: each }) => each ?? [])).toEqual([...tasks.items].reverse())
      expect(items.find((each) => each.task?.id === task)).toMatchObject({
        kind: 'task',
        run_id: runId,
        agent_id: agent.agentId,
      })
    }
    expect(live.texts.join()).not.toContain('INPUT')
    await live.close()
  })
})

describe('max_per_second', () => {
  test('limits one subscription and reports how many it skipped, also at the end', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    const socket = await LiveSocket.open(tenant)
    const filter = { kind: 'event' }
    await socket.subscribe('all', { filter })
    await socket.subscribe('thin', { filter, max_per_second: 5 })
    const startedMs = performance.now()
    for (let i = 0; i < 20; i++) await agent.events(runId, numbered(20, i * 20))
    // The skipped count arrives even without further activity.
    await socket.until(() => socket.items('thin').length + socket.skipped('thin') === 400)
    const seconds = (performance.now() - startedMs) / 1_000
    expect(numbersOf(socket.items('all'))).toEqual(numbered(400).map(({ payload }) => payload.n))
    const thin = socket.items('thin')
    expect(thin).toEqual(socket.items('all').filter((each) => thin.some(({ cursor }) => cursor === each.cursor)))
    expect(thin.length).toBeWithin(5, 5 * (Math.ceil(seconds) + 1) + 1)
    expect([socket.skipped('all'), thin[0]]).toEqual([0, socket.items('all')[0]])

    // The next second allows more.
    let reported = 400
    await eventually(async () => {
      await agent.events(runId, numbered(1, reported++))
      return socket.items('thin').length > thin.length
    })
    await socket.until(() => socket.items('thin').length + socket.skipped('thin') === reported)
    await socket.close()
  })
})

describe('a subscription starts', () => {
  test('with everything after 0, and with what follows after a cursor or a position', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    for (const first of [0, 5]) await agent.events(runId, numbered(5, first))
    const socket = await LiveSocket.open(tenant)
    const filter = { kind: 'event' }
    const { cursor: start } = await socket.subscribe('whole', { filter, after: 0 })
    const [, , third, , , , seventh] = await settled(socket, 'whole', 10)
    for (const [after, count] of [
      [0, 10],
      ['0', 10],
      [start, 10],
      [third.cursor, 7],
      [third.event!.seq, 7],
      [`${third.event!.seq}`, 7],
      [seventh.event!.seq, 3],
    ] as const) {
      const id = JSON.stringify([after, count])
      expect((await socket.subscribe(id, { filter, after })).recovered).toBe(true)
      expect(numbersOf(await settled(socket, id, count))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].slice(-count))
    }
    // All of them continue live without gaps or repeats.
    await agent.events(runId, numbered(1, 10))
    const ids = socket.messagesOf('subscribed').map(({ id }) => id!)
    for (const id of ids) {
      await socket.until(() => numbersOf(socket.items(id)).includes(10))
      const numbers = numbersOf(socket.items(id)) as number[]
      expect([id, numbers]).toEqual([id, numbers.map((_, i) => 11 - numbers.length + i)])
    }
    expect(socket.messagesOf('gap')).toEqual([])
    await socket.close()
  })

  test('with a gap: from the beginning after a cursor of a lost journal, else with new activity', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    const { last_seq } = await agent.events(runId, numbered(3))
    const socket = await LiveSocket.open(tenant)
    const epoch = epochOf(await socket.subscribe('past', { after: 0 }))
    const lost = await socket.subscribe('lost', { after: 'abc123.7', filter: { kind: 'event' } })
    expect(lost).toMatchObject({ cursor: `${epoch}.0`, recovered: false })
    expect(numbersOf(await settled(socket, 'lost', 3))).toEqual([0, 1, 2])
    expect(socket.messagesOf('gap')).toEqual([{ op: 'gap', id: 'lost', after: 'abc123.7', resumed_at: `${epoch}.0` }])
    for (const [id, after] of [
      ['cursor', `${epoch}.999999999`],
      ['bare', '999999999'],
    ]) {
      const subscribed = await socket.subscribe(id, { after, filter: { kind: 'event' } })
      expect([subscribed.recovered, Number(subscribed.cursor!.split('.')[1]) >= last_seq]).toEqual([false, true])
      const gaps = socket.messagesOf('gap').filter((each) => each.id === id)
      expect(gaps).toEqual([{ op: 'gap', id, after, resumed_at: subscribed.cursor! }])
    }
    await agent.events(runId, numbered(1, 3))
    for (const id of ['cursor', 'bare']) expect(numbersOf(await settled(socket, id, 1))).toEqual([3])
    await socket.close()
  })
})

test('shutdown sends closing with resume cursors, then 1001; resuming has no gaps or repeats', async () => {
  const first = await startTestService({ PORT: `${freePort()}` })
  const agent = await newReporter(first.api)
  const runId = await agent.start()
  const filters = { all: { kind: 'event' }, errors: { level: 'error' }, tasks: { kind: 'task' } }
  const sockets = await Promise.all(Array.from({ length: 20 }, () => LiveSocket.open(first)))
  for (const socket of sockets)
    for (const [id, filter] of Object.entries(filters)) await socket.subscribe(id, { filter, after: 0 })
  const none = await LiveSocket.open(first)
  const acknowledged: number[] = []
  const report = async (n: number) => {
    const level = n % 3 === 0 ? 'error' : 'info'
    await agent.events(runId, [{ type: 'step', level, payload: { n } }])
    acknowledged.push(n)
  }
  for (let n = 0; n < 20; n++) await report(n)
  // Stops in the middle of further reports, some of which fail.
  const reporting = inParallel(numbered(60, 20), ({ payload }) => report(payload.n).catch(() => {}), 4)
  await eventually(() => acknowledged.length > 30, { intervalMs: 1 })
  await first.stop()
  await reporting
  for (const socket of [...sockets, none])
    expect(await socket.untilClosed()).toEqual({ code: 1001, reason: 'shutdown' })
  const [bare] = none.messagesOf('closing')
  expect(Object.keys(bare)).toEqual(['op', 'reason', 'reconnect_after_ms'])

  const second = await startTestService({ ...dataOf(first), PORT: new URL(first.url).port })
  for (let n = 100; n < 110; n++) await report(n)
  const reader = await LiveSocket.open(second)
  await reader.subscribe('all', { filter: filters.all, after: 0 })
  await reader.until(() => numbersOf(reader.items('all')).includes(109))
  const everything = reader.items('all')
  expect(acknowledged.filter((n) => !numbersOf(everything).includes(n))).toEqual([])
  for (const socket of sockets) {
    const [closing] = socket.messagesOf('closing')
    expect(closing).toMatchObject({ op: 'closing', reason: 'shutdown' })
    expect(closing.reconnect_after_ms).toBeWithin(0, 5_000)
    expect(Object.keys(closing.cursors!)).toEqual(Object.keys(filters))
    const again = await LiveSocket.open(second)
    for (const [id, filter] of Object.entries(filters)) {
      const { recovered } = await again.subscribe(id, { filter, after: closing.cursors![id] })
      expect(recovered).toBe(true)
    }
    // The cursor of the whole connection also works, but may repeat some activity.
    await again.subscribe('coarse', { filter: filters.all, after: closing.cursor })
    const both = (id: string) => [...socket.items(id), ...again.items(id)]
    const coarse = () => new Set([...socket.items('all'), ...again.items('coarse')].map(({ cursor }) => cursor)).size
    const errors = everything.filter(({ event }) => event?.level === 'error')
    const has = { all: () => both('all').length, errors: () => both('errors').length, coarse }
    await again.until(() => has.all() >= everything.length && has.errors() >= errors.length)
    await again.until(() => has.coarse() === everything.length)
    await again.ask({ op: 'ping' })
    expect([both('all'), both('errors'), both('tasks')]).toEqual([everything, errors, []])
    await again.close()
  }
  await reader.close()
  await second.stop()
})
