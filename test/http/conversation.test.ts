import { beforeAll, describe, expect, test } from 'bun:test'
import { newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { attributesOf, randomHex, sendExport, span, tracesOf } from '../support/otlp.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** GET /api/v1/runs/:run_id/conversation (docs/runs.md#conversations). */

let service: TestService
let tenant: Tenant
let agent: Reporter

beforeAll(async () => {
  service = await startTestService()
  tenant = await newTenant(service)
  agent = await newReporter(tenant.api)
})

type Json = Record<string, unknown>
type Part = { type: string; [name: string]: unknown }
interface Item {
  role: string
  parts: Part[]
  truncated: boolean
  event_id: string | null
  seq: number | null
  event_time: string | null
  model: string | null
  thread: number | null
}

const event = (type: string, payload: Json, more: Json = {}) => ({ type, payload, ...more })
const calls = (...payloads: Json[]) => payloads.map((payload) => event('llm.call', payload))

async function reported(events: Json[], input: Json = {}): Promise<string> {
  const runId = await agent.start({ input })
  if (events.length > 0) await agent.events(runId, events)
  return runId
}

function read(runId: string, query = '', key = tenant.workspaceKey) {
  return tenant.api('GET', `/api/v1/runs/${runId}/conversation${query}`, undefined, { key })
}

async function conversation(runId: string): Promise<Item[]> {
  const { status, data } = await read(runId, '?limit=200')
  expect([status, data.next_cursor]).toEqual([200, null])
  return data.items
}

const shown = ({ role, parts }: Item) => `${role}: ${parts.map(shownPart).join(' | ')}`

function shownPart({ type, text, id, name, result, kind, media_type, ...part }: Part): string {
  if (type === 'text') return `${text}`
  if (type === 'reasoning') return `(${text})`
  if (type === 'tool_call') return `${name}#${id}(${JSON.stringify(part.arguments)})`
  if (type === 'tool_result') return `#${id} = ${JSON.stringify(result)}${part.failed ? ' failed' : ''}`
  return type === 'media' ? `<${kind} ${media_type}>` : JSON.stringify(part.value)
}

const WANTED = ['system: Be kind', 'user: Weather?', 'assistant: look#c1({"city":"Rome"})', 'tool: #c1 = "Sunny"']

describe('a conversation is read from the calls of', () => {
  const tool = (name: string) => ({ type: 'function', function: { name, arguments: '{"city":"Rome"}' } })
  const openAi = [
    { role: 'system', content: 'Be kind' },
    { role: 'user', content: 'Weather?' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'c1', ...tool('look') }] },
    { role: 'tool', tool_call_id: 'c1', content: 'Sunny' },
  ]
  const anthropic = [
    { role: 'user', content: 'Weather?' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: { city: 'Rome' } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'Sunny' }] },
  ]
  const gemini = [
    { role: 'user', parts: [{ text: 'Weather?' }] },
    { role: 'model', parts: [{ functionCall: { id: 'c1', name: 'look', args: { city: 'Rome' } } }] },
    { role: 'tool', parts: [{ functionResponse: { id: 'c1', name: 'look', response: 'Sunny' } }] },
  ]
  const vercel = [
    { role: 'system', content: 'Be kind' },
    { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
    {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: { city: 'Rome' } }],
    },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'look', output: { type: 'text', value: 'Sunny' } }],
    },
  ]
  const responses = [
    { role: 'user', content: 'Weather?' },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"city":"Rome"}' },
    { type: 'function_call_output', call_id: 'c1', output: 'Sunny' },
  ]
  const otel = [
    { role: 'user', parts: [{ type: 'text', content: 'Weather?' }] },
    { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'look', arguments: { city: 'Rome' } }] },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: 'Sunny' }] },
  ]
  const bye = 'It is sunny'
  const formats: [string, Json[], string?][] = [
    [
      'OpenAI chat',
      [
        { model: 'gpt', messages: openAi.slice(0, 2), choices: [{ message: openAi[2] }] },
        { model: 'gpt', messages: openAi, choices: [{ message: { role: 'assistant', content: bye } }] },
      ],
    ],
    [
      'OpenAI responses',
      [
        {
          request: { model: 'gpt', instructions: 'Be kind', input: responses.slice(0, 1) },
          response: { output: [responses[1]] },
          model: 'gpt',
        },
        {
          request: { instructions: 'Be kind', input: responses },
          response: { output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: bye }] }] },
          model: 'gpt',
        },
      ],
    ],
    [
      'Anthropic',
      [
        { model: 'gpt', system: 'Be kind', messages: anthropic.slice(0, 1), content: anthropic[1]?.content },
        { model: 'gpt', system: 'Be kind', messages: anthropic, content: [{ type: 'text', text: bye }] },
      ],
      'user',
    ],
    [
      'Gemini',
      [
        {
          modelVersion: 'gpt',
          systemInstruction: { parts: [{ text: 'Be kind' }] },
          contents: gemini.slice(0, 1),
          candidates: [{ content: gemini[1] }],
        },
        {
          modelVersion: 'gpt',
          systemInstruction: { parts: [{ text: 'Be kind' }] },
          contents: gemini,
          candidates: [{ content: { role: 'model', parts: [{ text: bye }] } }],
        },
      ],
    ],
    [
      'the Vercel AI SDK',
      [
        {
          'ai.model.id': 'gpt',
          'ai.prompt.messages': JSON.stringify(vercel.slice(0, 2)),
          'ai.response.toolCalls': JSON.stringify([{ toolCallId: 'c1', toolName: 'look', input: { city: 'Rome' } }]),
        },
        { 'ai.model.id': 'gpt', 'ai.prompt.messages': JSON.stringify(vercel), 'ai.response.text': bye },
      ],
    ],
  ]
  test.each(formats)('%s', async (_, payloads, resultRole = 'tool') => {
    const items = await conversation(await reported(calls(...payloads)))
    expect(items.map(shown)).toEqual([...WANTED.slice(0, 3), `${resultRole}: #c1 = "Sunny"`, `assistant: ${bye}`])
    const [first, , asked, result, answer] = items
    expect(items.map(({ model }) => model)).toEqual([null, null, 'gpt', null, 'gpt'])
    expect([asked?.seq, result?.seq]).toEqual([first!.seq, answer!.seq])
    expect(items.every(({ thread, truncated }) => thread === first!.seq && !truncated)).toBe(true)
  })

  test('OpenTelemetry, in attributes of spans', async () => {
    const traceId = randomHex(16)
    const llm = (input: Json[], output: Json, at: number) =>
      span({
        traceId,
        name: 'chat',
        startTimeUnixNano: `${at}000000000`,
        endTimeUnixNano: `${at + 1}000000000`,
        attributes: attributesOf({
          'gen_ai.operation.name': 'chat',
          'gen_ai.request.model': 'gpt',
          'gen_ai.system_instructions': JSON.stringify([{ type: 'text', content: 'Be kind' }]),
          'gen_ai.input.messages': JSON.stringify(input),
          'gen_ai.output.messages': JSON.stringify([output]),
        }),
      })
    const answer = { role: 'assistant', parts: [{ type: 'text', content: bye }] }
    const spans = [llm(otel.slice(0, 1), otel[1]!, 1_760_000_000), llm(otel, answer, 1_760_000_002)]
    expect((await sendExport(tenant, 'traces', tracesOf(spans))).status).toBe(200)
    const { data } = await tenant.api('GET', `/api/v1/runs?external_run_id=${traceId}`)
    const items = await conversation(data.items[0].run_id)
    expect(items.map(shown)).toEqual([...WANTED, `assistant: ${bye}`])
  })

  test('OpenTelemetry, in events of spans', async () => {
    const runId = await agent.start()
    const task_id = await agent.task(runId, { name: 'chat', status: 'running' })
    await agent.events(runId, [
      event('gen_ai.user.message', { content: 'Hi' }, { task_id }),
      event('gen_ai.choice', { index: 0, message: { content: 'Hello' } }, { task_id }),
      event('llm.call', { model: 'gpt' }, { task_id }),
    ])
    const items = await conversation(runId)
    expect(items.map(shown)).toEqual(['user: Hi', 'assistant: Hello'])
    expect(items.map(({ model }) => model)).toEqual([null, 'gpt'])
  })

  test('a program that reports no messages: the input and output stand around the tool calls', async () => {
    const runId = await reported(
      [
        event('llm.call', { model: 'gpt' }),
        event('tool.call.started', { tool: 'look', tool_call_id: 'c1', input: { city: 'Rome' } }),
        event('tool.call.finished', { tool: 'look', tool_call_id: 'c1', output: 'Sunny' }),
      ],
      { message: 'Weather?' },
    )
    await agent.end(runId)
    const items = await conversation(runId)
    expect(items.map(shown).slice(0, 3)).toEqual([
      'user: Weather?',
      'tool: look#c1({"city":"Rome"})',
      'tool: #c1 = "Sunny"',
    ])
    expect([items[0]?.seq, items[0]?.event_id, items[1]?.thread]).toEqual([null, null, null])
  })
})

