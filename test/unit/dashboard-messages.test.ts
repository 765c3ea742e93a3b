import { describe, expect, test } from 'bun:test'
import { mediaText, withoutBlobs } from '../../src/base/conventions/messages/blobs.ts'
import type { ChatPart } from '../../src/base/conventions/messages/message-parts.ts'
import { answered, chatOf } from '../../src/base/conventions/messages/messages.ts'
import { fieldOf } from '../../src/base/conventions/payload.ts'
import { textOf } from '../../src/dashboard/page/data/json.ts'
import type { Event } from '../../src/dashboard/page/data/records.ts'
import type { Bar } from '../../src/dashboard/page/run/bars.ts'
import { chatOfBar, threadsOf } from '../../src/dashboard/page/run/threads.ts'
import { seededRandom } from '../support/random.ts'

/** How the dashboard reads the messages of model calls, whoever has sent them. */

describe('conversations of model calls', () => {
  const shown = (part: ChatPart): string => {
    if (part.type === 'text') return part.text
    if (part.type === 'reasoning') return `(${part.text})`
    if (part.type === 'media') return `<${mediaText(part.media)}>`
    if (part.type !== 'call') return `= ${textOf(part.value)}`
    const output = part.output === undefined ? '' : ` = ${textOf(part.output)}`
    return `${part.name}(${textOf(part.input)})${output}${part.isFailed ? ' failed' : ''}`
  }
  const messagesOf = (payload: unknown) => {
    const { input, output } = chatOf(payload)
    return [...input, ...output]
  }
  const roles = (payload: object) =>
    messagesOf(payload).map(({ role, parts }) => `${role}: ${parts.map((part) => shown(part)).join(' | ')}`)

  test('reads the conventions of OpenTelemetry, also as text', () => {
    const input = [{ role: 'user', parts: [{ type: 'text', content: 'Hi' }] }]
    const output = [{ role: 'assistant', parts: [{ type: 'tool_call', name: 'pay', arguments: '{"n":1}' }] }]
    const expected = ['system: Be kind', 'user: Hi', 'assistant: pay({"n":1})']
    const system = [{ type: 'text', content: 'Be kind' }]
    expect(
      roles({ 'gen_ai.system_instructions': system, 'gen_ai.input.messages': input, 'gen_ai.output.messages': output }),
    ).toEqual(expected)
    const texts = {
      system_instructions: JSON.stringify(system),
      input: { messages: JSON.stringify(input) },
      output: { messages: JSON.stringify(output) },
    }
    expect(roles({ gen_ai: texts })).toEqual(expected)
  })

  test('reads OpenAI, the Vercel AI SDK, Traceloop and OpenInference', () => {
    const choices = [
      { message: { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] } },
    ]
    expect(roles({ messages: [{ role: 'user', content: 'Hi' }], choices })).toEqual(['user: Hi', 'assistant: f({})'])
    const vercel = {
      'ai.prompt.messages': '[{"role":"user","content":[{"type":"text","text":"Hi"}]}]',
      'ai.response.text': 'Hello',
    }
    expect(roles(vercel)).toEqual(['user: Hi', 'assistant: Hello'])
    const traceloop = {
      'gen_ai.prompt.0.role': 'user',
      'gen_ai.prompt.0.content': 'Hi',
      'gen_ai.completion.0.content': 'Hello',
    }
    expect(roles(traceloop)).toEqual(['user: Hi', 'assistant: Hello'])
    const inference = {
      'llm.input_messages.0.message.role': 'user',
      'llm.input_messages.0.message.content': 'Hi',
      'llm.output_messages.0.message.content': 'Hello',
    }
    expect(roles(inference)).toEqual(['user: Hi', 'assistant: Hello'])
  })

  test('reads requests and answers as OpenAI, Anthropic, Gemini, Bedrock and LangChain write them', () => {
    const responses = {
      request: { instructions: 'Be kind', input: 'Hi' },
      response: {
        output: [
          { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
          { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"n":1}' },
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] },
        ],
      },
    }
    expect(roles(responses)).toEqual([
      'system: Be kind',
      'user: Hi',
      'assistant: (hm) | f({"n":1})',
      'assistant: Hello',
    ])
    const anthropic = {
      system: [{ type: 'text', text: 'Be kind' }],
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: { n: 1 } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', is_error: true, content: 'no' }] },
      ],
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: 'Sorry' },
      ],
    }
    expect(roles(anthropic)).toEqual([
      'system: Be kind',
      'user: Hi',
      'assistant: f({"n":1})',
      'user: = no',
      'assistant: (hm) | Sorry',
    ])
    const gemini = {
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      candidates: [{ content: { role: 'model', parts: [{ functionCall: { name: 'f', args: { n: 1 } } }] } }],
    }
    expect(roles(gemini)).toEqual(['user: Hi', 'assistant: f({"n":1})'])
    const bedrock = {
      messages: [
        { role: 'assistant', content: [{ toolUse: { toolUseId: 'b', name: 'f', input: {} } }] },
        { role: 'user', content: [{ toolResult: { toolUseId: 'b', content: [{ text: 'done' }] } }] },
      ],
    }
    expect(roles(bedrock)).toEqual(['assistant: f({})', 'user: = done'])
    const langchain = {
      'input.value': JSON.stringify({
        messages: [[{ lc: 1, id: ['langchain_core', 'messages', 'HumanMessage'], kwargs: { content: 'Hi' } }]],
      }),
      'output.value': JSON.stringify({
        generations: [[{ text: 'Hello', message: { id: ['x', 'AIMessage'], kwargs: { content: 'Hello' } } }]],
      }),
    }
    expect(roles(langchain)).toEqual(['user: Hi', 'assistant: Hello'])
  })

  test('reads prompts and answers that are only text, and messages that are events of their own', () => {
    for (const plain of [
      { prompt: 'Hi', response: 'Hello' },
      { prompt: 'Hi', completion: 'Hello' },
      { input: 'Hi', output: 'Hello' },
      { input: { question: 'Hi' }, output: { text: 'Hello' } },
      { 'input.value': 'Hi', 'output.value': 'Hello' },
    ])
      expect(roles(plain)).toEqual(['user: Hi', 'assistant: Hello'])
    expect(roles({ input: { city: 'Rome', days: 3 }, output: 'Sunny' })).toEqual([
      'user: = {"city":"Rome","days":3}',
      'assistant: Sunny',
    ])
    const bar = {
      events: [
        { type: 'gen_ai.user.message', payload: { body: { content: 'Hi' } } },
        { type: 'gen_ai.choice', payload: { body: { index: 0, message: { role: 'assistant', content: 'Hello' } } } },
        { type: 'llm.call', payload: { model: 'm' } },
      ] as unknown as Event[],
    }
    const { input, output } = chatOfBar(bar)
    expect([...input, ...output].map(({ role, parts }) => `${role}: ${parts.map(shown)}`)).toEqual([
      'user: Hi',
      'assistant: Hello',
    ])
  })

  test('images and other bytes are named, never shown', () => {
    const bytes = Buffer.from(Uint8Array.from({ length: 3_000 }, (_, index) => (index * 37) % 251)).toString('base64')
    const parts = [
      { type: 'image_url', image_url: { url: `data:image/png;base64,${bytes}` } },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: bytes } },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      { inlineData: { mimeType: 'audio/wav', data: bytes } },
      { type: 'text', text: 'What is it?' },
    ]
    expect(roles({ messages: [{ role: 'user', content: parts }] })).toEqual([
      'user: <image, image/png, 3 kB> | <image, image/jpeg, 3 kB> | <image> | <audio, audio/wav, 3 kB> | What is it?',
    ])
    const value = { name: 'a', file: { data: bytes }, list: [`data:application/pdf;base64,${bytes}`], n: 1 }
    expect(withoutBlobs(value)).toEqual({
      name: 'a',
      file: { data: '(base64, 3 kB)' },
      list: ['(file, application/pdf, 3 kB)'],
      n: 1,
    })
    // Long texts, ids and digits are no bytes.
    const texts = {
      words: 'some words '.repeat(500),
      digits: '0123456789abcdef'.repeat(100),
      short: bytes.slice(0, 100),
    }
    expect(withoutBlobs(texts)).toBe(texts)
  })

  test('a call and its result are one part; results without a call stay', () => {
    const call = (id: string | null) => ({ type: 'call', id, name: 'f', input: {} }) as const
    const result = (id: string | null, value: unknown) => ({ type: 'result', id, value }) as const
    const fold = (parts: readonly ChatPart[]) =>
      answered(parts.map((part) => ({ role: part.type === 'call' ? 'assistant' : 'tool', parts: [part] }))).flatMap(
        (message) => message.parts.map(shown),
      )
    expect(fold([call('a'), call('b'), result('b', 2), result('a', 1)])).toEqual(['f({}) = 1', 'f({}) = 2'])
    // Ids are used again.
    expect(fold([call('a'), result('a', 1), call('a'), result('a', 2)])).toEqual(['f({}) = 1', 'f({}) = 2'])
    expect(fold([call(null), call(null), result(null, 1)])).toEqual(['f({}) = 1', 'f({})'])
    expect(fold([result('x', 1), call('a')])).toEqual(['= 1', 'f({})'])
  })

  test('the calls of a conversation are shown once, with the figures of each answer and the results that were reported', () => {
    const bar = (id: string, endMs: number, payload: object, kind = 'model') =>
      ({
        id,
        kind,
        name: id,
        startMs: endMs - 100,
        endMs,
        status: 'completed',
        usage: { model: 'm', inputTokens: endMs, outputTokens: 1, costUsd: 0 },
        events: [{ type: kind === 'model' ? 'llm.call' : 'tool.call.finished', payload }],
      }) as unknown as Bar
    const [ask, first, second] = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'c', content: 'done' },
    ]
    const calls = [
      bar('one', 1_000, { messages: [ask], choices: [{ message: first }] }),
      bar('two', 2_000, {
        messages: [ask, first, second],
        choices: [{ message: { role: 'assistant', content: 'Bye' } }],
      }),
    ]
    const said = (bars: readonly Bar[]) =>
      threadsOf(bars).map(({ turns }) =>
        turns.map(({ parts, answer }) => `${parts.map(shown)}${answer ? ` by ${answer.stepId}` : ''}`),
      )
    expect(said(calls)).toEqual([['Hi', 'f({}) = done by one', 'Bye by two']])
    const reported = bar('tool', 1_100, { tool_call_id: 'c', output: 'reported' }, 'tool')
    expect(said([calls[0] as Bar, reported])).toEqual([['Hi', 'f({}) = reported by one']])
    // Without calls in the messages, those that were reported stand between.
    const plain = [bar('a', 1_000, { prompt: 'A', response: 'B' }), bar('b', 2_000, { prompt: 'C', response: 'D' })]
    expect(said([...plain, reported])).toEqual([['A', 'B by a'], ['tool() = reported'], ['C', 'D by b']])
  })

  test('whatever a payload is, it is read in bounded time, and nothing is lost', () => {
    const random = seededRandom('payloads of any shape')
    const names = [
      'messages',
      'content',
      'role',
      'parts',
      'type',
      'text',
      'choices',
      'message',
      'input',
      'output',
      'id',
    ]
    const values = ['user', 'tool', 'tool_use', 'text', '[]', '{"a":', '', null, 5, true]
    const any = (depth: number): unknown => {
      const kind = depth > 4 ? 2 : random.int(0, 2)
      if (kind === 0) return Array.from({ length: random.int(0, 4) }, () => any(depth + 1))
      if (kind === 1) {
        return Object.fromEntries(Array.from({ length: random.int(0, 4) }, () => [random.pick(names), any(depth + 1)]))
      }
      return random.pick(values)
    }
    for (let round = 0; round < 2_000; round++) answered(messagesOf(any(0)))
    const long = { messages: Array.from({ length: 5_000 }, (_, n) => ({ role: 'user', content: `${n}` })) }
    expect(roles(long).at(-1)).toBe('user: 4999')
    expect(roles(long).length).toBe(1_000)
  })

  test('JSON in a string keeps its digits, whatever brackets and quotes are in its own strings', () => {
    const contents = ['{"n":12345678901234567890,"s":"' + '['.repeat(600) + '\\\\\\""}', '[1.0,"a\\\\"]']
    for (const content of contents) {
      const [message] = messagesOf({ messages: [{ role: 'tool', content }] })
      const [part] = message?.parts ?? []
      expect(part?.type === 'result' && typeof part.value).toBe('object')
      expect(part?.type === 'result' && JSON.stringify(part.value)).toBe(content)
    }
  })

  test('JSON in a string of very many values stays text', () => {
    const content = `[${'1,'.repeat(50_000)}1]`
    const [message] = messagesOf({ messages: [{ role: 'tool', content }] })
    expect(message?.parts).toEqual([{ type: 'result', id: null, value: content }])
  })

  test('JSON in a string that is too deep to be printed stays text', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    const [message] = messagesOf({ messages: [{ role: 'tool', content: deep }] })
    expect(message?.parts.map((part) => part.type === 'result' && textOf(part.value) === deep)).toEqual([true])
  })

  test('a payload without messages has no conversation, and odd shapes break nothing', () => {
    for (const payload of [
      {},
      { latency_ms: 5 },
      { messages: 'no' },
      { messages: [null, 5] },
      { choices: {} },
      null,
      'text',
    ])
      expect(messagesOf(payload).every(({ parts }) => parts.length > 0)).toBe(true)
    expect(messagesOf({ latency_ms: 5, model: 'm' })).toEqual([])
    expect(fieldOf({ a: { 'b.c': { d: 1 } } }, 'a.b.c.d')).toBe(1)
    expect(fieldOf({ a: {} }, 'a.constructor')).toBeUndefined()
  })
})
