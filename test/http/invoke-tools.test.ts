import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { type HostedAgent, newHostedAgent } from '../support/hosted.ts'
import { type McpCall, startMcpServer, textResult, tool } from '../support/mcp-server.ts'
import {
  bySteps,
  type ModelServer,
  type ModelServerRequest,
  startModelServer,
  type Turn,
} from '../support/model-server.ts'
import { freePort, startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** Tools of hosted agents, from the model's call to the result it gets (docs/hosted-agents.md#tools). */

let service: TestService
let model: ModelServer
let toolUrl: string
/** The requests the tool server has received, and how it answers. */
const asked: { method: string; url: URL; headers: Headers; text: string }[] = []
let answer: (request: Request) => Promise<Response> | Response

beforeAll(async () => {
  model = startModelServer()
  service = await startTestService({ OPENAI_BASE_URL: model.url, EGRESS_ALLOW: '127.0.0.1' })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { method, headers } = request
      asked.push({ method, url: new URL(request.url), headers, text: await request.clone().text() })
      return answer(request)
    },
  })
  atEnd(() => server.stop(true))
  toolUrl = `http://127.0.0.1:${server.port}/orders?tenant=7`
})

beforeEach(() => {
  model.script({})
  asked.length = 0
  answer = async (request) => Response.json({ echo: await request.text() })
})

const http = (more: object = {}) => ({
  type: 'http',
  name: 'order',
  description: 'Places an order.',
  parameters: { type: 'object', properties: { item: { type: 'string' }, n: { type: 'integer' } }, required: ['item'] },
  method: 'POST',
  url: toolUrl,
  ...more,
})
const toolCall = (name: string, args: unknown): Turn => ({ toolCalls: [{ name, arguments: args, id: `call_${name}` }] })
/** The last tool result sent to the model. */
const lastToolResult = () => model.requests.at(-1)!.body.messages.findLast(({ role }) => role === 'tool')!.content
const runsWith = async (query: string) => (await service.api('GET', `/api/v1/runs?${query}`)).data.items

