import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { type HostedAgent, newHostedAgent, OutputReader, untilStatus } from '../support/hosted.ts'
import { type ModelServer, startModelServer } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { startToolServer } from '../support/tool-server.ts'
import { usageRecord } from '../support/usage.ts'

/** Invoking with `stream: true`: the frames of the output stream (docs/hosted-agents.md#output-streams). */

let service: TestService
let model: ModelServer
let agent: HostedAgent
let toolAgent: HostedAgent
/** Responses of the tool server by tool name; by default it echoes the arguments. */
const tools = new Map<string, () => unknown>()

beforeAll(async () => {
  model = startModelServer()
  service = await startTestService({ OPENAI_BASE_URL: model.url, EGRESS_ALLOW: '127.0.0.1' })
  const server = startToolServer(({ tool, input }) => tools.get(tool)?.() ?? input)
  agent = await newHostedAgent(service)
  toolAgent = await newHostedAgent(service, {
    allow_input_requests: true,
    tools: ['alpha', 'beta'].map((name) => server.tool(name)),
  })
})

beforeEach(() => {
  model.script({})
  tools.clear()
})

const call = (name: string, args: unknown, id = `call_${name}`) => ({ name, arguments: args, id })

describe('a stream', () => {
  test('has one frame per text chunk of the model, and one for the end', async () => {
    const text = ['Hel', 'lo, ', '', 'wörld', ' 🎉', '\n\ndata: x\r', '!']
    model.script({ text, usage: [3, 4] })
    const reader = await agent.stream()
    expect(reader.status).toBe(200)
    expect(Object.fromEntries(reader.response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    })
    const frames = await reader.all()
    const run_id = await reader.runId()
    expect(reader.of('chunk').map(({ data }) => data.delta)).toEqual(text.filter((piece) => piece !== ''))
    let offset = 0
    for (const { data } of reader.of('chunk')) {
      expect(data).toEqual({ run_id, delta: data.delta, step: 1, offset })
      offset += data.delta.length
    }
    expect(frames.at(-1)).toEqual({
      id: '1.2.0',
      event: 'done',
      data: {
        run_id,
        output: { text: text.join('') },
        session_id: null,
        status: 'completed',
        usage: usageRecord(3, 4),
      },
    })
    expect(new Set(frames.map(({ id }) => id)).size).toBe(frames.length)
    expect(model.requests.at(-1)!.body).toMatchObject({ stream: true, stream_options: { include_usage: true } })
  })

  test('forwards slow tokens as they arrive', async () => {
    const isRead = Promise.withResolvers<void>()
    // The first event names the role.
    model.script({ text: ['a', 'b', 'c'], after: (sent) => (sent === 2 ? isRead.promise : undefined) })
    const reader = await agent.stream()
    await reader.until(() => reader.textOf() === 'a')
    expect(reader.ended).toBeUndefined()
    expect((await service.api('GET', `/api/v1/runs/${await reader.runId()}`)).data.status).toBe('running')
    isRead.resolve()
    await reader.all()
    expect(reader.textOf()).toBe('abc')
  })

  test('sends its headers before the model has sent anything', async () => {
    model.script({ hangs: true })
    const reader = await agent.stream()
    await reader.until(() => reader.comments.length > 0)
    expect([reader.status, reader.frames]).toEqual([200, []])
    reader.close()
  })

  test('restarts the text when a truncated model response is retried', async () => {
    const isRead = Promise.withResolvers<void>()
    model.script([{ text: ['Once', ' upon'], cutAfter: 3, cutWhen: isRead.promise }, { text: ['Another', ' story'] }])
    const reader = await agent.stream()
    await reader.until(() => reader.textOf() === 'Once upon')
    isRead.resolve()
    await reader.all()
    const texts: string[] = []
    for (const { data } of reader.of('chunk')) {
      if (data.offset === 0) texts.push('')
      expect(data.offset).toBe(texts.at(-1)!.length)
      texts.push(texts.pop()! + data.delta)
    }
    expect(texts).toEqual(['Once upon', 'Another story'])
    expect(reader.textOf()).toBe('Another story')
    expect(reader.frames.at(-1)!.data.output).toEqual({ text: 'Another story' })
  })

  test('ends with an error frame that has the provider message', async () => {
    model.script({ status: 403, errorCode: 'not_allowed' })
    const [frame, ...more] = await (await agent.stream()).all()
    expect(more).toEqual([])
    expect(frame).toMatchObject({
      event: 'error',
      data: {
        run_id: expect.any(String),
        code: 'model_failed',
        message: 'the model provider answered 403: The script of the test wants this error (not_allowed)',
        status: 'failed',
      },
    })
  })

  test('of a timed out run ends with an error frame, even after some text', async () => {
    const slow = await newHostedAgent(service, { timeout_seconds: 1 })
    model.script({ text: ['a', 'b', 'c'], intervalMs: 700 })
    const reader = await slow.stream()
    const frames = await reader.all()
    expect(frames.at(-1)).toMatchObject({ event: 'error', data: { code: 'timeout', status: 'timed_out' } })
    expect(reader.textOf()).toStartWith('a')
  })

  test('of a refusal has only the error frame', async () => {
    model.script({ refusal: 'No.' })
    const frames = await (await agent.stream()).all()
    expect(frames.map(({ event, data }) => [event, data.message])).toEqual([['error', 'the model refused: No.']])
  })

  test('that the client closes does not stop the run', async () => {
    model.script({ text: ['a', 'b', 'c', 'd'], intervalMs: 50 })
    const reader = await agent.stream()
    const runId = await reader.runId()
    reader.close()
    const run = await untilStatus(service, runId, 'completed')
    expect(run.output).toEqual({ text: 'abcd' })
  })

  test('ends immediately when its key is revoked; the run continues', async () => {
    const { data } = await service.api('POST', '/api/v1/keys', { name: 'a' })
    model.script({ text: ['a', 'b'], intervalMs: 150 })
    const mine = await agent.stream({}, { key: data.key })
    const runId = await mine.runId()
    const other = await OutputReader.ofRun(service, runId)
    await service.api('POST', `/api/v1/keys/${data.key_id}/revoke`, {})
    await eventually(() => mine.ended !== undefined)
    expect(mine.of('done')).toEqual([])
    expect((await other.all()).at(-1)!.event).toBe('done')
    expect((await OutputReader.ofRun(service, runId, { key: data.key })).status).toBe(401)
  })
})

