import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import {
  type Activity,
  gauge,
  LiveStream,
  newReporter,
  newTenant,
  numbered,
  numbersOf,
  type Reporter,
  type Tenant,
} from '../support/feeds.ts'
import { inParallel } from '../support/in-parallel.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** The event streams of docs/feeds.md#event-streams. */

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})

const ALL = '/api/v1/stream'
const ofRun = (runId: string) => `/api/v1/runs/${runId}/stream`

/** Everything up to the end of the stream. */
async function readToEnd(tenant: Tenant, path: string, headers: Record<string, string> = {}): Promise<LiveStream> {
  const stream = await LiveStream.open(tenant, path, { headers })
  expect(await stream.untilEnded()).toBe('clean')
  return stream
}

/** A run with 10 events that has ended. */
async function endedRun(agent: Reporter): Promise<string> {
  const runId = await agent.start()
  await agent.events(runId, numbered(10))
  await agent.end(runId)
  return runId
}

describe('an event stream', () => {
  test('has the event stream headers, the common headers and CORS', async () => {
    const tenant = await newTenant(service)
    const runId = await (await newReporter(tenant.api)).start()
    for (const path of [ALL, ofRun(runId)]) {
      const stream = await LiveStream.open(tenant, path)
      const { headers } = stream.response
      expect([stream.status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
      expect(headers.get('cache-control')).toBe('no-store, no-transform')
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('content-encoding')).toBeNull()
      for (const name of ['x-request-id', 'ratelimit', 'ratelimit-policy'])
        expect([name, headers.has(name)]).toEqual([name, true])
      await stream.close()
    }
  })

  test('sends its cursor immediately, so that a client can resume before any activity', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    await agent.events(runId, numbered(3))
    const stream = await LiveStream.open(tenant, `${ALL}?kind=event`)
    await stream.until(() => stream.frames.length === 1)
    const [{ id }] = stream.frames
    expect(id).toMatch(/^[0-9a-z]+\.\d+$/)
    await stream.close()
    await agent.events(runId, numbered(2, 3))
    const resumed = await LiveStream.open(tenant, `${ALL}?kind=event`, { headers: { 'last-event-id': id! } })
    await resumed.until(() => resumed.items.length === 2)
    expect(numbersOf(resumed.items)).toEqual([3, 4])
    await resumed.close()
  })

  test('sends each activity as one frame with its cursor as id and its kind as event', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const stream = await LiveStream.open(tenant, ALL)
    const runId = await agent.start()
    await agent.events(runId, numbered(2))
    await agent.task(runId, { status: 'running' })
    await stream.until(() => stream.items.length === 4)
    const activities = stream.frames.filter(({ data }) => data !== undefined)
    for (const { id, event, data } of activities) {
      const activity = JSON.parse(data!)
      expect([activity.cursor, activity.kind, activity.run_id]).toEqual([id, event, runId])
      expect(activity[event!]).toBeObject()
    }
    expect(activities.map(({ event }) => event).sort()).toEqual(['event', 'event', 'run', 'task'])
    await stream.close()
  })

  test('accepts each filter as a query parameter, repeated for several values', async () => {
    const tenant = await newTenant(service)
    const [agent, other] = [await newReporter(tenant.api), await newReporter(tenant.api)]
    const runId = Bun.randomUUIDv7()
    const cases: [query: string, matches: (activity: Activity) => boolean][] = [
      [`agent_id=${agent.agentId}&agent_id=${other.agentId}`, () => true],
      [`agent_id=${other.agentId}`, ({ agent_id }) => agent_id === other.agentId],
      [`run_id=${runId}`, ({ run_id }) => run_id === runId],
      ['kind=task&kind=run', ({ kind }) => kind !== 'event'],
      ['type=LLM.call&type=tool.*', ({ event }) => event?.type === 'tool.started'],
      ['type=llm*&level=warn', ({ event }) => event?.level === 'warn'],
      ['status=completed&status=failed', ({ task, run }) => /completed|failed/.test(`${(task ?? run)?.status}`)],
      ['tag=eu', ({ run }) => `${run?.tags}`.includes('eu')],
    ]
    const open = (more = '') => Promise.all(cases.map(([query]) => LiveStream.open(tenant, `${ALL}?${query}${more}`)))
    const live = await open()
    await agent.start({ run_id: runId, tags: ['prod', 'eu'] })
    await agent.events(runId, [
      { type: 'llm.call', level: 'debug' },
      { type: 'tool.started', level: 'error' },
    ])
    await agent.task(runId, { status: 'failed' })
    await agent.end(runId)
    await other.events(await other.start({ tags: ['prod'] }), [{ type: 'llm.call', level: 'warn' }])
    await live[0].until(() => live[0].items.length === 7)
    const all = live[0].items
    for (const streams of [live, await open('&after=0')]) {
      for (const [i, [query, matches]] of cases.entries()) {
        const expected = all.filter(matches)
        await streams[i].until(() => streams[i].items.length >= expected.length)
        expect([query, streams[i].items]).toEqual([query, expected])
        await streams[i].close()
      }
    }
  })

  test('keeps frames intact whatever line breaks a payload contains', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    const payload =
      '{"text":"\\n\\nid: 1\\ndata: x\\r\\n\\r","raw":"\u2028\u2029\u0085data: 1",\n\n"list":[\r\n\r\n1,\r\r2]\n\n,\r"data":\n"x"\n\n}'
    const events = `[{"type":"a\\n\\ndata: {}\\r\\n","payload":${payload}},{"type":"next"}]`
    const streams = [await LiveStream.open(tenant, `${ALL}?kind=event`)]
    const body = `{"run_id":"${runId}","events":${events}}`
    expect((await tenant.api('POST', '/api/ingest/v1/events', body, { key: agent.agentKey })).status).toBe(200)
    streams.push(await LiveStream.open(tenant, `${ofRun(runId)}?after=0`))
    for (const stream of streams) {
      const events = () => stream.items.filter(({ kind }) => kind === 'event')
      await stream.until(() => events().length === 2)
      const [first, second] = events().map(({ event }) => event)
      expect(first?.payload).toEqual(JSON.parse(payload))
      expect([first?.type, second?.type]).toEqual(['a\n\ndata: {}\r\n', 'next'])
      await stream.close()
    }
  })

  test('delivers many large events completely and in order', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    const large = numbered(2_000).map((event) => ({ ...event, payload: { ...event.payload, text: '📏ü'.repeat(150) } }))
    for (let i = 0; i < large.length; i += 500) await agent.events(runId, large.slice(i, i + 500))
    await agent.end(runId)
    await inParallel([1, 2, 3, 4, 5], async () => {
      const { items } = await readToEnd(tenant, `${ofRun(runId)}?after=0`)
      expect(numbersOf(items.filter(({ kind }) => kind === 'event'))).toEqual(large.map(({ payload }) => payload.n))
      expect(items.at(-1)?.run?.status).toBe('completed')
    })
  })
})

