import { describe, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { type ModelAnswer, ModelFailure, type ModelRequest } from '../../src/outbound/model/model.ts'
import { createOpenAiModel } from '../../src/outbound/model/openai.ts'
import { eventually } from '../support/eventually.ts'
import { type ModelServer, type Script, startModelServer } from '../support/model-server.ts'

const KEY = 'sk-proj-ThisIsTheWholeKey/0123+456789=='
const REQUEST: ModelRequest = {
  model: 'gpt-test',
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hi' },
  ],
  tools: [],
  temperature: null,
  maxOutputTokens: null,
  outputSchema: null,
}
const LOOK_UP = { name: 'look_up', description: 'Looks it up', parameters: { type: 'object' } }

interface Asked {
  readonly server: ModelServer
  /** The deltas passed to onText; `|` where the answer was restarted. */
  readonly deltas: string[]
  readonly logged: string[]
  readonly answer: Promise<ModelAnswer>
}

/** Asks a server that answers with this script, streamed only with `stream`. */
function ask(script: Script, more: Partial<ModelRequest> & { stream?: boolean; signal?: AbortSignal } = {}): Asked {
  const { stream = false, signal = new AbortController().signal, ...request } = more
  const server = startModelServer(script)
  const deltas: string[] = []
  const logged: string[] = []
  const log = createLog('debug', (line) => logged.push(line))
  const model = createOpenAiModel({ apiKey: KEY, baseUrl: server.url, log, backoffMs: 5 })
  const listeners = { onText: (delta: string) => deltas.push(delta), onRestart: () => deltas.push('|') }
  return { server, deltas, logged, answer: model.ask({ ...REQUEST, ...(stream && listeners), ...request }, signal) }
}

