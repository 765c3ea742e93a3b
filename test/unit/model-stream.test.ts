import { expect, test } from 'bun:test'
import { type ModelAnswer, ModelFailure, type ModelRequest } from '../../src/outbound/model/model.ts'
import { createOpenAiModel } from '../../src/outbound/model/openai.ts'
import { readEvents, readStream } from '../../src/outbound/model/openai-answer.ts'
import { eventually } from '../support/eventually.ts'
import { type Script, startModelServer, type Turn } from '../support/model-server.ts'
import { seededRandom } from '../support/random.ts'

const REQUEST: ModelRequest = {
  model: 'gpt-test',
  messages: [{ role: 'user', content: 'Hi' }],
  tools: [],
  temperature: null,
  maxOutputTokens: null,
  outputSchema: null,
}

/** `deltas` is what onText received; `|` where the answer was restarted. */
async function stream(script: Script): Promise<{ answer: ModelAnswer; deltas: string[]; requests: number }> {
  const server = startModelServer(script)
  const deltas: string[] = []
  const model = createOpenAiModel({ apiKey: undefined, baseUrl: server.url, backoffMs: 2 })
  const listeners = { onText: (delta: string) => deltas.push(delta), onRestart: () => deltas.push('|') }
  const answer = await model.ask({ ...REQUEST, ...listeners }, new AbortController().signal)
  return { answer, deltas, requests: server.requests.length }
}

const NUMBERS = Array.from({ length: 100 }, (_, i) => `${i}`)

const text = (content: unknown, more: object = {}) => ({ choices: [{ index: 0, delta: { content }, ...more }] })
const calls = (...tool_calls: object[]) => ({ choices: [{ delta: { tool_calls } }] })
const functionPart = (name: string | undefined, part: string, more: object = {}) => ({
  ...more,
  function: { ...(name !== undefined && { name }), arguments: part },
})

async function toolCallsOf(...events: object[]) {
  const { answer } = await stream({ events: [...events, '[DONE]'] })
  return answer.toolCalls.map(({ id, name, arguments: given }) => `${id} ${name} ${given}`)
}

test('passes on text deltas as they arrive', async () => {
  const first = Promise.withResolvers<void>()
  const server = startModelServer({ text: ['a', 'b'], intervalMs: 30 })
  const deltas: string[] = []
  const onText = (delta: string) => {
    deltas.push(delta)
    first.resolve()
  }
  const model = createOpenAiModel({ apiKey: undefined, baseUrl: server.url })
  const answer = model.ask({ ...REQUEST, onText }, new AbortController().signal)
  await first.promise
  expect(deltas).toEqual(['a'])
  expect(server.open).toBe(1)
  expect((await answer).content).toBe('ab')
})

test('yields between reads when its time is over', async () => {
  const body = ['a', 'b'].map((content) => `data: ${JSON.stringify(text(content))}\n\n`).join('')
  const read = async (isOver: boolean) => {
    const passed: string[] = []
    const slice = { isOver, yield: async () => void passed.push('yield') }
    const response = new Response(`${body}data: [DONE]\n\n`)
    const answer = await readStream(response, { ...REQUEST, slice }, (delta) => passed.push(delta))
    expect(answer.content).toBe('ab')
    return passed
  }
  expect(await read(false)).toEqual(['a', 'b'])
  expect(await read(true)).toEqual(['a', 'b', 'yield'])
})

test('reads on only when what follows a read is done', async () => {
  const steps: string[] = []
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const number = steps.filter((step) => step.startsWith('read')).length + 1
        steps.push(`read ${number}`)
        if (number === 3) controller.close()
        else controller.enqueue(new TextEncoder().encode(`data: ${number}\n\n`))
      },
    },
    { highWaterMark: 0 },
  )
  const pass = (data: string) => steps.push(`event ${data}`) < 0
  await readEvents(body, pass, async () => {
    await Bun.sleep(1)
    steps.push('done')
  })
  expect(steps.slice(0, 7)).toEqual(['read 1', 'event 1', 'done', 'read 2', 'event 2', 'done', 'read 3'])
})