describe('a message is listed once', () => {
  const ask = { role: 'user', content: 'Weather?' }
  const call = { role: 'assistant', tool_calls: [{ id: 'c1', function: { name: 'look', arguments: '{}' } }] }
  const result = { role: 'tool', tool_call_id: 'c1', content: 'Sunny' }

  test('also where an event reports the result first, and a result that no message repeats is there', async () => {
    const finished = event('tool.call.finished', { tool: 'look', tool_call_id: 'c1', output: 'Sunny' })
    const first = { messages: [ask], choices: [{ message: call }] }
    const second = { messages: [ask, call, result], choices: [{ message: { role: 'assistant', content: 'Bye' } }] }
    const runId = await reported([event('llm.call', first), finished, event('llm.call', second)])
    const items = await conversation(runId)
    expect(items.map(shown)).toEqual([
      'user: Weather?',
      'assistant: look#c1({})',
      'tool: #c1 = "Sunny"',
      'assistant: Bye',
    ])
    expect(new Set(items.map(({ seq }) => seq)).size).toBe(3)
    expect((await conversation(await reported([event('llm.call', first), finished]))).map(shown)).toEqual(
      items.slice(0, 3).map(shown),
    )
  })

  test('conversations beside each other have a thread each', async () => {
    const turn = (who: string, count: number) => {
      const said = Array.from({ length: count }, (_, n) => [
        { role: 'user', content: `${who} ${n}` },
        { role: 'assistant', content: `${who.toUpperCase()} ${n}` },
      ]).flat()
      return { messages: said.slice(0, -1), choices: [{ message: said.at(-1) }] }
    }
    const runId = await reported(calls(turn('a', 1), turn('b', 1), turn('a', 2), turn('b', 2)))
    const items = await conversation(runId)
    const expected = ['a 0', 'A 0', 'b 0', 'B 0', 'a 1', 'A 1', 'b 1', 'B 1']
    expect(items.map(({ parts }) => parts[0]?.text)).toEqual(expected)
    const [a, , b] = items.map(({ thread }) => thread)
    expect(items.map(({ thread }) => thread)).toEqual([a, a, b, b, a, a, b, b])
    // Whatever the size of a page is.
    for (const limit of [1, 2, 3]) {
      const listed: unknown[] = []
      let cursor: string | null = ''
      for (; cursor !== null; ) {
        const { data } = await read(runId, `?limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`)
        expect(data.items.length).toBeLessThanOrEqual(limit)
        listed.push(...data.items)
        cursor = data.next_cursor
      }
      expect(listed).toEqual(items)
    }
  })
})

