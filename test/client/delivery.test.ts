import { describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import {
  accept,
  type ReceivedCall,
  refuse,
  refuseRequest,
  reportingClient,
  serveReports as serve,
} from '../support/report-service.ts'

/** How the client library delivers reports to a service that fails, is slow or does not respond. */

const newClient = (url: string, options: object = {}) =>
  reportingClient({ url, key: 'svc_agent_x', agentId: crypto.randomUUID(), ...options })

const pathsOf = (received: readonly ReceivedCall[]) => received.map(({ path }) => path.split('/').at(-1))

describe('delivery', () => {
  test('sends the same bytes again after failures, in order', async () => {
    const { url, received } = serve(
      refuse(500, 'INTERNAL'),
      refuse(503, 'UNAVAILABLE', { 'retry-after': '0' }),
      () => new Response('<p>', { status: 502 }),
      accept,
      () => new Response('cut'),
      accept,
    )
    const { client } = newClient(url)
    const run = client.startRun({ input: { a: 1 } })
    run.event('step', { b: 2 })
    run.complete({ c: 3 })
    expect(await client.close()).toBe(true)
    expect(pathsOf(received)).toEqual(['start', 'start', 'start', 'start', 'events', 'events', 'complete'])
    expect(new Set(received.slice(0, 4).map(({ text }) => text)).size).toBe(1)
    expect(received[4]?.text).toBe(received[5]!.text)
    expect(client.stats).toMatchObject({ acknowledged: 3, retries: 4, queued: 0 })
  })

  test('waits for as long as Retry-After says', async () => {
    const { url, received } = serve(refuse(429, 'RATE_LIMITED', { 'retry-after': '1' }), accept)
    const { client } = newClient(url)
    client.startRun()
    client.startRun()
    expect(await client.close()).toBe(true)
    // The second start may have been sent before the answer to the first one.
    expect(received.at(-1)!.atMs - received[0]!.atMs).toBeGreaterThanOrEqual(990)
  })

  test('sends events together after a short time, and at once when there are many', async () => {
    const { url, received } = serve(accept)
    const { client } = newClient(url, { flushIntervalMs: 60_000 })
    const run = client.startRun()
    for (let i = 0; i < 10; i++) run.event('step', { i })
    await Bun.sleep(1)
    expect(received).toEqual([])
    for (let i = 0; i < 5_000; i++) run.event('step', { i })
    await eventually(() => received.length >= 2)
    expect(pathsOf(received).slice(0, 2)).toEqual(['start', 'events'])
    expect(JSON.parse(received[1]!.text).events.length).toBeGreaterThan(100)
    await client.close()
    expect(client.stats.acknowledged).toBe(5_011)
  })

  test('scores are sent together before the end of their run, and again with the same ids', async () => {
    let refusals = 0
    const { url, received } = serve((call) =>
      call.path.endsWith('/scores') && refusals++ === 0 ? refuse(503, 'UNAVAILABLE')(call) : accept(call),
    )
    const { client, errors } = newClient(url)
    const run = client.startRun()
    run.score('correct', true)
    run.score('similarity', 0.5, { id: 'mine', comment: 'half', createdAt: new Date(0) })
    run.score('topic', 'billing', { eventId: 'e1' })
    run.score('review', { text: 'Fine.', metadata: { by: 'Ada' } })
    const task = run.startTask('answer')
    task.score('tone', 'friendly')
    task.score('chat', 1, { sessionId: 's' })
    run.complete()
    await client.close()
    expect(errors).toEqual([])
    expect(pathsOf(received).filter((path) => path !== 'tasks')).toEqual(['start', 'scores', 'scores', 'complete'])
    const [first, second] = received.filter(({ path }) => path.endsWith('/scores')).map(({ text }) => text)
    expect(second).toBe(first!)
    const { scores } = JSON.parse(first!)
    expect(scores).toMatchObject([
      { name: 'correct', value: true, created_at: expect.any(String) },
      { name: 'similarity', value: 0.5, id: 'mine', comment: 'half', created_at: '1970-01-01T00:00:00.000Z' },
      { name: 'topic', label: 'billing', event_id: 'e1' },
      { name: 'review', text: 'Fine.', metadata: { by: 'Ada' } },
      { name: 'tone', label: 'friendly', task_id: task.taskId },
      { name: 'chat', value: 1, session_id: 's' },
    ])
    expect(scores.map(({ run_id }: { run_id: string }) => run_id)).toEqual(Array(6).fill(run.runId))
    expect(new Set(scores.map(({ id }: { id: string }) => id)).size).toBe(6)
    expect(scores[5]).not.toHaveProperty('task_id')
    expect(scores[2]).not.toHaveProperty('value')
    expect(client.stats).toMatchObject({ acknowledged: 9, queued: 0, queuedBytes: 0 })
  })

  test('scores that JSON cannot express are counted, and take no others with them', async () => {
    const { url, received } = serve(accept)
    const { client, errors } = newClient(url)
    const runId = crypto.randomUUID()
    client.score(runId, 'nan', Number.NaN)
    client.score(runId, 'two', 'a', { label: 'b' })
    client.score(runId, 'odd', 1, { metadata: { n: 1n } })
    client.score(runId, 'good', 1)
    await client.close()
    expect(errors.map(({ reason, runId: of }) => [reason, of])).toEqual(Array(3).fill(['invalid', runId]))
    expect(JSON.parse(received[0]!.text).scores).toMatchObject([{ name: 'good', value: 1, run_id: runId }])
    expect(client.stats).toMatchObject({ acknowledged: 1, rejected: 3 })
  })

  test('reports of a task are sent as one while the first has not been sent', async () => {
    const { url, received } = serve(accept)
    const { client } = newClient(url)
    const task = client.startRun().startTask('search', { input: { q: 'x' } })
    task.complete({ hits: 1 })
    await client.close()
    expect(pathsOf(received)).toEqual(['start', 'tasks'])
    expect(JSON.parse(received[1]!.text).task).toMatchObject({
      ...{ id: task.taskId, name: 'search', status: 'completed', input: { q: 'x' }, output: { hits: 1 } },
      ...{ started_at: expect.any(String), completed_at: expect.any(String) },
    })
  })

  test('compresses large bodies on request, not by default to this machine', async () => {
    const { url, received } = serve(accept)
    for (const compress of [undefined, true]) {
      const { client } = newClient(url, { compress })
      client.startRun({ input: { text: 'x'.repeat(5_000) } }).complete()
      await client.close()
    }
    expect(received.map(({ encoding }) => encoding)).toEqual([null, null, 'gzip', null])
    expect(JSON.parse(received[2]!.text).input.text).toHaveLength(5_000)
  })

  test('reports an outage once, and loses nothing when it is over', async () => {
    let isDown = true
    const { url } = serve((call) => (isDown ? new Response('', { status: 503 }) : accept(call)))
    const { client } = newClient(url)
    client.startRun().complete()
    expect(await client.flush(200)).toBe(false)
    expect(client.stats).toMatchObject({ queued: 2, acknowledged: 0 })
    isDown = false
    expect(await client.flush()).toBe(true)
    expect(client.stats).toMatchObject({ queued: 0, acknowledged: 2, dropped: 0 })
  })

  test('an onError that throws does not stop the reports, and what it was told becomes a warning', async () => {
    const { url } = serve(refuseRequest(403, 'FORBIDDEN'), accept)
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    const { client } = newClient(url, {
      onError() {
        throw new Error('handler')
      },
    })
    client.startRun()
    await client.flush()
    client.startRun()
    await client.close()
    expect(client.stats).toMatchObject({ rejected: 1, acknowledged: 1 })
    expect((await warned).message).toBe('1 report rejected: FORBIDDEN: why')
  })
})

describe('at the bound of the buffer', () => {
  const stalled = () => {
    const gate = Promise.withResolvers<void>()
    const served = serve(accept, async (call) => {
      await gate.promise
      return accept(call)
    })
    return { ...served, open: gate.resolve }
  }
  const payload = { text: 'x'.repeat(1_000) }
  const WAIT = { whenFull: 'wait', waitTimeoutMs: 600_000 } as const

  test('events and new runs are dropped that would exceed it, counted and reported', async () => {
    const { url, open } = stalled()
    const { client, errors } = newClient(url, { bufferBytes: 50_000, flushIntervalMs: 5 })
    const run = client.startRun()
    for (let i = 0; i < 200; i++) await run.event('step', payload)
    const late = client.startRun()
    late.event('step')
    late.complete()
    run.complete()
    const { dropped, queuedBytes } = client.stats
    expect(dropped).toBeGreaterThan(140)
    expect(queuedBytes).toBeLessThan(60_000)
    open()
    await client.close()
    expect(client.stats).toMatchObject({ dropped, acknowledged: 200 + 5 - dropped, queued: 0, queuedBytes: 0 })
    expect(errors.every(({ reason }) => reason === 'dropped')).toBe(true)
    expect(errors.reduce((sum, { reports }) => sum + reports, 0)).toBe(dropped)
  })

  test('"wait" makes the caller wait until there is room, and loses nothing', async () => {
    const { url, open } = stalled()
    const { client, errors } = newClient(url, { ...WAIT, bufferBytes: 50_000, flushIntervalMs: 5 })
    const run = client.startRun()
    let reported = 0
    const reporting = (async () => {
      for (; reported < 500; reported++) await run.event('step', payload)
    })()
    await eventually(() => client.stats.queuedBytes >= 50_000)
    await Bun.sleep(20)
    expect(reported).toBeLessThan(60)
    open()
    await reporting
    run.complete()
    await client.close()
    expect(errors).toEqual([])
    expect(client.stats).toMatchObject({ dropped: 0, acknowledged: 502 })
  })

  test('"wait" keeps twice the bound of a caller that does not wait, then drops the oldest and reports', async () => {
    const { url, open } = stalled()
    const { client, errors } = newClient(url, { ...WAIT, bufferBytes: 50_000, flushIntervalMs: 5 })
    const run = client.startRun()
    for (let i = 0; i < 200; i++) void run.event('step', payload)
    const { dropped, queuedBytes } = client.stats
    expect(queuedBytes).toBeLessThan(105_000)
    expect(dropped).toBeGreaterThan(90)
    open()
    await client.close()
    expect(client.stats).toMatchObject({ dropped, acknowledged: 201 - dropped })
    expect(errors.reduce((sum, { reports }) => sum + reports, 0)).toBe(dropped)
  })

  test('close ends the wait of callers', async () => {
    const { url } = stalled()
    const { client } = newClient(url, { ...WAIT, bufferBytes: 5_000 })
    const run = client.startRun()
    const reporting = (async () => {
      for (let i = 0; i < 100 && client.stats.dropped === 0; i++) await run.event('step', payload)
    })()
    await eventually(() => client.stats.queuedBytes >= 5_000)
    expect(await client.close(50)).toBe(false)
    await reporting
    expect(client.stats.dropped).toBeGreaterThan(0)
  })

  test('close waits for as long as it is told, and reports what is left', async () => {
    const { url } = stalled()
    const { client, errors } = newClient(url)
    const run = client.startRun()
    run.event('step')
    expect(await client.close(300)).toBe(false)
    run.event('late')
    expect(errors.map(({ reason, reports }) => [reason, reports])).toEqual([
      ['dropped', 1],
      ['dropped', 1],
    ])
    expect(client.stats.dropped).toBe(2)
  })
})

test.each([
  [{ url: 'localhost:3000' }, 'url must begin with http:// or https://'],
  [{ key: '' }, 'no key: pass key to the client, or set AGENT_RUN_KEY'],
  [{ bufferBytes: 0 }, 'bufferBytes must be greater than 0; got 0'],
  [{ timeoutMs: 0 }, 'timeoutMs must be greater than 0; got 0'],
])('rejects the options %j', (options, message) => {
  expect(() => newClient('http://127.0.0.1:1', options)).toThrow(message)
})