describe('the stream of a run', () => {
  test('has only the activity of that run, and ends when the run ends', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const [runId, other] = [await agent.start(), await agent.start()]
    const stream = await LiveStream.open(tenant, `${ofRun(runId.toUpperCase())}?after=0`)
    await agent.events(other, numbered(2, 100))
    await agent.events(runId, numbered(3))
    await agent.task(runId, { status: 'completed' })
    await agent.end(other)
    expect(stream.ended).toBeUndefined()
    await agent.end(runId, 'it broke')
    expect(await stream.untilEnded()).toBe('clean')
    expect(new Set(stream.items.map(({ run_id }) => run_id))).toEqual(new Set([runId]))
    const kinds = stream.items.map(({ kind }) => kind)
    expect(kinds.toSorted()).toEqual(['event', 'event', 'event', 'run', 'run', 'task'])
    expect(stream.items.at(-1)?.run).toMatchObject({ status: 'failed', error_message: 'it broke' })
  })

  test('of an ended run sends everything, or what follows a cursor, and ends', async () => {
    const tenant = await newTenant(service)
    const runId = await endedRun(await newReporter(tenant.api))
    const whole = await readToEnd(tenant, `${ofRun(runId)}?after=0`)
    expect(whole.items).toHaveLength(12)
    for (const [i, { cursor }] of whole.items.slice(0, -1).entries()) {
      const rest = await readToEnd(tenant, `${ofRun(runId)}?after=${cursor}`)
      expect(rest.items).toEqual(whole.items.slice(i + 1))
    }
    // Without a cursor there is nothing to send.
    const now = await readToEnd(tenant, ofRun(runId))
    expect([now.status, now.items]).toEqual([200, []])
  })

  test('ends completely when the run ends during its replay', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    for (let round = 0; round < 5; round++) {
      const runId = await agent.start()
      await agent.events(runId, numbered(200))
      const streams: Promise<LiveStream>[] = []
      const open = async () => {
        for (let i = 0; i < 10; i++) streams.push(readToEnd(tenant, `${ofRun(runId)}?after=0`))
      }
      await Promise.all([open(), agent.end(runId).then(open)])
      for (const { items, status } of await Promise.all(streams)) {
        expect([status, items.length, items.at(-1)?.run?.status]).toEqual([200, 202, 'completed'])
        expect(numbersOf(items.filter(({ kind }) => kind === 'event'))).toEqual(
          numbered(200).map(({ payload }) => payload.n),
        )
      }
    }
  })

  test('answers 204 only to a client that has everything of an ended run', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await endedRun(agent)
    const { items } = await readToEnd(tenant, `${ofRun(runId)}?after=0`)
    const [before, last] = items.slice(-2).map(({ cursor }) => cursor)
    const done = await readToEnd(tenant, ofRun(runId), { 'last-event-id': last })
    expect([done.status, done.text, done.response.headers.get('access-control-allow-origin')]).toEqual([204, '', '*'])
    expect((await readToEnd(tenant, `${ofRun(runId)}?after=${last}`)).status).toBe(204)
    const missed = await readToEnd(tenant, ofRun(runId), { 'last-event-id': before })
    expect([missed.status, missed.items]).toEqual([200, items.slice(-1)])
    // A late event is new activity.
    await agent.events(runId, [{ type: 'late' }])
    const late = await readToEnd(tenant, ofRun(runId), { 'last-event-id': last })
    expect([late.status, late.items.map(({ event }) => event?.type)]).toEqual([200, ['late']])
    await eventually(async () => (await gauge(service, 'feed_connections')) === 0)
  })

  test('is limited to runs of the workspace, and for an agent key to runs of its agent', async () => {
    const [tenant, outsider] = [await newTenant(service), await newTenant(service)]
    const [agent, other] = [await newReporter(tenant.api), await newReporter(tenant.api)]
    const runId = await endedRun(agent)
    const answer = async (path: string, key: string) => {
      const { status, error } = await service.api('GET', path, undefined, { key })
      return `${status} ${error?.code}: ${error?.message}`
    }
    expect(await answer(ofRun(runId), outsider.workspaceKey)).toBe('404 NOT_FOUND: run does not exist')
    expect(await answer(ofRun(crypto.randomUUID()), tenant.workspaceKey)).toBe('404 NOT_FOUND: run does not exist')
    expect(await answer(ofRun(runId), other.agentKey)).toStartWith('403 FORBIDDEN: ')
    expect(await answer(ofRun('x'), tenant.workspaceKey)).toStartWith('400 VALIDATION_ERROR: ')
    const own = await LiveStream.open(tenant, `${ofRun(runId)}?after=0`, { key: agent.agentKey })
    expect([await own.untilEnded(), own.items.length]).toEqual(['clean', 12])
  })
})