describe('tool calls in a stream', () => {
  test('have started and finished frames with input and output, between the texts of the steps', async () => {
    model.script([{ text: 'Let me see. ', toolCalls: [call('alpha', { n: 1 })] }, { text: 'One.' }])
    const reader = await toolAgent.stream()
    const frames = await reader.all()
    const about = { tool_call_id: 'call_alpha', name: 'alpha' }
    const run_id = await reader.runId()
    expect(reader.of('tool').map(({ data }) => data)).toEqual([
      { run_id, ...about, phase: 'started', input: { n: 1 } },
      { run_id, ...about, phase: 'finished', output: { n: 1 }, duration_ms: expect.any(Number) },
    ])
    expect(frames.map(({ event }) => event)).toEqual(['chunk', 'chunk', 'chunk', 'tool', 'tool', 'chunk', 'done'])
    expect([reader.textOf(1), reader.textOf(2)]).toEqual(['Let me see. ', 'One.'])
    expect(Number.isInteger(reader.of('tool')[1]!.data.duration_ms)).toBe(true)
    expect(frames.at(-1)!.data.output).toEqual({ text: 'One.' })
  })

  test('of one model turn run concurrently, and each is reported once', async () => {
    const both = Promise.withResolvers<void>()
    let here = 0
    for (const name of ['alpha', 'beta'])
      tools.set(name, async () => {
        if (++here === 2) both.resolve()
        await both.promise
        return { name }
      })
    model.script([{ toolCalls: [call('alpha', { n: 1 }), call('beta', { n: 2 })] }, { text: 'Both.' }])
    const reader = await toolAgent.stream()
    await reader.all()
    const told = reader.of('tool').map(({ data }) => `${data.name} ${data.phase}`)
    expect(told.slice(0, 2)).toEqual(['alpha started', 'beta started'])
    expect(told.slice(2).sort()).toEqual(['alpha finished', 'beta finished'])
    const [, , first, second] = model.requests.at(-1)!.body.messages.slice(-4)
    expect([first, second]).toEqual([
      { role: 'tool', tool_call_id: 'call_alpha', content: '{"name":"alpha"}' },
      { role: 'tool', tool_call_id: 'call_beta', content: '{"name":"beta"}' },
    ])
  })

  test('are reported in the order of frame ids, even when many end together', async () => {
    const toolCalls = Array.from({ length: 16 }, (_, n) => call('alpha', { n }, `call_${n}`))
    model.script([{ toolCalls }, { text: 'Done.' }])
    const reader = await toolAgent.stream()
    await reader.all()
    const positions = reader.of('tool').map(({ id }) => Number(id.split('.')[2]))
    expect(positions).toEqual(Array.from({ length: 32 }, (_, n) => n + 1))
  })

  test('that fail are reported, and the model continues with the error', async () => {
    tools.set('alpha', () => new Response('no such thing', { status: 404 }))
    model.script([{ toolCalls: [call('alpha', { n: 1 })] }, { text: 'It failed.' }])
    const reader = await toolAgent.stream()
    await reader.all()
    expect(reader.of('tool').at(-1)!.data).toMatchObject({
      phase: 'failed',
      output: { error: 'HTTP 404: no such thing' },
    })
    expect(model.requests.at(-1)!.body.messages.at(-1)!.content).toBe('{"error":"HTTP 404: no such thing"}')
    expect(reader.frames.at(-1)!.event).toBe('done')
  })

  test.each<[string, string, unknown, RegExp]>([
    ['an unknown tool', 'gamma', { n: 1 }, /there is no tool "gamma"; there are: request_input, alpha, beta/],
    ['arguments that are not JSON', 'alpha', '{"n":', /JSON/],
    ['arguments that are not an object', 'alpha', '[1]', /object/],
    ['arguments of the wrong type', 'alpha', { n: 'one' }, /n: .*number/],
    ['missing arguments', 'alpha', {}, /n/],
  ])('with %s are not made, and the model gets the error', async (_what, name, args, problem) => {
    let calls = 0
    for (const each of ['alpha', 'beta'])
      tools.set(each, () => {
        calls++
        return {}
      })
    model.script([{ toolCalls: [call(name, args)] }, { text: 'Sorry.' }])
    const reader = await toolAgent.stream()
    await reader.all()
    expect(reader.of('tool')).toHaveLength(1)
    expect(reader.of('tool')[0]!.data).toMatchObject({ name, phase: 'failed' })
    expect(reader.of('tool')[0]!.data.output.error).toMatch(problem)
    expect(JSON.parse(model.requests.at(-1)!.body.messages.at(-1)!.content!).error).toMatch(problem)
    expect([calls, reader.frames.at(-1)!.data.output]).toEqual([0, { text: 'Sorry.' }])
  })
})