describe('what is large or exact', () => {
  test('numbers keep their digits', async () => {
    const input = '{"id":12345678901234567890,"rate":1.0}'
    const call = { id: 'c', function: { name: 'f', arguments: input } }
    const runId = await agent.start()
    const body = `{"run_id":"${runId}","events":[
      {"type":"llm.call","payload":{"messages":[{"role":"user","content":"Hi"}],"choices":[{"message":${JSON.stringify({ role: 'assistant', tool_calls: [call] })}}]}},
      {"type":"llm.call","payload":{"messages":[{"role":"user","content":"Ho"}],"content":[{"type":"tool_use","id":"d","name":"f","input":${input}}]}}]}`
    expect((await tenant.api('POST', '/api/ingest/v1/events', body, { key: agent.agentKey })).status).toBe(200)
    const { text } = await read(runId)
    expect(text.split(`"arguments":${input}`).length).toBe(3)
  })

  test('long texts and values are cut, bytes are named, and a payload of too many values is not read', async () => {
    const bytes = Buffer.from(Uint8Array.from({ length: 30_000 }, (_, index) => (index * 37) % 251)).toString('base64')
    const content = [
      { type: 'text', text: 'x'.repeat(100_000) },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${bytes}` } },
      {
        type: 'tool_use',
        id: 't',
        name: 'f',
        input: { list: 'y'.repeat(100_000).split('').slice(0, 15_000), data: bytes },
      },
      { type: 'tool_use', id: 'u', name: 'f', input: { text: 'z y '.repeat(30_000) } },
    ]
    const runId = await reported([
      ...calls({ messages: [{ role: 'user', content }] }),
      ...calls({ messages: Array.from({ length: 30_000 }, () => 1) }),
    ])
    const { data, text } = await read(runId)
    expect(text.length).toBeLessThan(250_000)
    const [message, unread] = data.items
    expect(message.parts.map(({ type }: Part) => type)).toEqual(['text', 'media', 'tool_call', 'tool_call'])
    expect([message.truncated, message.parts[0].text.length]).toEqual([true, 64 * 1024 + 1])
    expect(message.parts[1]).toEqual({
      type: 'media',
      kind: 'image',
      media_type: 'image/png',
      bytes: 30_000,
      url: null,
    })
    expect(message.parts[2].arguments.data).toBe('(base64, 30 kB)')
    expect(message.parts[3].arguments).toStartWith('{"text":"z y z y')
    expect(unread).toMatchObject({ role: 'assistant', parts: [], truncated: true })
  })

  test('a page ends before it is larger than a few megabytes, and the next ones have the rest', async () => {
    const said = Array.from({ length: 5 }, (_, n) => ({ role: 'user', content: `${n} ${'word '.repeat(12_000)}` }))
    const runId = await reported(
      Array.from({ length: 6 }, (_, n) =>
        event('llm.call', { messages: [{ role: 'user', content: `${n}` }, ...said] }),
      ),
    )
    const sizes: number[] = []
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { data, text } = await read(runId, `?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`)
      sizes.push(text.length)
      seen.push(...data.items.map(({ seq, parts }: Item) => `${seq} ${String(parts[0]?.text).slice(0, 3)}`))
      cursor = data.next_cursor
    }
    expect(new Set(seen).size).toBe(6 * 6)
    expect(seen.length).toBe(6 * 6)
    expect(sizes.length).toBeGreaterThan(1)
    expect(Math.max(...sizes)).toBeLessThan(1_300_000)
  })
})

test('an agent key reads its own runs; other workspaces, feed tokens and wrong cursors are refused', async () => {
  const runId = await reported(calls({ prompt: 'Hi', response: 'Hello' }))
  const other = await newReporter(tenant.api)
  const stranger = await newTenant(service)
  expect((await read(runId, '', agent.agentKey)).data.items.length).toBe(2)
  expect((await read(runId, '', other.agentKey)).status).toBe(403)
  expect((await read(runId, '', stranger.workspaceKey)).status).toBe(404)
  expect((await read(crypto.randomUUID())).status).toBe(404)
  const { data } = await tenant.api('POST', '/api/v1/feed-tokens', { run_id: runId, ttl_seconds: 60 })
  expect((await read(runId, '', data.token)).status).toBe(401)
  for (const cursor of [
    'x',
    'e30',
    Buffer.from('{"after":0,"skip":0,"isPlain":true,"known":{}}').toString('base64url'),
  ])
    expect((await read(runId, `?cursor=${cursor}`)).status).toBe(400)
})