test('decodes events wherever the bytes are split', async () => {
  const pieces = ['Grüße ', '日本語 ', '👩‍👩‍👧 ', '"\\n\r\n\u2028']
  const toolCalls = [{ id: 'c', name: 'look_up', arguments: { q: 'ä👍' } }]
  for (const pieceBytes of [1, 2, 3, 7, 64]) {
    const { answer, deltas } = await stream({ text: pieces, toolCalls, pieceBytes, usage: [3, 4] })
    expect(deltas).toEqual(pieces)
    expect(answer.content).toBe(pieces.join(''))
    expect(answer.toolCalls[0]!.arguments).toBe('{"q":"ä👍"}')
    expect(answer.usage).toEqual({ inputTokens: 3, outputTokens: 4 })
  }
})

test('holds back a split surrogate pair until it is whole', async () => {
  const { answer, deltas } = await stream({ events: [text('a\ud83d'), text('\udc4db'), text('\ud83d'), '[DONE]'] })
  expect(deltas).toEqual(['a', '👍b'])
  expect(answer.content).toBe('a👍b\ufffd')
})

test.each<[string, Turn['events'], string | null]>([
  ['chunks without choices', [{ choices: [] }, {}, { choices: null }, text('x'), '[DONE]'], 'x'],
  ['a chunk with nothing but the role', [{ choices: [{ delta: { role: 'assistant' } }] }, text('x'), '[DONE]'], 'x'],
  ['no delta at the end', [text('x'), { choices: [{ finish_reason: 'stop' }] }], 'x'],
  ['no [DONE]', [text('x'), text(null, { finish_reason: 'stop' })], 'x'],
  ['no finish_reason', [text('x'), '[DONE]'], 'x'],
  ['no content', [text(null), '[DONE]'], null],
  ['whatever comes after [DONE]', [text('x'), '[DONE]', text('y')], 'x'],
])('accepts %s', async (_name, events, content) => {
  const { answer, requests } = await stream({ events: events! })
  expect(answer).toMatchObject({ content, finishReason: 'stop', usage: { inputTokens: 0, outputTokens: 0 } })
  expect(requests).toBe(1)
})

test('uses the last usage that was reported', async () => {
  const usage = (prompt_tokens: number, completion_tokens: number) => ({
    choices: [],
    usage: { prompt_tokens, completion_tokens },
  })
  const { answer } = await stream({ events: [text('x'), usage(5, 1), usage(5, 2), { usage: null }, '[DONE]'] })
  expect(answer.usage).toEqual({ inputTokens: 5, outputTokens: 2 })
})

test('joins tool calls by index', async () => {
  const got = await toolCallsOf(
    calls(functionPart('a', '', { index: 0, id: '1' }), functionPart('b', '{"y', { index: 1, id: '2' })),
    calls(functionPart(undefined, '{"x":', { index: 0 })),
    calls(functionPart(undefined, '":2}', { index: 1 }), functionPart(undefined, '1}', { index: 0 })),
  )
  expect(got).toEqual(['1 a {"x":1}', '2 b {"y":2}'])
})

test('joins tool calls without an index: by id, or in order', async () => {
  const byId = await toolCallsOf(
    calls(functionPart('a', '{', { id: '1' })),
    calls(functionPart('b', '[', { id: '2' })),
    calls(functionPart(undefined, '}', { id: '1' }), functionPart(undefined, ']', { id: '2' })),
  )
  expect(byId).toEqual(['1 a {}', '2 b []'])
  const inOrder = await toolCallsOf(
    calls(functionPart('a', '{')),
    calls(functionPart(undefined, '}')),
    calls(functionPart('b', '[]')),
  )
  expect(inOrder).toEqual(['call_1_0 a {}', 'call_1_1 b []'])
})

test('distinguishes tool calls with the same index by id', async () => {
  const got = await toolCallsOf(
    calls(functionPart('a', '{}', { index: 0, id: '1' })),
    calls(functionPart('b', '[', { index: 0, id: '2' })),
    calls(functionPart(undefined, ']', { index: 0 })),
  )
  expect(got).toEqual(['1 a {}', '2 b []'])
})

test('takes a name that every piece repeats once', async () => {
  const piece = (part: string) => calls(functionPart('a', part, { index: 0, id: '1' }))
  expect(await toolCallsOf(piece('{'), piece('}'))).toEqual(['1 a {}'])
})