async function failure(asked: Asked): Promise<ModelFailure> {
  const error = await asked.answer.then(
    (answer) => new Error(`there was an answer: ${JSON.stringify(answer)}`),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(ModelFailure)
  expect(`${(error as Error).message} ${(error as Error).stack} ${JSON.stringify(error)}`).not.toContain(KEY)
  expect(asked.logged.join('')).not.toContain(KEY)
  return error as ModelFailure
}

describe.each([false, true])('streamed: %p', (stream) => {
  test('returns the whole answer, with usage and finish reason', async () => {
    const asked = ask({ text: 'Hello there, you', usage: [12, 7] }, { stream })
    expect(await asked.answer).toEqual({
      content: 'Hello there, you',
      refusal: null,
      toolCalls: [],
      finishReason: 'stop',
      usage: { inputTokens: 12, outputTokens: 7 },
      model: 'gpt-test',
      responseId: expect.stringMatching(/^chatcmpl-/),
    })
    expect(asked.deltas).toEqual(stream ? ['Hello ', 'there, ', 'you'] : [])
    expect(asked.server.requests[0]!.headers.authorization).toBe(`Bearer ${KEY}`)
  })

  test('keeps order, ids and arguments of many parallel tool calls', async () => {
    const toolCalls = Array.from({ length: 20 }, (_, i) => ({
      id: `c${i}`,
      name: `t${i % 3}`,
      arguments: { i, x: 'ä"\n' },
    }))
    const { toolCalls: got, finishReason, content } = await ask({ toolCalls }, { stream }).answer
    expect(got).toEqual(toolCalls.map((call) => ({ ...call, arguments: JSON.stringify(call.arguments) })))
    expect({ finishReason, content }).toEqual({ finishReason: 'tool_calls', content: null })
  })

  test('passes on malformed arguments as the model wrote them', async () => {
    const { toolCalls } = await ask({ toolCalls: [{ name: 'look_up', arguments: '{"a": ' }] }, { stream }).answer
    expect(toolCalls[0]!.arguments).toBe('{"a": ')
  })

  test('distinguishes a refusal from an answer', async () => {
    const { refusal, content } = await ask({ refusal: 'I will not.' }, { stream }).answer
    expect({ refusal, content }).toEqual({ refusal: 'I will not.', content: null })
  })

  test('accepts a server that never reports usage', async () => {
    expect((await ask({ usage: null }, { stream }).answer).usage).toEqual({ inputTokens: 0, outputTokens: 0 })
  })

  test.each([429, 500, 503, 408])('retries status %d, and uses the next answer', async (status) => {
    const asked = ask([{ status }, { status }, { text: 'At last' }], { stream })
    expect((await asked.answer).content).toBe('At last')
    expect(asked.deltas).toEqual(stream ? ['At ', 'last'] : [])
    expect(asked.server.requests).toHaveLength(3)
    expect(asked.logged).toHaveLength(2)
  })

  test('gives up after four attempts and reports the last error', async () => {
    const asked = ask({ status: 503, errorCode: 'overloaded' }, { stream })
    const { message, provider } = await failure(asked)
    expect(message).toBe(
      'the model provider answered 503: The script of the test wants this error (overloaded) (asked 4 times)',
    )
    expect(provider).toEqual({ status: 503, code: 'overloaded' })
    expect(asked.server.requests).toHaveLength(4)
  })

  test.each([400, 401, 403, 404])('does not retry status %d', async (status) => {
    const asked = ask({ status }, { stream })
    expect((await failure(asked)).provider.status).toBe(status)
    expect(asked.server.requests).toHaveLength(1)
  })

  test('does not retry an exhausted quota, although it is a 429', async () => {
    const asked = ask({ status: 429, errorCode: 'insufficient_quota' }, { stream })
    expect((await failure(asked)).provider.code).toBe('insufficient_quota')
    expect(asked.server.requests).toHaveLength(1)
  })

  test('waits for Retry-After', async () => {
    const started = performance.now()
    await ask([{ status: 429, headers: { 'retry-after': '1' } }, {}], { stream }).answer
    expect(performance.now() - started).toBeGreaterThan(950)
  })

  test('fails at once when Retry-After is too long', async () => {
    const asked = ask([{ status: 429, headers: { 'retry-after': '3600' } }, {}], { stream })
    expect((await failure(asked)).provider.status).toBe(429)
    expect(asked.server.requests).toHaveLength(1)
  })

  test('reports the text of an HTML error page', async () => {
    const body = '<!DOCTYPE html><html><style>p{}</style><h1>502 Bad Gateway</h1>\n<p>nginx</p></html>'
    const page = { status: 502, body, headers: { 'content-type': 'text/html' } }
    expect((await failure(ask(page, { stream }))).message).toBe(
      'the model provider answered 502: 502 Bad Gateway nginx (asked 4 times)',
    )
    expect((await failure(ask({ ...page, status: 200 }, { stream }))).message).toContain(
      'is not JSON: 502 Bad Gateway nginx',
    )
  })

  test('never repeats the key in an error message', async () => {
    for (const text of [KEY, encodeURIComponent(KEY), `${'x'.repeat(580)}${KEY}`]) {
      const error = { error: { message: `Incorrect API key provided: ${text}.`, code: KEY } }
      const { message, provider } = await failure(ask({ status: 401, body: JSON.stringify(error) }, { stream }))
      expect(`${message} ${provider.code}`).not.toContain(text)
      expect(message.length).toBeLessThan(700)
      expect(provider.code).toBe('•••')
    }
    expect((await failure(ask({ status: 500, body: `no JSON, but ${KEY}` }, { stream }))).message).toContain('but •••')
  })

  test('treats a 200 that contains an error as a failure', async () => {
    const error = { error: { message: 'No credits', code: 402 } }
    const turn = { body: JSON.stringify(error), events: [error] }
    expect(await failure(ask(stream ? { events: [error] } : turn, { stream }))).toMatchObject({
      message: 'the model provider reported: No credits',
      provider: { status: 402 },
    })
  })

  test('retries after a broken connection', async () => {
    const asked = ask([{ cutAfter: 2, text: ['a', 'b', 'c'] }, { text: ['d', 'e'] }], { stream })
    expect((await asked.answer).content).toBe('de')
    expect(asked.deltas).toEqual(stream ? ['a', '|', 'd', 'e'] : [])
  })

  test('an abort rejects at once with its reason and closes the connection', async () => {
    const abort = new AbortController()
    const asked = ask({ hangs: true }, { stream, signal: abort.signal })
    await eventually(() => asked.server.requests.length === 1)
    abort.abort(new Error('cancelled'))
    await expect(asked.answer).rejects.toThrow('cancelled')
    await eventually(() => asked.server.aborted === 1)
    expect(asked.server.open).toBe(0)
  })

  test('an abort ends the wait for the next attempt', async () => {
    const abort = new AbortController()
    const asked = ask({ status: 429, headers: { 'retry-after': '50' } }, { stream, signal: abort.signal })
    await eventually(() => asked.logged.length === 1)
    abort.abort(new Error('cancelled'))
    await expect(asked.answer).rejects.toThrow('cancelled')
    expect(asked.server.requests).toHaveLength(1)
  })

  test('sends nothing once the signal has aborted', async () => {
    const asked = ask({}, { stream, signal: AbortSignal.abort(new Error('too late')) })
    await expect(asked.answer).rejects.toThrow('too late')
    expect(asked.server.requests).toHaveLength(0)
  })

  test('rejects too many tool calls', async () => {
    const toolCalls = Array.from({ length: 129 }, () => ({ name: 'look_up', arguments: {} }))
    expect((await failure(ask({ toolCalls }, { stream }))).message).toContain('more than 128 tool calls')
  })

  test('rejects names of tools that are too long, and gives calls ids that are not', async () => {
    const long = 'x'.repeat(1_001)
    const toolCalls = [{ name: long, arguments: {} }]
    expect((await failure(ask({ toolCalls }, { stream }))).message).toContain('longer than this service accepts')
    const { answer } = ask({ toolCalls: [{ name: 'look_up', arguments: {}, id: long }] }, { stream })
    expect((await answer).toolCalls[0]?.id).toMatch(/^call_\d+_0$/)
  })

  test('rejects an answer or arguments that are too long', async () => {
    const text = Array.from({ length: 11 }, () => 'x'.repeat(1024 * 1024))
    expect((await failure(ask({ text }, { stream }))).message).toContain('longer than this service accepts')
    const toolCalls = [{ name: 'look_up', arguments: 'x'.repeat(1024 * 1024 + 1) }]
    expect((await failure(ask({ toolCalls }, { stream }))).message).toContain('more than 1048576 characters')
  })
})

describe('an answer without streaming', () => {
  test.each([
    ['{"choices": []}', 'it has no choices'],
    ['{"choices": [{}]}', 'the choice has no message'],
    ['{"hello": "world"}', 'it has no choices'],
    ['[1, 2]', 'expected an object; got [1, 2]'],
    ['"text"', 'expected an object'],
    ['{"choices": [{"message": {"tool_calls": [{"function": {"arguments": "{}"}}]}}]}', 'a tool call has no name'],
  ])('%s is rejected', async (body, problem) => {
    const asked = ask({ body })
    expect((await failure(asked)).message).toContain(problem)
    expect(asked.server.requests).toHaveLength(1)
  })

  test.each([
    { error: { message: 'No room', code: 400 } },
    { choices: [{ message: { content: 'Half' }, finish_reason: 'error', error: { message: 'No room', code: 400 } }] },
  ])('a 200 with an error is a failure: %j', async (body) => {
    const { message } = await failure(ask({ body: JSON.stringify(body) }))
    expect(message).toContain('the model provider reported: No room')
  })

  test('that ended with an error is asked for again', async () => {
    const asked = ask([{ text: 'Half', finishReason: 'error' }, { text: 'Whole' }])
    expect((await asked.answer).content).toBe('Whole')
  })

  test('malformed JSON is retried', async () => {
    expect((await ask([{ body: '{"choices": [{"mess' }, { body: '' }, { text: 'ok' }]).answer).content).toBe('ok')
    expect((await failure(ask({ body: '{"a' }))).message).toContain('is not JSON: {"a (asked 4 times)')
  })

  test('fields that compatible servers omit get defaults', async () => {
    const call = { function: { name: 'look_up', arguments: { a: 1 } } }
    const message = {
      content: [{ type: 'text', text: 'So: ' }, { text: 'this' }],
      tool_calls: [call, { ...call, id: '' }],
    }
    const answer = await ask({ body: JSON.stringify({ choices: [{ message }] }) }).answer
    expect(answer).toEqual({
      content: 'So: this',
      refusal: null,
      toolCalls: [
        { id: 'call_2_0', name: 'look_up', arguments: '{"a":1}' },
        { id: 'call_2_1', name: 'look_up', arguments: '{"a":1}' },
      ],
      finishReason: 'tool_calls',
      usage: { inputTokens: 0, outputTokens: 0 },
      model: 'gpt-test',
      responseId: null,
    })
  })

  test('no two tool calls of a conversation share an id, whatever the server sends', async () => {
    const messages: ModelRequest['messages'] = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null, toolCalls: [{ id: 'same', name: 'look_up', arguments: '{}' }] },
      { role: 'tool', toolCallId: 'same', content: '1' },
    ]
    const calls = Array.from({ length: 2 }, () => ({ id: 'same', name: 'look_up', arguments: {} }))
    const { toolCalls } = await ask({ toolCalls: calls }, { messages }).answer
    expect(toolCalls.map(({ id }) => id)).toEqual(['call_3_0', 'call_3_1'])
  })

  test('reports a provider that cannot be reached', async () => {
    const server = startModelServer()
    await server.stop()
    const model = createOpenAiModel({ apiKey: undefined, baseUrl: server.url, backoffMs: 1 })
    await expect(model.ask(REQUEST, new AbortController().signal)).rejects.toThrow(
      /^the model provider could not be reached: .*\(ECONNREFUSED\) \(asked 4 times\)$/,
    )
  })
})

