import { describe, expect, test } from 'bun:test'
import { previewOf } from '../../src/base/conventions/preview.ts'
import { chatOf } from '../../src/dashboard/page/sessions/chat.ts'

/** What lists and conversations show of the input and output of runs, which may have any shape. */

describe('a preview', () => {
  const inputs: [string, unknown, string | null][] = [
    ['a message', { message: ' two\n lines ', n: 1 }, 'two lines'],
    ['the last of several messages', { messages: [{ content: 'one' }, { role: 'user', content: 'two' }] }, 'two'],
    [
      'the text of a message in parts',
      { messages: [{ content: [{ type: 'image' }, { type: 'text', text: 'what?' }] }] },
      'what?',
    ],
    ['a nested input', { input: { question: 'why?' } }, 'why?'],
    ['the only member', { city: 'Kyiv' }, 'Kyiv'],
    ['other JSON', { from: 1, to: 2 }, '{"from":1,"to":2}'],
    ['a member of every object', { constructor: 'x', a: 1 }, '{"constructor":"x","a":1}'],
    ['an empty message', { message: '', a: 1 }, '{"message":"","a":1}'],
    ['nothing', {}, null],
  ]
  test.each(inputs)('of an input: %s', (_, value, expected) => {
    expect(previewOf(JSON.stringify(value), 'input')).toBe(expected)
  })

  test('of an output prefers its text', () => {
    expect(previewOf('{"message":"m","text":"t"}', 'output')).toBe('t')
  })

  const answers: [string, Record<string, unknown>][] = [
    ['OpenAI chat', { id: 'x', choices: [{ message: { role: 'assistant', content: 'Hello' } }], usage: {} }],
    [
      'OpenAI responses',
      {
        id: 'x',
        output: [
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] },
          { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
          { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        ],
      },
    ],
    [
      'Anthropic',
      {
        content: [
          { type: 'text', text: 'Hello' },
          { type: 'tool_use', id: 't', name: 'f', input: { query: 'no' } },
        ],
      },
    ],
    ['Gemini', { candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] } }], usageMetadata: {} }],
    ['LangChain', { generations: [[{ text: 'Hello', message: { content: 'Hello' } }]], llm_output: {} }],
  ]
  test.each(answers)('of an output is what was said, as %s writes it, and no call of a tool', (_, output) => {
    expect(previewOf(JSON.stringify(output), 'output')).toBe('Hello')
    const messages = chatOf({ input: {}, output })
    expect(JSON.stringify(messages)).toContain('{"type":"text","text":"Hello"}')
  })

  test('of an input is the last message of a person, not the result of a tool', () => {
    const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]
    expect(previewOf(JSON.stringify({ contents, systemInstruction: { parts: [{ text: 's' }] } }), 'input')).toBe('Hi')
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c' }] },
      { role: 'tool', tool_call_id: 'c', content: '{"n":1}' },
    ]
    expect(previewOf(JSON.stringify({ model: 'm', messages }), 'input')).toBe('Hi')
  })

  test('looks at a limited part of a long conversation', () => {
    const silent = (count: number) => ({ messages: [{ content: 'Hi' }, ...Array.from({ length: count }, () => ({}))] })
    expect(previewOf(JSON.stringify(silent(100)), 'input')).toBe('Hi')
    expect(previewOf(JSON.stringify(silent(1_000)), 'input')).toStartWith('{"messages":')
  })

  test('is at most 240 characters of one line, however long or deep the JSON', () => {
    const long = previewOf(JSON.stringify({ message: '😀 '.repeat(10_000) }), 'input') ?? ''
    expect([...long].length).toBe(240)
    expect(long.endsWith('…')).toBe(true)
    const deep = `${'{"input":'.repeat(1_000)}"x"${'}'.repeat(1_000)}`
    expect([...(previewOf(deep, 'input') ?? '')].length).toBe(240)
  })

  test('of truncated JSON finds the message, or shows its beginning', () => {
    expect(previewOf('{"id":1,"message":"so \\"far\\"\\nand', 'input')).toBe('so "far" and')
    expect(previewOf('{"id":1,"rows":[1,2', 'input')).toBe('{"id":1,"rows":[1,2')
    expect(previewOf('{"message":"a\\ud83', 'input')?.isWellFormed()).toBe(true)
  })
})

describe('the conversation of a session', () => {
  const text = (role: string, said: string) => ({ role, parts: [{ type: 'text' as const, text: said }] })

  test('is the message and the answer of each run', () => {
    expect(chatOf({ input: { message: 'Hi' }, output: { text: 'Hello' } })).toEqual([
      text('user', 'Hi'),
      text('assistant', 'Hello'),
    ])
    expect(chatOf({ input: {}, output: null })).toEqual([])
  })

  test('has what a run got beside its message, and whole JSON without one', () => {
    expect(chatOf({ input: { message: 'Why?', shop: 7 }, output: null })).toEqual([
      {
        role: 'user',
        parts: [
          { type: 'text', text: 'Why?' },
          { type: 'other', value: { shop: 7 } },
        ],
      },
    ])
    expect(chatOf({ input: { question: 'Why?', shop: 7 }, output: { rows: [1], total: 1 } })).toEqual([
      {
        role: 'user',
        parts: [
          { type: 'text', text: 'Why?' },
          { type: 'other', value: { shop: 7 } },
        ],
      },
      { role: 'assistant', parts: [{ type: 'other', value: { rows: [1], total: 1 } }] },
    ])
  })

  test('shows of a repeated conversation what is new', () => {
    const messages = [
      { role: 'system', content: 'Help.' },
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'ONE' },
      { role: 'user', content: 'two' },
    ]
    expect(chatOf({ input: { messages }, output: null })).toEqual([text('user', 'two')])
    expect(chatOf({ input: { messages: messages.slice(0, 2) }, output: null })).toEqual([
      text('system', 'Help.'),
      text('user', 'one'),
    ])
  })
})