describe('an http tool', () => {
  test('is offered to the model and called with its arguments and an Idempotency-Key, and returns its response', async () => {
    const agent = await newHostedAgent(service, { tools: [http()] })
    model.script([toolCall('order', { item: 'tea', n: 2 }), { text: 'Ordered.' }])
    const { data } = await agent.invoke({ input: { message: 'Order tea.' } })
    expect(data.output).toEqual({ text: 'Ordered.' })
    expect(model.requests.at(-1)!.body.tools).toMatchObject([
      { type: 'function', function: { name: 'order', description: 'Places an order.' } },
    ])
    expect(asked).toHaveLength(1)
    const [{ method, url, headers, text }] = asked as [(typeof asked)[0]]
    expect([method, url.pathname + url.search, text]).toEqual(['POST', '/orders?tenant=7', '{"item":"tea","n":2}'])
    expect(headers.get('idempotency-key')).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers.get('authorization')).toBeNull()
    expect(lastToolResult()).toBe('{"echo":"{\\"item\\":\\"tea\\",\\"n\\":2}"}')
    expect(model.requests.at(-1)!.body.messages.slice(2)).toMatchObject([
      {
        role: 'assistant',
        tool_calls: [{ id: 'call_order', function: { name: 'order', arguments: '{"item":"tea","n":2}' } }],
      },
      { role: 'tool', tool_call_id: 'call_order' },
    ])
  })

  test('gets a different Idempotency-Key for each call', async () => {
    const agent = await newHostedAgent(service, { tools: [http()] })
    const calls = [1, 2, 3].map((n) => ({ name: 'order', arguments: { item: `${n}` } }))
    model.script([{ toolCalls: calls }, toolCall('order', { item: '4' }), {}])
    await agent.invoke()
    expect(new Set(asked.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(4)
  })

  test('sends a secret that does not appear in model requests, events, runs or streams', async () => {
    const secret = `s3cr3t-${crypto.randomUUID()}`
    await service.api('PUT', '/api/v1/secrets/ORDER_TOKEN', { value: secret })
    const headers = { authorization: 'Bearer {{secret:ORDER_TOKEN}}' }
    const agent = await newHostedAgent(service, { tools: [http({ headers })] })
    answer = (request) => Response.json({ you_sent: request.headers.get('authorization') })
    model.script([toolCall('order', { item: 'tea' }), { text: 'Ordered.' }])
    const reader = await agent.stream()
    const runId = await reader.runId()
    await reader.all()
    expect(asked[0]!.headers.get('authorization')).toBe(`Bearer ${secret}`)
    expect(lastToolResult()).toBe('{"you_sent":"Bearer •••"}')
    const seen = [
      JSON.stringify([reader.frames, model.requests]),
      (await service.api('GET', `/api/v1/runs/${runId}`)).text,
      (await service.api('GET', `/api/v1/runs/${runId}/events`)).text,
    ]
    for (const text of seen) expect(text).not.toContain(secret)
  })

  test('cannot reach a local address without EGRESS_ALLOW, and the model gets the reason', async () => {
    const closed = await startTestService({ OPENAI_BASE_URL: model.url })
    const agent = await newHostedAgent(closed, { tools: [http()] })
    model.script([toolCall('order', { item: 'tea' }), { text: 'I could not.' }])
    const { data } = await agent.invoke()
    expect(data.status).toBe('completed')
    expect(lastToolResult()).toMatch(/127\.0\.0\.1.*EGRESS_ALLOW/)
    expect(asked).toEqual([])
    await closed.stop()
  })

  test('that is slow is aborted when its run times out', async () => {
    const agent = await newHostedAgent(service, { tools: [http()], timeout_seconds: 1 })
    const given = Promise.withResolvers<void>()
    answer = (request) => {
      request.signal.addEventListener('abort', () => given.resolve())
      return new Promise(() => {})
    }
    model.script(bySteps([toolCall('order', { item: 'tea' }), {}]))
    const { data } = await agent.invoke()
    expect(data).toMatchObject({ status: 'timed_out', error_detail: { reason: 'timeout' } })
    await given.promise
    expect(asked).toHaveLength(1)
  })
})

describe('an agent as a tool', () => {
  /** A parent whose tool `ask` is the other agent. */
  const parentOf = (child: Pick<HostedAgent, 'agentId'>, more: object = {}) =>
    newHostedAgent(service, {
      model: 'parent',
      tools: [{ type: 'agent', name: 'ask', description: 'Asks.', agent_id: child.agentId }],
      ...more,
    })
  /** Turns by model name, one per step. */
  const script = (turns: Record<string, readonly Turn[]>) =>
    model.script((request: ModelServerRequest, count) => {
      const choose = bySteps(turns[request.body.model] ?? [{}]) as (request: ModelServerRequest, count: number) => Turn
      return choose(request, count)
    })

  test('runs as a child run, and the model gets its output', async () => {
    const child = await newHostedAgent(service, { model: 'child', prompt: 'You are {{ROLE}}.' })
    const parent = await parentOf(child)
    const args = { message: 'How many?', ROLE: 'a clerk' }
    script({ parent: [toolCall('ask', args), { text: 'Four.' }], child: [{ text: '4', usage: [3, 1] }] })
    const { data } = await parent.invoke()
    expect(data.output).toEqual({ text: 'Four.' })
    expect(lastToolResult()).toBe('{"text":"4"}')
    const [run, ...others] = (await service.api('GET', `/api/v1/runs/${data.run_id}/children?include=input,output`))
      .data.items
    expect(others).toEqual([])
    expect(run).toMatchObject({
      agent_id: child.agentId,
      parent_run_id: data.run_id,
      status: 'completed',
      input: args,
      output: { text: '4' },
      usage: { total_tokens: 4 },
    })
    const asked = model.requests.find(({ body }) => body.model === 'child')!.body.messages
    expect(asked.map(({ content }) => content)).toEqual(['You are a clerk.', 'How many?'])
  })

  test('that fails, is paused or deleted returns an error to the model, which continues', async () => {
    const child = await newHostedAgent(service, { model: 'child' })
    const parent = await parentOf(child)
    script({ parent: [toolCall('ask', { message: 'x' }), { text: 'No luck.' }], child: [{ status: 400 }] })
    expect((await parent.invoke()).data.output).toEqual({ text: 'No luck.' })
    expect(lastToolResult()).toBe(
      `{"error":"the agent's run ended as failed: the model provider answered 400: The script of the test wants this error (scripted_error)"}`,
    )
    await service.api('PATCH', `/api/v1/agents/${child.agentId}`, { status: 'paused' })
    expect((await parent.invoke()).data.status).toBe('completed')
    expect(lastToolResult()).toBe('{"error":"the agent is paused"}')
    await service.api('DELETE', `/api/v1/agents/${child.agentId}`)
    expect((await parent.invoke()).data.status).toBe('completed')
    expect(lastToolResult()).toBe('{"error":"the agent does not exist"}')
  })

  test('with an input_schema is offered with it, and other arguments return an error naming the place', async () => {
    const input_schema = { properties: { city: { enum: ['Lima'] } }, required: ['city'], additionalProperties: false }
    const child = await newHostedAgent(service, { model: 'child', input_schema })
    const parent = await parentOf(child)
    script({
      parent: [
        toolCall('ask', { message: 'x' }),
        toolCall('ask', { city: 'Rome' }),
        toolCall('ask', { city: 'Lima' }),
        {},
      ],
      child: [{ text: 'Sunny.' }],
    })
    await parent.invoke()
    const asked = model.requests.findLast(({ body }) => body.model === 'parent')!.body
    expect(asked.tools![0]).toMatchObject({
      function: { name: 'ask', parameters: { type: 'object', ...input_schema } },
    })
    expect(asked.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)).toEqual([
      expect.stringContaining("must have required property 'city'"),
      expect.stringContaining('city: must be equal to one of the allowed values'),
      '{"text":"Sunny."}',
    ])
  })

  test('with a missing prompt variable returns an error naming it', async () => {
    const parent = await parentOf(await newHostedAgent(service, { prompt: 'You are {{ROLE}}.' }))
    script({ parent: [toolCall('ask', { message: 'x' }), {}] })
    await parent.invoke()
    expect(lastToolResult()).toContain('{{ROLE}}')
  })

  test('whose filled prompt would be gigabytes returns an error with the limit', async () => {
    const parent = await parentOf(await newHostedAgent(service, { prompt: '{{A}}'.repeat(100_000) }))
    script({ parent: [toolCall('ask', { message: 'x', A: 'x'.repeat(20_000) }), {}] })
    await parent.invoke()
    expect(lastToolResult()).toBe(
      `{"error":"arguments: the agent's prompt, filled in, may have at most 1000000 characters"}`,
    )
  })

  test('that calls itself stops at the maximum depth, and every run above completes', async () => {
    const agent = await newHostedAgent(service, { model: 'parent' })
    const tools = [{ type: 'agent', name: 'ask', description: 'Asks.', agent_id: agent.agentId }]
    await service.api('PATCH', `/api/v1/agents/${agent.agentId}`, { tools })
    script({ parent: [toolCall('ask', { message: 'deeper' }), { text: 'Back.' }] })
    const { data } = await agent.invoke()
    expect(data).toMatchObject({ status: 'completed', output: { text: 'Back.' } })
    const runs = await runsWith(`agent_id=${agent.agentId}`)
    expect(runs).toHaveLength(9)
    expect(new Set(runs.map(({ status }: { status: string }) => status))).toEqual(new Set(['completed']))
    const told = model.requests.flatMap(({ body }) => body.messages).map(({ content }) => `${content}`)
    expect(told.some((text) => text.includes('more than 8 levels deep'))).toBe(true)
  })

  test('that is cancelled returns an error to the model of its parent', async () => {
    const child = await newHostedAgent(service, { model: 'child' })
    const parent = await parentOf(child)
    script({ parent: [toolCall('ask', { message: 'x' }), { text: 'Never mind.' }], child: [{ hangs: true }] })
    const waiting = parent.invoke()
    const [below] = await eventually(async () => {
      const runs = await runsWith(`agent_id=${child.agentId}`)
      return runs.length === 1 && runs
    })
    await service.api('POST', `/api/v1/runs/${below.run_id}/cancel`, { reason: 'enough' })
    expect((await waiting).data.output).toEqual({ text: 'Never mind.' })
    expect(lastToolResult()).toBe(`{"error":"the agent's run ended as cancelled: enough"}`)
  })
})