describe('the request', () => {
  const sent = async (more: Partial<ModelRequest>) => {
    const { server, answer } = ask({}, more)
    await answer
    return server.requests[0]!.body
  }

  test('contains only what was requested', async () => {
    expect(await sent({})).toEqual({ model: 'gpt-test', messages: REQUEST.messages as never })
  })

  test('carries tools, limits and the conversation', async () => {
    const toolCalls = [
      { id: 'a', name: 'look_up', arguments: '{"q":1}' },
      { id: 'b', name: 'look_up', arguments: '' },
      { id: 'c', name: 'look_up', arguments: '{"broken' },
    ]
    const body = await sent({
      tools: [LOOK_UP],
      temperature: 0.5,
      maxOutputTokens: 99,
      messages: [
        { role: 'assistant', content: null, toolCalls },
        { role: 'tool', toolCallId: 'a', content: 'found' },
        { role: 'assistant', content: null },
      ],
    })
    expect(body).toEqual({
      model: 'gpt-test',
      temperature: 0.5,
      max_tokens: 99,
      tools: [{ type: 'function', function: { ...LOOK_UP, parameters: { type: 'object', properties: {} } } }] as never,
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: ['{"q":1}', '{}', '{"malformed":"{\\"broken"}'].map((text, i) => ({
            id: 'abc'[i],
            type: 'function',
            function: { name: 'look_up', arguments: text },
          })),
        },
        { role: 'tool', tool_call_id: 'a', content: 'found' },
        { role: 'assistant', content: '' },
      ] as never,
    })
  })

  test('a schema is strict only where OpenAI allows it', async () => {
    const closed = {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    }
    const format = async (outputSchema: Record<string, unknown>) => (await sent({ outputSchema })).response_format
    const json_schema = { name: 'output', schema: closed, strict: true }
    expect(await format(closed)).toEqual({ type: 'json_schema', json_schema })
    expect(await format({ ...closed, required: [] })).toHaveProperty('json_schema.strict', false)
  })
})

