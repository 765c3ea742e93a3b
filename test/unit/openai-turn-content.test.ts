import { expect, test } from 'bun:test'
import { SPAN_TYPE } from '../../src/doors/openai-traces/span-data.ts'
import { TraceContent } from '../../src/doors/openai-traces/turn-content.ts'
import type { AnyValue, Span } from '../../src/doors/traces/telemetry.ts'

const OUTPUT = 'gen_ai.output.messages'
const REPORTER = { workspaceId: 'w', agentId: 'a' }

function callOf(answer: AnyValue): Span {
  const attributes = new Map<string, AnyValue>([
    [SPAN_TYPE, 'generation'],
    [OUTPUT, answer],
  ])
  return { attributes, parentSpanId: 'a', startNano: 1, endNano: 2 } as Span
}

test('an answer is remembered as text, because a tree of values takes up to fifty times the memory', () => {
  const content = new TraceContent()
  const answer = [Array.from({ length: 1_000 }, () => new Map())]
  content.answerOf(REPORTER, 'trace', [callOf(answer)])
  const known = content.answerOf(REPORTER, 'trace', [])?.get(OUTPUT)
  expect(known).toBe(JSON.stringify([Array.from({ length: 1_000 }, () => ({}))]))
})

test('an agent that shares a trace does not get the answer of another', () => {
  const content = new TraceContent()
  content.answerOf(REPORTER, 'trace', [callOf('mine')])
  expect(content.answerOf({ ...REPORTER, agentId: 'b' }, 'trace', [])).toBeUndefined()
  expect(content.answerOf({ ...REPORTER, workspaceId: 'v' }, 'trace', [])).toBeUndefined()
  expect(content.answerOf(REPORTER, 'trace', [])?.get(OUTPUT)).toBe('mine')
})

test('the end of a trace that is sent again has the answer again', () => {
  const content = new TraceContent()
  content.answerOf(REPORTER, 'trace', [callOf('at last')])
  const end = { attributes: new Map<string, AnyValue>(), parentSpanId: '', startNano: 1, endNano: 3 } as Span
  for (let attempt = 1; attempt <= 2; attempt++)
    expect(content.answerOf(REPORTER, 'trace', [end])?.get(OUTPUT)).toBe('at last')
})
