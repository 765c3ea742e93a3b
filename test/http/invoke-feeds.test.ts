import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { type Activity, LiveStream } from '../support/feeds.ts'
import { type HostedAgent, newHostedAgent } from '../support/hosted.ts'
import { eventsOf, type StoredEvent } from '../support/hosted-rig.ts'
import { type ModelServer, startModelServer } from '../support/model-server.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'
import { startToolServer } from '../support/tool-server.ts'

/**
 * The system events of a hosted run appear in its events, feeds and SQL like those of any other run
 * (docs/events.md#system-events).
 */

let service: TestService
let model: ModelServer
let agent: HostedAgent

beforeAll(async () => {
  model = startModelServer()
  service = await startTestService({
    OPENAI_BASE_URL: model.url,
    EGRESS_ALLOW: '127.0.0.1',
    MODEL_PRICES: JSON.stringify({ m: { input: 100, output: 1_000 } }),
  })
  const tools = [startToolServer(({ input }) => input).tool('count')]
  agent = await newHostedAgent(service, { allow_input_requests: true, tools })
})

beforeEach(() => model.script({}))

const toolCalls = (...numbers: number[]) => numbers.map((n) => ({ name: 'count', arguments: { n }, id: `call_${n}` }))

/** The feed of the run from the beginning; it ends when the run has ended. */
async function feedOf(runId: string): Promise<Activity[]> {
  const stream = await LiveStream.open(service, `/api/v1/runs/${runId}/stream?after=0`)
  expect(await stream.untilEnded()).toBe('clean')
  return stream.items
}

const query = (text: string, params: object) => rowsInSql(service.api, text, { params })

/** Expects these event types in the events API, the feed and SQL, in the same order. @returns the events */
async function expectEverywhere(runId: string, types: readonly string[]): Promise<StoredEvent[]> {
  const events = await eventsOf(service, runId, types.at(-1)!)
  expect(events.map(({ type }) => type)).toEqual([...types])
  const ids = events.map(({ id }) => id)
  const feed = await feedOf(runId)
  expect(feed.filter(({ kind }) => kind === 'event').map(({ event }) => event!.id)).toEqual(ids)
  await eventually(async () => {
    const rows = await query('select event_id, type from events where run_id = {run:UUID} order by seq', { run: runId })
    expect(rows.map(({ event_id }) => event_id)).toEqual(ids)
  })
  return events
}

describe('a completed run', () => {
  test('reports every step exactly once and in order in its events, its feed and SQL', async () => {
    model.script([
      { text: 'Both.', toolCalls: toolCalls(1, 2), usage: [10, 1] },
      { toolCalls: toolCalls(3), usage: [20, 2] },
      { text: 'Six.', usage: [30, 3] },
    ])
    const live = await LiveStream.open(service, `/api/v1/stream?agent_id=${agent.agentId}`)
    const { data } = await agent.invoke({ input: { message: 'Count.' } })
    const tool = ['tool.call.started', 'tool.call.finished']
    const events = await expectEverywhere(data.run_id, [
      'run.started',
      'llm.call',
      'tool.call.started',
      ...tool,
      'tool.call.finished',
      'llm.call',
      ...tool,
      'llm.call',
      'run.completed',
    ])
    const ids = events.map(({ id }) => id)
    const liveIds = () => live.items.filter(({ kind }) => kind === 'event').map(({ event }) => event!.id)
    await live.until(() => liveIds().length >= ids.length)
    expect(liveIds()).toEqual(ids)
    await live.close()

    const feed = await feedOf(data.run_id)
    expect(feed[0]).toMatchObject({ kind: 'run', run: { status: 'running' } })
    expect(feed.at(-1)).toMatchObject({ kind: 'run', run: { status: 'completed', usage: { total_tokens: 66 } } })
    expect(feed.filter(({ kind }) => kind === 'run')).toHaveLength(2)
    expect(feed).toHaveLength(events.length + 2)

    await eventually(async () => {
      const rows = await query(
        `select status, trigger_type, input.message as message, output.text as text, input_tokens, output_tokens,
          round(cost_usd, 6) as cost_usd, error_message, parent_run_id from runs where run_id = {run:UUID}`,
        { run: data.run_id },
      )
      expect(rows).toEqual([
        {
          status: 'completed',
          trigger_type: 'sdk',
          message: 'Count.',
          text: 'Six.',
          input_tokens: 60,
          output_tokens: 6,
          cost_usd: 0.012,
          error_message: null,
          parent_run_id: null,
        },
      ])
    })
  })

  test('uses the OpenTelemetry names for models, tools, tokens and outcomes', async () => {
    model.script([{ toolCalls: toolCalls(7), usage: [10, 2] }, { text: 'Seven.' }])
    const { data } = await agent.invoke()
    const events = await expectEverywhere(data.run_id, [
      'run.started',
      'llm.call',
      'tool.call.started',
      'tool.call.finished',
      'llm.call',
      'run.completed',
    ])
    expect(events[1]!.payload).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'm',
      'gen_ai.response.model': 'm',
      'gen_ai.response.id': expect.stringMatching(/^chatcmpl-/),
      'gen_ai.response.finish_reasons': ['tool_calls'],
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 2,
      cost_usd: 0.003,
      step: 1,
      tool_calls: 1,
    })
    const about = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'count',
      'gen_ai.tool.call.id': 'call_7',
    }
    expect(events[2]!.payload).toEqual({ ...about, step: 1, input: { n: 7 } })
    expect(events[3]!.payload).toEqual({
      ...about,
      step: 1,
      status: 'finished',
      output: { n: 7 },
      latency_ms: expect.any(Number),
    })
    expect(events[5]!.payload).toMatchObject({ steps: 2, tool_calls: 1 })
    expect(events.every(({ level }) => level === 'info')).toBe(true)
  })
})