describe('a server with limited support', () => {
  const refuse = (pattern: RegExp): Script => {
    return ({ body }) => {
      const field = Object.keys(body).find((name) => pattern.test(name))
      if (field === undefined) return { text: '{}' }
      const hint = field === 'max_tokens' ? "Use 'max_completion_tokens' instead." : ''
      return { status: 400, body: JSON.stringify({ error: { message: `Unsupported: '${field}'. ${hint}` } }) }
    }
  }

  test('gets no stream_options, the other token limit and the schema as a prompt, and this is remembered', async () => {
    const { server, answer } = ask(refuse(/stream_options|max_tokens|response_format/), {
      stream: true,
      maxOutputTokens: 5,
      outputSchema: { type: 'object' },
    })
    expect((await answer).content).toBe('{}')
    const { messages, ...rest } = server.requests.at(-1)!.body
    expect(rest).toEqual({ model: 'gpt-test', stream: true, max_completion_tokens: 5 } as never)
    expect(messages[0]!.content).toContain('follows this JSON Schema:\n{"type":"object"}')
    expect(server.requests).toHaveLength(4)
  })

  test('gets a supported request at once the next time', async () => {
    const server = startModelServer(refuse(/stream_options/))
    const model = createOpenAiModel({ apiKey: undefined, baseUrl: server.url, backoffMs: 1 })
    const request = { ...REQUEST, onText: () => {} }
    for (let i = 0; i < 3; i++) await model.ask(request, new AbortController().signal)
    expect(server.requests.map(({ body }) => 'stream_options' in body)).toEqual([true, false, false, false])
  })

  test('one rejected schema leaves the others strict', async () => {
    const closed = (name: string) => ({
      type: 'object',
      properties: { [name]: { type: 'string' } },
      required: [name],
      additionalProperties: false,
    })
    const server = startModelServer(({ body }) => {
      const isBad = JSON.stringify(body).includes('bad') && JSON.stringify(body).includes('"strict":true')
      return isBad
        ? { status: 400, body: '{"error": {"message": "Invalid schema for response_format"}}' }
        : { text: '{}' }
    })
    const model = createOpenAiModel({ apiKey: undefined, baseUrl: server.url, backoffMs: 1 })
    for (const name of ['bad', 'good'])
      await model.ask({ ...REQUEST, outputSchema: closed(name) }, new AbortController().signal)
    const isStrict = server.requests.map(({ body }) => JSON.stringify(body).includes('"strict":true'))
    expect(isStrict).toEqual([true, false, true])
  })
})