test.each<[string, Turn]>([
  ['is cut off', { text: ['a', 'b', 'c'], cutAfter: 3 }],
  ['just ends', { text: ['a', 'b', 'c'], stopAfter: 3 }],
  ['becomes malformed', { events: [text('a'), text('b'), '{"choices": [{"del', '[DONE]'] }],
  ['reports that the server failed', { events: [text('a'), text('b'), { error: { type: 'server_error' } }] }],
])('retries a stream that %s in the middle', async (_name, fault) => {
  const { answer, deltas, requests } = await stream([fault, fault, { text: ['d', 'e'] }])
  expect(deltas).toEqual(['a', 'b', '|', 'a', 'b', '|', 'd', 'e'])
  expect(answer.content).toBe('de')
  expect(requests).toBe(3)
})

test('gives up on a stream that keeps breaking off after four attempts', async () => {
  let isRead = Promise.withResolvers<void>()
  const server = startModelServer(() => {
    isRead = Promise.withResolvers()
    return { text: ['a', 'b'], cutAfter: 2, cutWhen: isRead.promise }
  })
  const deltas: string[] = []
  const model = createOpenAiModel({ apiKey: undefined, baseUrl: server.url, backoffMs: 2 })
  const onText = (delta: string) => {
    deltas.push(delta)
    isRead.resolve()
  }
  const listeners = { onText, onRestart: () => deltas.push('|') }
  const asked = model.ask({ ...REQUEST, ...listeners }, new AbortController().signal)
  await expect(asked).rejects.toThrow(/answer broke off: .*\(ECONNRESET\) \(asked 4 times\)/)
  expect(deltas.join('')).toBe('a|a|a|a')
})

test('does not retry a permanent error in the stream', async () => {
  const fault = { events: [text('a'), { error: { message: 'Bad key', type: 'invalid_request_error' } }] }
  await expect(stream(fault)).rejects.toThrow('the model provider reported: Bad key (invalid_request_error)')
  const named = new Response('event: error\ndata: {"message": "Overloaded", "status": 400}\n\n')
  await expect(stream({ body: await named.text(), headers: { 'content-type': 'text/event-stream' } })).rejects.toThrow(
    'the model provider reported: Overloaded',
  )
})

test('accepts a server that answers without streaming', async () => {
  const body = JSON.stringify({ choices: [{ message: { content: 'All at once' } }] })
  const { answer, deltas } = await stream({ body })
  expect(deltas).toEqual(['All at once'])
  expect(answer.content).toBe('All at once')
})

test.each([undefined, 5])(
  'an abort in the middle closes the connection and reports no more deltas (interval: %p)',
  async (intervalMs) => {
    const abort = new AbortController()
    const server = startModelServer({ text: NUMBERS, ...(intervalMs !== undefined && { intervalMs }) })
    const model = createOpenAiModel({ apiKey: undefined, baseUrl: server.url })
    const deltas: string[] = []
    const onText = (delta: string) => {
      deltas.push(delta)
      if (delta === '3') abort.abort(new Error('cancelled'))
    }
    await expect(model.ask({ ...REQUEST, onText }, abort.signal)).rejects.toThrow('cancelled')
    expect(deltas).toEqual(['0', '1', '2', '3'])
    await eventually(() => server.open === 0)
    expect(server.aborted).toBe(intervalMs === undefined ? 0 : 1)
    expect(server.requests).toHaveLength(1)
  },
)

test('an error of the listener is rethrown unchanged, and the connection is closed', async () => {
  const server = startModelServer({ text: NUMBERS, intervalMs: 5 })
  const model = createOpenAiModel({ apiKey: undefined, baseUrl: server.url })
  const onText = () => {
    throw new TypeError('mine')
  }
  const thrown = await model.ask({ ...REQUEST, onText }, new AbortController().signal).catch((error: unknown) => error)
  expect(thrown).toBeInstanceOf(TypeError)
  expect(thrown).not.toBeInstanceOf(ModelFailure)
  await eventually(() => server.aborted === 1)
  expect(server.requests).toHaveLength(1)
})