test('a failed run reports the reason at level error, and a failed tool call at level warn', async () => {
  model.script([{ toolCalls: [{ name: 'none', arguments: {} }] }, { status: 400 }])
  const { data } = await agent.invoke()
  const events = await expectEverywhere(data.run_id, ['run.started', 'llm.call', 'tool.call.finished', 'run.failed'])
  expect(events[2]).toMatchObject({ level: 'warn', payload: { status: 'failed', 'gen_ai.tool.name': 'none' } })
  expect(events[3]).toMatchObject({
    level: 'error',
    payload: { error_message: data.error_message, error_detail: { reason: 'model_failed' } },
  })
  await eventually(async () => {
    const rows = await query('select status, error_message from runs where run_id = {run:UUID}', { run: data.run_id })
    expect(rows).toEqual([{ status: 'failed', error_message: data.error_message }])
  })
})

test('a cancelled run reports run.cancelled with the reason', async () => {
  model.script({ hangs: true })
  const { data } = await agent.invoke({ background: true })
  await service.api('POST', `/api/v1/runs/${data.run_id}/cancel`, { reason: 'enough' })
  const [, cancelled] = await expectEverywhere(data.run_id, ['run.started', 'run.cancelled'])
  expect(cancelled).toMatchObject({ level: 'warn', payload: { error_message: 'enough' } })
})

test('a run with an input request reports question and answer, and its feed stays open during the pause', async () => {
  model.script([{ toolCalls: [{ name: 'request_input', arguments: { question: 'Which?' } }] }, { text: 'That.' }])
  const { data } = await agent.invoke()
  const { request_id } = data.awaiting_input
  const feed = await LiveStream.open(service, `/api/v1/runs/${data.run_id}/stream?after=0`)
  await feed.until(() => feed.items.some(({ run }) => run?.status === 'awaiting_input'))
  expect(feed.ended).toBeUndefined()
  await service.api('POST', `/api/v1/input-requests/${request_id}/answer`, { answer: 'This.' })
  const events = await expectEverywhere(data.run_id, [
    'run.started',
    'llm.call',
    'input.requested',
    'run.paused',
    'input.answered',
    'tool.call.finished',
    'llm.call',
    'run.completed',
  ])
  expect(events[2]!.payload).toMatchObject({ request_id, question: 'Which?' })
  expect(events[4]!.payload).toMatchObject({ request_id, question: 'Which?', answer: 'This.' })
  await feed.untilEnded()
  const states = feed.items.filter(({ kind }) => kind === 'run').map(({ run }) => run!.status)
  expect(states).toEqual(['running', 'awaiting_input', 'running', 'completed'])
  const seen = feed.items.map(({ event, run }) => event?.type ?? `run ${run?.status}`)
  expect(seen.slice(4, 8)).toEqual(['run.paused', 'run awaiting_input', 'input.answered', 'run running'])
})
