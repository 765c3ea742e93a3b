import { beforeAll, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { at, event, sendBatch } from '../support/langfuse.ts'
import { eventsOf, inProtobuf, randomHex, runsOf, sendExport, span, tasksOf, tracesOf } from '../support/otlp.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** `POST /api/public/ingestion`: what the batches of the Langfuse SDKs become. */

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

function example() {
  const traceId = crypto.randomUUID()
  const root = crypto.randomUUID()
  const generation = crypto.randomUUID()
  const batch = [
    event('trace-create', {
      ...{
        id: traceId,
        timestamp: at(0),
        name: 'support',
        userId: 'u-1',
        sessionId: 's-1',
        release: '1.2',
        version: 'v3',
      },
      ...{ environment: 'staging', tags: ['a', 'b'], metadata: { tenant: 7 }, input: { question: 'where?' } },
    }),
    event('span-create', { id: root, traceId, name: 'answer', startTime: at(0), input: 'where?', metadata: { a: 1 } }),
    event('generation-create', {
      ...{ id: generation, traceId, parentObservationId: root, name: 'llm', startTime: at(10), model: 'gpt-5-mini' },
      ...{ modelParameters: { temperature: 0 }, input: [{ role: 'user', content: 'where?' }] },
    }),
    event('generation-update', {
      ...{ id: generation, traceId, endTime: at(40), output: { role: 'assistant', content: 'here' } },
      ...{ usage: { promptTokens: 12, completionTokens: 3 }, costDetails: { input: 0.25, output: 0.5 } },
    }),
    event('span-update', { id: root, traceId, endTime: at(50), output: { answer: 'here' }, metadata: { b: 2 } }),
  ]
  return { traceId, root, generation, batch }
}

test('a trace is a run, and an observation a task with its event', async () => {
  const { traceId, root, generation, batch } = example()
  const { status, successes, errors } = await sendBatch(service, batch)
  expect([status, errors]).toEqual([207, []])
  expect(successes).toEqual(batch.map(({ id }) => ({ id, status: 201 })))
  const [run] = await runsOf(service, traceId)
  expect(run).toMatchObject({
    ...{ status: 'completed', external_run_id: traceId, session_id: 's-1', external_user_id: 'u-1', tags: ['a', 'b'] },
    ...{ input: { question: 'where?' }, output: { answer: 'here' }, started_at: at(0), completed_at: at(50) },
    metadata: {
      source: 'langfuse',
      name: 'support',
      release: '1.2',
      version: 'v3',
      environment: 'staging',
      metadata: { tenant: 7 },
    },
  })
  const tasks = await tasksOf(service, traceId)
  expect(tasks.find(({ id }: { id: string }) => id === generation)).toMatchObject({
    ...{ name: 'llm', status: 'completed', parent_task_id: root, started_at: at(10), completed_at: at(40) },
    ...{ input: { messages: [{ role: 'user', content: 'where?' }] }, output: { role: 'assistant', content: 'here' } },
  })
  expect(tasks.find(({ id }: { id: string }) => id === root)).toMatchObject({
    ...{ name: 'answer', parent_task_id: null, input: { text: 'where?' }, output: { answer: 'here' } },
  })
  const events = await eventsOf(service, traceId)
  expect(events.map(({ type }: { type: string }) => type).sort()).toEqual(['llm.call', 'span', 'trace.updated'])
  const call = events.find(({ type }: { type: string }) => type === 'llm.call')
  expect(call).toMatchObject({ id: generation, task_id: generation, level: 'info', occurred_at: at(40) })
  expect(call.payload).toMatchObject({
    ...{ name: 'llm', observation_type: 'generation', 'gen_ai.response.model': 'gpt-5-mini', cost_usd: 0.75 },
    ...{ 'gen_ai.usage.input_tokens': 12, 'gen_ai.usage.output_tokens': 3, duration_ms: 30 },
    ...{
      model_parameters: { temperature: 0 },
      trace_id: traceId,
      observation_id: generation,
      parent_observation_id: root,
    },
  })
  expect(events.find(({ type }: { type: string }) => type === 'span').payload.metadata).toEqual({ a: 1, b: 2 })
  const counted = await eventually(async () => {
    const [counting] = await runsOf(service, traceId)
    return counting.usage.total_tokens > 0 && counting
  })
  expect([counted.usage.input_tokens, counted.usage.output_tokens, counted.cost_usd]).toEqual([12, 3, 0.75])
})

test('a repeated batch changes nothing, whole or event by event', async () => {
  const { traceId, batch } = example()
  const agent = await newAgent(service.api)
  const rows = async () => [await tasksOf(service, traceId), await eventsOf(service, traceId)]
  await sendBatch(service, batch, agent.agentKey)
  const before = await rows()
  expect((await sendBatch(service, batch, agent.agentKey)).errors).toEqual([])
  for (const each of batch.toReversed()) await sendBatch(service, [each], agent.agentKey)
  expect(await rows()).toEqual(before)
})

test('updates merge in any order, an update before its create included', async () => {
  const ends: unknown[] = []
  for (const order of ['forwards', 'backwards']) {
    const { traceId, generation, batch } = example()
    for (const each of order === 'forwards' ? batch : batch.toReversed()) {
      expect((await sendBatch(service, [each])).errors).toEqual([])
    }
    const task = (await tasksOf(service, traceId)).find(({ id }: { id: string }) => id === generation)
    const events = await eventsOf(service, traceId)
    const calls = events.filter(({ type }: { type: string }) => type === 'llm.call')
    expect(calls).toHaveLength(1)
    const [run] = await runsOf(service, traceId)
    const { input, output, name, status, started_at, completed_at } = task
    const { 'gen_ai.usage.input_tokens': tokens, 'gen_ai.response.model': model } = calls[0].payload
    ends.push({
      input,
      output,
      name,
      status,
      started_at,
      completed_at,
      tokens,
      model,
      run: run.status,
      user: run.external_user_id,
    })
  }
  expect(ends[1]).toEqual(ends[0])
})

test('of two updates the later timestamp wins; one in the future wins only until its arrival', async () => {
  const traceId = crypto.randomUUID()
  const id = crypto.randomUUID()
  const update = (output: string, ms: number) => event('span-update', { id, traceId, output }, ms)
  await sendBatch(service, [
    event('span-create', { id, traceId, name: 's', startTime: at(0) }, 0),
    update('second', 200),
  ])
  await sendBatch(service, [update('first', 100)])
  const output = async () => (await tasksOf(service, traceId))[0].output
  expect(await output()).toEqual({ text: 'second' })
  const future = { ...update('future', 300), timestamp: new Date(Date.now() + 1e9).toISOString() }
  await sendBatch(service, [future])
  expect(await output()).toEqual({ text: 'future' })
  const now = { ...update('now', 0), timestamp: new Date(Date.now() + 5).toISOString() }
  await Bun.sleep(10)
  await sendBatch(service, [now])
  expect(await output()).toEqual({ text: 'now' })
  await sendBatch(service, [future])
  expect(await output()).toEqual({ text: 'now' })
})

test('of a client whose clock is ahead, the later timestamp wins too', async () => {
  const traceId = crypto.randomUUID()
  const id = crypto.randomUUID()
  const ahead = (output: string, ms: number) => ({
    ...event('span-update', { id, traceId, output }),
    timestamp: new Date(Date.now() + 60_000 + ms).toISOString(),
  })
  const [earlier, later] = [ahead('earlier', 0), ahead('later', 5_000)]
  await sendBatch(service, [event('span-create', { id, traceId, name: 's', startTime: at(0) }, 0)])
  for (const each of [later, earlier, later]) expect((await sendBatch(service, [each])).errors).toEqual([])
  expect((await tasksOf(service, traceId))[0].output).toEqual({ text: 'later' })
})

test('an update after the end changes the task, and is not a second call', async () => {
  const { traceId, generation, batch } = example()
  await sendBatch(service, batch)
  await sendBatch(service, [
    event('generation-update', { id: generation, traceId, output: 'later', usage: { input: 99 } }, 90_000),
  ])
  const task = (await tasksOf(service, traceId)).find(({ id }: { id: string }) => id === generation)
  expect(task).toMatchObject({
    output: { text: 'later' },
    name: 'llm',
    input: { messages: [{ role: 'user', content: 'where?' }] },
  })
  const types = (await eventsOf(service, traceId)).map(({ type }: { type: string }) => type)
  expect(types.filter((type: string) => type === 'llm.call')).toHaveLength(1)
  expect(types).toContain('observation.updated')
})

test('a batch that overtakes the beginning of its trace waits for it: that names the agent', async () => {
  const traceId = crypto.randomUUID()
  const [root, child] = [crypto.randomUUID(), crypto.randomUUID()]
  const overtaking = [event('span-create', { id: child, traceId, parentObservationId: root, startTime: at(1) })]
  const head = [event('trace-create', { id: traceId, name: 'overtaken' })]
  const waiting = [sendBatch(service, overtaking), sendBatch(service, overtaking)]
  // Nothing shows that they have arrived; if they have not, the beginning is simply first.
  await Bun.sleep(100)
  const answers = [await sendBatch(service, head), ...(await Promise.all(waiting))]
  expect(answers.map(({ errors }) => errors)).toEqual([[], [], []])
  const [{ agent_id }] = await runsOf(service, traceId)
  expect((await service.api('GET', `/api/v1/agents/${agent_id}`)).data.name).toBe('overtaken')
  expect((await tasksOf(service, traceId)).map(({ id }: { id: string }) => id)).toEqual([child])
})

test('usage that is reported after the end of its observation and run is counted, once', async () => {
  const traceId = crypto.randomUUID()
  const [root, ended, open] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  const generation = (id: string, more: object) =>
    event('generation-create', { id, traceId, parentObservationId: root, model: 'm', startTime: at(1), ...more })
  const usage = (id: string, input: number) =>
    event('generation-update', { id, traceId, usageDetails: { input, output: 1 }, costDetails: { total: 0.5 } })
  await sendBatch(service, [
    event('span-create', { id: root, traceId, name: 'root', startTime: at(0), endTime: at(9) }),
    ...[generation(ended, { endTime: at(2) }), generation(open, {})],
  ])
  expect((await runsOf(service, traceId))[0].status).toBe('completed')
  const late = [usage(ended, 10), usage(open, 20)]
  for (const each of [...late, ...late]) expect((await sendBatch(service, [each])).errors).toEqual([])
  // Only the first usage counts, as with a call that had some.
  await sendBatch(service, [usage(ended, 1_000)])
  const events = await eventsOf(service, traceId)
  const counted = events.filter(({ payload }: { payload: object }) => 'gen_ai.usage.input_tokens' in payload)
  const byTask = new Map(
    counted.map((each: { task_id: string; type: string; payload: Record<string, number> }) => [
      each.task_id,
      [each.type, each.payload['gen_ai.usage.input_tokens']],
    ]),
  )
  expect(counted).toHaveLength(2)
  expect([byTask.get(ended), byTask.get(open)]).toEqual([
    ['llm.call', 10],
    ['llm.call', 20],
  ])
  const run = await eventually(async () => {
    const [counting] = await runsOf(service, traceId)
    return counting.usage.total_tokens >= 32 && counting
  })
  expect([run.usage.input_tokens, run.usage.output_tokens, run.cost_usd]).toEqual([30, 2, 1])
})

test('a text that is a JSON object or array is that, any other text is a text', async () => {
  const traceId = crypto.randomUUID()
  const id = crypto.randomUUID()
  await sendBatch(service, [
    event('trace-create', { id: traceId, name: 't', input: '{"city":"Bern"}', output: '{no JSON}' }),
    event('generation-create', {
      ...{ id, traceId, startTime: at(0), endTime: at(1) },
      ...{ input: ' [{"role":"user","content":"é"}] ', output: '"quoted"' },
    }),
  ])
  expect((await tasksOf(service, traceId))[0]).toMatchObject({
    ...{ input: { text: ' [{"role":"user","content":"é"}] ' }, output: { text: '"quoted"' } },
  })
  expect((await runsOf(service, traceId))[0].input).toEqual({ city: 'Bern' })
  await sendBatch(service, [
    event('generation-update', { id, traceId, input: '[{"role":"user","content":"é"}]', output: '{"city":"Bern"}' }),
  ])
  expect((await tasksOf(service, traceId))[0]).toMatchObject({
    ...{ input: { messages: [{ role: 'user', content: 'é' }] }, output: { city: 'Bern' } },
  })
})

test('a score is a value, a label or a text', async () => {
  const traceId = crypto.randomUUID()
  const score = (name: string, body: object) => event('score-create', { traceId, name, ...body })
  const { errors } = await sendBatch(service, [
    score('number', { value: 0.5 }),
    score('boolean', { value: 1, dataType: 'BOOLEAN' }),
    score('category', { value: 'good', dataType: 'CATEGORICAL' }),
    score('words', { value: 'It is good.', dataType: 'TEXT' }),
  ])
  expect(errors).toEqual([])
  const [{ run_id }] = await runsOf(service, traceId)
  const { items } = (await service.api('GET', `/api/v1/runs/${run_id}/scores`)).data
  const kept = items.map(({ name, value, label, text }: Record<string, unknown>) => [name, value, label, text])
  expect(kept.sort()).toEqual([
    ['boolean', true, null, null],
    ['category', null, 'good', null],
    ['number', 0.5, null, null],
    ['words', null, null, 'It is good.'],
  ])
})

test('a later update of the trace changes its run, after its end too', async () => {
  const { traceId, batch } = example()
  await sendBatch(service, batch)
  await sendBatch(service, [
    event('trace-create', { id: traceId, userId: 'u-2', output: 'done', metadata: { more: true } }, 95_000),
  ])
  expect((await runsOf(service, traceId))[0]).toMatchObject({
    ...{ status: 'completed', external_user_id: 'u-2', session_id: 's-1', output: { text: 'done' } },
    metadata: { name: 'support', metadata: { tenant: 7, more: true } },
    version: 2,
  })
  // What an edit would overwrite is what has a version.
  await sendBatch(service, [event('trace-create', { id: traceId, userId: 'u-3' }, 96_000)])
  expect((await runsOf(service, traceId))[0]).toMatchObject({ external_user_id: 'u-3', version: 2 })
})

test('generations that never end count when their trace ends', async () => {
  const traceId = crypto.randomUUID()
  const [root, id] = [crypto.randomUUID(), crypto.randomUUID()]
  await sendBatch(service, [event('span-create', { id: root, traceId, name: 'root', startTime: at(0) })])
  const usage = { input: 5, output: 6, unit: 'TOKENS' }
  await sendBatch(service, [
    event('generation-create', { id, traceId, parentObservationId: root, model: 'm', startTime: at(1), usage }),
  ])
  await sendBatch(service, [
    event('span-update', { id: root, traceId, endTime: at(9), level: 'ERROR', statusMessage: 'no' }),
  ])
  const [run] = await runsOf(service, traceId)
  expect(run).toMatchObject({ status: 'failed', error_message: 'no' })
  const call = (await eventsOf(service, traceId)).find(({ type }: { type: string }) => type === 'llm.call')
  expect(call.payload).toMatchObject({ 'gen_ai.usage.input_tokens': 5, 'gen_ai.usage.output_tokens': 6 })
})

test("with another agent's key a trace makes a run of its own, and changes nothing of the first", async () => {
  const { traceId, batch } = example()
  const [first, second] = [await newAgent(service.api), await newAgent(service.api)]
  await sendBatch(service, batch, first.agentKey)
  // Once its events are counted.
  const before = await eventually(async () => {
    const answer = await service.api('GET', `/api/v1/runs?agent_id=${first.agentId}`)
    return answer.data.items[0].usage.total_tokens > 0 && answer
  })
  const other = batch.map((each) => ({
    ...each,
    id: crypto.randomUUID(),
    timestamp: at(99_000),
    body: { ...each.body, name: 'theirs' },
  }))
  expect((await sendBatch(service, other, second.agentKey)).errors).toEqual([])
  expect((await service.api('GET', `/api/v1/runs?agent_id=${first.agentId}`)).data).toEqual(before.data)
  const [run] = (await service.api('GET', `/api/v1/runs?agent_id=${second.agentId}`)).data.items
  expect(run).toMatchObject({
    external_run_id: traceId,
    parent_run_id: before.data.items[0].run_id,
    status: 'completed',
  })
})

test('an export and the batches about the same run are written one after the other', async () => {
  const traceId = randomHex(16)
  // Written in several parts, between which a batch could be written.
  const spans = Array.from({ length: 2_500 }, () => span({ traceId, parentSpanId: '0707070707070707' }))
  const exporting = sendExport(service, 'traces', inProtobuf(tracesOf(spans)))
  const batches: Promise<unknown>[] = []
  for (let isExported = false; !isExported; ) {
    const batch = [event('span-create', { id: crypto.randomUUID(), traceId, name: 'x', startTime: at(0) })]
    batches.push(sendBatch(service, batch))
    isExported = await Promise.race([exporting.then(() => true), Bun.sleep(10).then(() => false)])
  }
  await Promise.all(batches)
  const { headers } = await exporting
  const { lastSeq } = await sendExport(
    service,
    'traces',
    tracesOf([span({ traceId, parentSpanId: '0707070707070707' })]),
  )
  const [{ run_id }] = await runsOf(service, traceId)
  const { data } = await service.api('POST', '/api/v1/query', {
    query: `select countIf(type = 'observation.updated' and seq between ${headers.get('x-first-seq')} and
      ${headers.get('x-last-seq')}) as between, countIf(type = 'span') as spans from events where run_id = '${run_id}'`,
    wait_for: lastSeq,
  })
  expect(data.rows).toEqual([{ between: 0, spans: 2_501 }])
})