test('parses event streams as the standard says, however they are split', async () => {
  const random = seededRandom('event streams')
  for (let round = 0; round < 200; round++) {
    const expected: string[][] = []
    let wire = random.bool() ? '\ufeff' : ''
    for (let i = random.int(0, 5); i >= 0; i--) {
      const end = random.pick(['\n', '\r\n'])
      const name = random.bool(0.3) ? random.pick(['error', 'ping']) : 'message'
      const lines = Array.from({ length: random.int(1, 3) }, () => random.pick(['', 'x', ' y', '{"ä": "👍"}', 'a:b']))
      if (random.bool(0.3)) wire += `: comment${end}`
      if (name !== 'message') wire += `event: ${name}${end}`
      if (random.bool(0.3)) wire += `id: 7${end}retry${end}`
      wire +=
        lines.map((line) => `data:${line.startsWith(' ') || random.bool() ? ' ' : ''}${line}${end}`).join('') + end
      expected.push([lines.join('\n'), name])
    }
    if (random.bool()) wire = wire.replace(/(\r?\n)+$/, '')
    const bytes = new TextEncoder().encode(wire)
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; ) {
          const size = random.int(1, 20)
          controller.enqueue(bytes.slice(at, at + size))
          at += size
        }
        controller.close()
      },
    })
    const got: string[][] = []
    await readEvents(body, (data, name) => {
      got.push([data, name])
      return false
    })
    expect(got).toEqual(expected)
  }
})

/** Whether a text that begins like a thought is one is known at its end. */
test.each([
  [['<thi', 's> is a tag'], 'stop', '<this> is a tag'],
  [[' \n', ' <', 'b>bold'], 'stop', ' \n <b>bold'],
  [['<think> is not HTML'], 'stop', '<think> is not HTML'],
  [['<think>cut'], 'length', null],
  [['<think>a</think><think>b'], 'stop', '<think>b'],
  [['see <think>', 'x</think>'], 'stop', 'see <think>x</think>'],
  [['<'], 'stop', '<'],
])('%j, ended by %s, says %j', async (pieces, finish_reason, expected) => {
  const events = [...pieces.map((piece) => text(piece)), text('', { finish_reason }), '[DONE]']
  const { answer, deltas } = await stream({ events })
  expect(answer.content).toBe(expected)
  expect(deltas.join('')).toBe(expected ?? '')
})

test('joins the details of reasoning by type and index, and takes signatures of calls as they are', async () => {
  const part = (delta: object) => ({ choices: [{ delta }] })
  const detail = (more: object) => part({ reasoning_details: [{ type: 'reasoning.text', index: 0, ...more }] })
  const call = functionPart('pay', '{}', { index: 0, id: 'a', extra_content: { google: { thought_signature: 's' } } })
  const { answer } = await stream({
    events: [
      part({ reasoning: 'I ', reasoning_content: null }),
      part({ reasoning: 'pay' }),
      detail({ text: 'I ' }),
      detail({ text: 'pay', signature: null }),
      detail({ signature: 'sig' }),
      part({ reasoning_details: [{ type: 'reasoning.encrypted', index: 0, data: 'x', id: 'r' }] }),
      part({ reasoning_details: [{ type: 'reasoning.text', text: 'No ' }] }),
      part({ reasoning_details: [{ type: 'reasoning.text', text: 'index' }] }),
      calls(call),
      calls(functionPart(undefined, '', { index: 0, extra_content: null })),
      text('', { finish_reason: 'tool_calls' }),
    ],
  })
  expect(answer.extra).toEqual({
    reasoning: 'I pay',
    reasoning_details: [
      { type: 'reasoning.text', index: 0, text: 'I pay', signature: 'sig' },
      { type: 'reasoning.encrypted', index: 0, data: 'x', id: 'r' },
      { type: 'reasoning.text', text: 'No index' },
    ],
  })
  expect(answer.toolCalls[0]!.extra).toEqual({ extra_content: { google: { thought_signature: 's' } } })
})

test('gives up on reasoning that is too long, or nested too deeply to be stored', async () => {
  const piece = { choices: [{ delta: { reasoning_content: 'x'.repeat(1_500_000) } }] }
  await expect(stream({ events: [piece, piece, piece] })).rejects.toThrow(
    'the model provider sent reasoning longer than',
  )
  const deep = `{"choices":[{"delta":{"reasoning_details":[${'['.repeat(200_000)}${']'.repeat(200_000)}]}}]}`
  await expect(stream({ events: [deep] })).rejects.toThrow(/reasoning longer than|not JSON/)
})

test("reads Groq's usage", async () => {
  const { answer } = await stream({
    events: [text('Hi'), { choices: [], x_groq: { usage: { prompt_tokens: 7, completion_tokens: 3 } } }, '[DONE]'],
  })
  expect(answer.usage).toEqual({ inputTokens: 7, outputTokens: 3 })
})
