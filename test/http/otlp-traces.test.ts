import { beforeAll, describe, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import {
  attributesOf,
  eventsOf,
  inProtobuf,
  randomHex,
  runsOf,
  START_MS,
  sendExport,
  span,
  tasksOf,
  tracesOf,
} from '../support/otlp.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

async function runOf(traceId: string) {
  const [{ run_id }] = await runsOf(service, traceId)
  return (await service.api('GET', `/api/v1/runs/${run_id}`)).data
}

/** Waits until all four events of an `agentTrace` are counted. */
function countedRun(traceId: string) {
  return eventually(async () => {
    const run = await runOf(traceId)
    return run.event_count === 4 && run
  })
}

/** A trace of an agent: a root, a model call and a failed tool below it. */
function agentTrace(traceId = randomHex(16)) {
  const root = span({
    traceId,
    name: 'invoke_agent helper',
    attributes: attributesOf({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'helper',
      'gen_ai.input.messages': '[{"role":"user","content":"hi"}]',
      'output.value': 'done',
      'session.id': 'session-1',
      'user.id': 'user-1',
      'tag.tags': 'blue',
    }),
  })
  const model = span({
    traceId,
    parentSpanId: root.spanId,
    name: 'chat m-1',
    attributes: attributesOf({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'm-1',
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 5,
      cost_usd: 0.25,
    }),
  })
  const tool = span({
    traceId,
    parentSpanId: root.spanId,
    name: 'execute_tool search',
    attributes: attributesOf({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'search' }),
    status: { code: 2, message: 'not found' },
    events: [
      { timeUnixNano: `${START_MS + 9}000000`, name: 'exception', attributes: attributesOf({ 'exception.type': 'E' }) },
    ],
  })
  return { traceId, root, model, tool, spans: [model, tool, root] }
}

for (const encoding of ['protobuf', 'JSON'] as const) {
  const send = (data: object, options = {}) =>
    sendExport(service, 'traces', encoding === 'JSON' ? data : inProtobuf(data), options)

  describe(`traces in ${encoding}`, () => {
    test('become a run with tasks and events, of an agent registered by its name', async () => {
      const trace = agentTrace()
      const sent = await send(tracesOf(trace.spans))
      expect([sent.status, sent.body]).toEqual([200, {}])
      expect(sent.headers.get('content-type')).toBe(encoding === 'JSON' ? 'application/json' : 'application/x-protobuf')
      const run = await runOf(trace.traceId)
      expect(run).toMatchObject({
        status: 'completed',
        external_run_id: trace.traceId,
        session_id: 'session-1',
        external_user_id: 'user-1',
        tags: ['blue'],
        metadata: { source: 'opentelemetry', resource: { 'service.name': 'an agent' } },
        input: { messages: [{ role: 'user', content: 'hi' }] },
        output: { text: 'done' },
        started_at: '2026-01-31T09:30:00.000Z',
        completed_at: '2026-01-31T09:30:00.250Z',
        duration_ms: 250,
      })
      expect((await service.api('GET', `/api/v1/agents/${run.agent_id}`)).data).toMatchObject({
        name: 'helper',
        runtime_type: 'external',
      })
      const tasks = await tasksOf(service, trace.traceId)
      const byName = Object.fromEntries(tasks.map((task: { name: string }) => [task.name, task]))
      const root = byName['invoke_agent helper']
      expect(byName).toMatchObject({
        'invoke_agent helper': { status: 'completed', parent_task_id: null },
        'chat m-1': {
          status: 'completed',
          parent_task_id: root.id,
          started_at: '2026-01-31T09:30:00.000Z',
          completed_at: '2026-01-31T09:30:00.250Z',
        },
        'execute_tool search': { status: 'failed', error_message: 'not found', parent_task_id: root.id },
      })
      const events = await eventsOf(service, trace.traceId)
      expect(events.map(({ type, level }: Record<string, string>) => [type, level])).toEqual([
        ['llm.call', 'info'],
        ['exception', 'error'],
        ['tool.call.finished', 'error'],
        ['span', 'info'],
      ])
      expect(events[0].payload).toMatchObject({ 'gen_ai.usage.input_tokens': 10, duration_ms: 250, cost_usd: 0.25 })
    })

    test('are visible in SQL once it has reached X-Last-Seq', async () => {
      const trace = agentTrace()
      const { lastSeq, headers } = await send(tracesOf(trace.spans))
      expect(lastSeq! - Number(headers.get('x-first-seq'))).toBe(3)
      const { data } = await service.api('POST', '/api/v1/query', {
        query: 'select count() as n from events where run_id = {run:UUID}',
        params: { run: (await runOf(trace.traceId)).run_id },
        wait_for: lastSeq,
      })
      expect(Number(data.rows[0].n)).toBe(4)
    })

    test('change nothing when they are sent again', async () => {
      const trace = agentTrace()
      const first = await send(tracesOf(trace.spans))
      const run = await countedRun(trace.traceId)
      expect(run).toMatchObject({ usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 }, cost_usd: 0.25 })
      const tasks = await tasksOf(service, trace.traceId)
      for (let i = 0; i < 2; i++) {
        const again = await send(tracesOf(trace.spans))
        expect([again.status, again.body, again.lastSeq]).toEqual([200, {}, null])
      }
      expect(first.lastSeq).not.toBeNull()
      expect(await tasksOf(service, trace.traceId)).toEqual(tasks)
      expect(await eventsOf(service, trace.traceId)).toHaveLength(4)
      // Events are counted in order: once these are, the repeats would have been.
      const later = agentTrace()
      await send(tracesOf(later.spans))
      await countedRun(later.traceId)
      expect(await runOf(trace.traceId)).toEqual(run)
    })

    test('whose child spans arrive first are running until the root span arrives', async () => {
      const { traceId, root, model, tool } = agentTrace()
      await send(tracesOf([model]))
      expect(await runOf(traceId)).toMatchObject({ status: 'running', completed_at: null, tags: [], version: 1 })
      await send(tracesOf([{ ...root, startTimeUnixNano: `${START_MS - 100}000000` }]))
      const run = await runOf(traceId)
      expect(run).toMatchObject({ status: 'completed', duration_ms: 350, input: { messages: [{}] } })
      expect(run).toMatchObject({ tags: ['blue'], version: 2 })
      await send(tracesOf([tool]))
      expect((await runOf(traceId)).status).toBe('completed')
      expect(await tasksOf(service, traceId)).toHaveLength(3)
    })

    test('with a failed root span fail the run', async () => {
      const root = span({ status: { code: 2, message: 'broke' } })
      await send(tracesOf([root]))
      expect(await runOf(root.traceId as string)).toMatchObject({ status: 'failed', error_message: 'broke' })
    })

    test('are accepted in gzip', async () => {
      const root = span()
      const data = tracesOf([root])
      const body = encoding === 'JSON' ? Buffer.from(JSON.stringify(data)) : inProtobuf(data)
      const sent = await sendExport(service, 'traces', Bun.gzipSync(Uint8Array.from(body)), {
        headers: {
          'content-encoding': 'gzip',
          'content-type': encoding === 'JSON' ? 'application/json' : 'application/x-protobuf',
        },
      })
      expect(sent.status).toBe(200)
      expect(await runOf(root.traceId as string)).toMatchObject({ status: 'completed' })
    })
  })
}

