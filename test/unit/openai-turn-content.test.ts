import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { SPAN_TYPE } from '../../src/openai-traces/span-data.ts'
import { TraceContent } from '../../src/openai-traces/turn-content.ts'
import type { AnyValue, Span } from '../../src/otlp/telemetry.ts'

const OUTPUT = 'gen_ai.output.messages'
const REPORTER = { workspaceId: 'w', agentId: 'a' }

function callOf(answer: AnyValue): Span {
  const attributes = new Map<string, AnyValue>([
    [SPAN_TYPE, 'generation'],
    [OUTPUT, answer],
  ])
  return { attributes, parentSpanId: 'a', startNano: 1, endNano: 2 } as Span
}

test('answers that are remembered take no more memory than their text', () => {
  const content = new TraceContent()
  const maps = () => {
    Bun.gc(true)
    return heapStats().objectTypeCounts.Map ?? 0
  }
  const before = maps()
  for (let i = 0; i < 10; i++)
    content.answerOf(REPORTER, `trace_${i}`, [callOf([Array.from({ length: 10_000 }, () => new Map())])])
  // The last one may still be on the stack.
  expect(maps() - before).toBeLessThan(20_000)
  const known = content.answerOf(REPORTER, 'trace_0', [])?.get(OUTPUT)
  expect(JSON.parse(String(known))).toEqual([Array.from({ length: 10_000 }, () => ({}))])
})

test('an agent that shares a trace does not get the answer of another', () => {
  const content = new TraceContent()
  content.answerOf(REPORTER, 'trace', [callOf('mine')])
  expect(content.answerOf({ ...REPORTER, agentId: 'b' }, 'trace', [])).toBeUndefined()
  expect(content.answerOf({ ...REPORTER, workspaceId: 'v' }, 'trace', [])).toBeUndefined()
  expect(content.answerOf(REPORTER, 'trace', [])?.get(OUTPUT)).toBe('mine')
})