describe('an event stream resumes', () => {
  test('after Last-Event-ID, which takes precedence over ?after', async () => {
    const tenant = await newTenant(service)
    const runId = await endedRun(await newReporter(tenant.api))
    const { items } = await readToEnd(tenant, `${ofRun(runId)}?after=0`)
    const { cursor } = items[6]
    const resumed = await readToEnd(tenant, `${ofRun(runId)}?after=0`, { 'last-event-id': cursor })
    expect(resumed.items).toEqual(items.slice(7))
    const everything = await LiveStream.open(tenant, `${ALL}?after=${cursor.split('.')[1]}`, {
      headers: { 'last-event-id': '0' },
    })
    await everything.until(() => everything.items.length === items.length)
    expect(everything.items).toEqual(items)
    await everything.close()
  })

  test('with a gap after a cursor of another journal or a position past the end', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    await agent.events(runId, numbered(3))
    const [lost, ahead] = [
      await LiveStream.open(tenant, `${ALL}?kind=event`, { headers: { 'last-event-id': 'abc123.7' } }),
      await LiveStream.open(tenant, `${ALL}?kind=event&after=999999999`),
    ]
    await lost.until(() => lost.items.length === 3)
    await ahead.until(() => ahead.frames.length === 2)
    await agent.events(runId, numbered(1, 3))
    for (const [stream, after, numbers] of [
      [lost, 'abc123.7', [0, 1, 2, 3]],
      [ahead, '999999999', [3]],
    ] as const) {
      await stream.until(() => stream.items.length === numbers.length)
      expect(numbersOf(stream.items)).toEqual([...numbers])
      const gaps = stream.frames.filter(({ event }) => event === 'gap')
      expect(gaps).toHaveLength(1)
      expect(JSON.parse(gaps[0].data!)).toEqual({ after, resumed_at: gaps[0].id })
      await stream.close()
    }
  })
})

test('a client that disconnects frees its connection, idle or while it receives', async () => {
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const runId = await agent.start()
  await agent.events(runId, numbered(3_000))
  const paths = [ALL, `${ALL}?after=0`, ofRun(runId), `${ofRun(runId)}?after=0`]
  const streams = await Promise.all([...paths, ...paths, ...paths].map((path) => LiveStream.open(tenant, path)))
  // HEAD has no body, so it must not hold a connection.
  const head = await fetch(service.url + ALL, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${tenant.workspaceKey}` },
  })
  expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  await eventually(async () => (await gauge(service, 'feed_connections')) === streams.length)
  await Promise.all(streams.map((stream) => stream.close()))
  await eventually(async () => (await gauge(service, 'feed_connections')) === 0)
  expect(await gauge(service, 'feed_subscriptions')).toBe(0)
})