describe('agents', () => {
  test('a nested agent gets a child run', async () => {
    const trace = agentTrace()
    const nested = span({
      traceId: trace.traceId,
      parentSpanId: trace.root.spanId,
      attributes: attributesOf({ 'openinference.span.kind': 'AGENT', 'gen_ai.agent.name': 'sub', 'input.value': 'q' }),
    })
    await sendExport(service, 'traces', tracesOf([nested, ...trace.spans]))
    const parent = (await runsOf(service, trace.traceId)).find(
      (run: { parent_run_id: string }) => run.parent_run_id === null,
    )
    const { data } = await service.api('GET', `/api/v1/runs/${parent.run_id}/children?include=input`)
    expect(data.items).toMatchObject([{ status: 'completed', parent_run_id: parent.run_id, input: { text: 'q' } }])
    expect((await service.api('GET', `/api/v1/agents/${data.items[0].agent_id}`)).data.name).toBe('sub')
  })

  test('an existing external agent of that name is used, not registered again', async () => {
    const created = await service.api('POST', '/api/v1/agents', { name: 'made by hand' })
    const root = span()
    await sendExport(service, 'traces', tracesOf([root], { 'service.name': 'made by hand' }))
    expect((await runOf(root.traceId as string)).agent_id).toBe(created.data.agent_id)
  })

  test('of a service without a name are named by the trace, the function or the root span', async () => {
    const unnamed = { 'service.name': 'unknown_service:node' }
    const nameFor = async (attributes: Record<string, string>, resource: Record<string, string>) => {
      const root = span({ name: 'weather root' })
      const child = span({ traceId: root.traceId, parentSpanId: root.spanId, attributes: attributesOf(attributes) })
      await sendExport(service, 'traces', tracesOf([child, root], resource))
      const { agent_id } = await runOf(root.traceId as string)
      return (await service.api('GET', `/api/v1/agents/${agent_id}`)).data.name
    }
    expect(await nameFor({}, unnamed)).toBe('weather root')
    expect(await nameFor({}, {})).toBe('weather root')
    expect(await nameFor({ 'ai.telemetry.functionId': 'weather-fn' }, unnamed)).toBe('weather-fn')
    expect(await nameFor({ 'langfuse.trace.name': 'weather trace' }, unnamed)).toBe('weather trace')
    expect(await nameFor({}, { ...unnamed, 'openinference.project.name': 'weather project' })).toBe('weather project')
    expect(await nameFor({ 'ai.telemetry.functionId': 'weather-fn' }, { 'service.name': 'a service' })).toBe(
      'a service',
    )
  })

  test('an agent key reports for its agent, whatever names the spans have', async () => {
    const { agentId, agentKey } = await newAgent(service.api)
    const trace = agentTrace()
    await sendExport(service, 'traces', tracesOf(trace.spans), { key: agentKey })
    expect((await runOf(trace.traceId)).agent_id).toBe(agentId)
  })

  test('that share a trace, each with its own key, get a run each, also across days', async () => {
    const [first, second] = [await newAgent(service.api), await newAgent(service.api)]
    const { traceId, root, model, tool } = agentTrace()
    const nextDay = {
      ...tool,
      startTimeUnixNano: `${START_MS + 86_400_000}000000`,
      endTimeUnixNano: `${START_MS + 86_401_000}000000`,
    }
    for (let i = 0; i < 2; i++) {
      await sendExport(service, 'traces', tracesOf([model]), { key: first.agentKey })
      await sendExport(service, 'traces', tracesOf([nextDay]), { key: second.agentKey })
      await sendExport(service, 'traces', tracesOf([root]), { key: first.agentKey })
    }
    const runs = await runsOf(service, traceId)
    expect(runs.map((run: { agent_id: string }) => run.agent_id).sort()).toEqual([first.agentId, second.agentId].sort())
    const tasks = await Promise.all(
      runs.map(({ run_id }: { run_id: string }) => service.api('GET', `/api/v1/runs/${run_id}/tasks`)),
    )
    expect(tasks.map(({ data }) => data.items.length).sort()).toEqual([1, 2])
  })

  test('above the limit are rejected with the reason, while existing ones still report', async () => {
    const small = await startTestService({}, { bounds: { limits: { otlp_agents: 1 } } })
    const send = (name: string) => sendExport(small, 'traces', tracesOf([span()], { 'service.name': name }))
    expect((await send('one')).body).toEqual({})
    expect((await send('two')).body).toMatchObject({
      partialSuccess: { rejectedSpans: '1', errorMessage: expect.stringContaining('agent "two" is not registered') },
    })
    expect((await send('one')).body).toEqual({})
    await small.stop()
  })
})