describe('an mcp tool', () => {
  test('is offered with the tools of its server, and called', async () => {
    const call = ({ name, input }: McpCall) => textResult(`${name} of ${JSON.stringify(input)}`)
    const { url } = startMcpServer({ tools: ['echo', 'get-sum', 'hidden'].map((name) => tool(name)), call })
    const allowed_tools = ['echo', 'get-sum']
    const mcp = { type: 'mcp', name: 'everything', description: '', server_url: url, allowed_tools }
    const agent = await newHostedAgent(service, { tools: [mcp] })
    model.script([toolCall('get-sum', { a: 2, b: 40 }), toolCall('echo', { message: 'hi' }), { text: '42' }])
    const reader = await agent.stream()
    await reader.all()
    const offered = model.requests.at(-1)!.body.tools!.map((tool) => tool.function.name)
    expect(offered.sort()).toEqual(['echo', 'get-sum'])
    expect(reader.of('tool').map(({ data }) => [data.name, data.phase, data.output])).toEqual([
      ['get-sum', 'started', undefined],
      ['get-sum', 'finished', 'get-sum of {"a":2,"b":40}'],
      ['echo', 'started', undefined],
      ['echo', 'finished', 'echo of {"message":"hi"}'],
    ])
    expect(lastToolResult()).toBe('echo of {"message":"hi"}')
  })

  test('whose server is unreachable fails the run, naming the tool', async () => {
    const gone = { type: 'mcp', name: 'gone', description: '', server_url: `http://127.0.0.1:${freePort()}/mcp` }
    const agent = await newHostedAgent(service, { tools: [gone] })
    const { data } = await agent.invoke()
    expect(data).toMatchObject({ status: 'failed', error_detail: { reason: 'tool_unavailable' } })
    expect(data.error_message).toContain('gone')
  })
})
