import { describe, expect, test } from 'bun:test'
import { mapLog, runOfLog } from '../../src/doors/otlp/log-mapping.ts'
import { kindOf, sessionOf, tagsOf, usageOf, userOf } from '../../src/doors/traces/conventions.ts'
import { hashedId, spanTaskIds } from '../../src/doors/traces/ids.ts'
import { mapSpan, problemOf } from '../../src/doors/traces/mapping.ts'
import { writePayload } from '../../src/doors/traces/payload.ts'
import type { AnyValue, Attributes, LogRecord, Range, Span } from '../../src/doors/traces/telemetry.ts'
import { parseConfig } from '../../src/service/config/config.ts'
import { Bytes } from '../../src/stores/clickhouse/bytes.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'
const START = 1_750_000_000_000
const out = new Bytes()
const context = { workspaceId: '3f2b', limits: parseConfig({}, '/').limits, now: START + 60_000, out }

const taskIdOf = spanTaskIds('3f2b', TRACE)

function attributes(values: Record<string, AnyValue> = {}): Attributes {
  return new Map(Object.entries(values))
}

function span(values: Partial<Span> = {}): Span {
  return {
    resource: { attributes: attributes() },
    scope: '',
    traceId: TRACE,
    spanId: SPAN,
    parentSpanId: '',
    name: 'a span',
    kind: 1,
    startNano: START * 1e6,
    endNano: (START + 250) * 1e6,
    attributes: attributes(),
    events: [],
    links: [],
    statusCode: 0,
    statusMessage: '',
    ...values,
  }
}

function log(values: Partial<LogRecord> = {}): LogRecord {
  return {
    resource: { attributes: attributes() },
    scope: '',
    timeNano: START * 1e6,
    observedNano: 0,
    severityNumber: 0,
    severityText: '',
    eventName: '',
    body: null,
    attributes: attributes(),
    traceId: '',
    spanId: '',
    ...values,
  }
}

function textAt(range: Range): string {
  return out.buffer.toString('utf8', range.start, range.end)
}

// biome-ignore lint/suspicious/noExplicitAny: each test knows what it wrote.
function parsed(range: Range | null): any {
  return range === null ? null : JSON.parse(textAt(range))
}

describe('the kind of a span', () => {
  const cases: [string, Record<string, AnyValue>][] = [
    ['model', { 'gen_ai.operation.name': 'chat' }],
    ['model', { 'gen_ai.operation.name': 'embeddings' }],
    ['tool', { 'gen_ai.operation.name': 'execute_tool' }],
    ['agent', { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.request.model': 'm' }],
    ['model', { 'openinference.span.kind': 'LLM' }],
    ['other', { 'openinference.span.kind': 'CHAIN', 'llm.model_name': 'm' }],
    ['agent', { 'openinference.span.kind': 'AGENT' }],
    ['other', { 'ai.operationId': 'ai.generateText', 'ai.model.id': 'm', 'gen_ai.request.model': 'm' }],
    ['model', { 'ai.operationId': 'ai.generateText.doGenerate' }],
    ['model', { 'ai.operationId': 'ai.streamText.doStream' }],
    ['tool', { 'ai.operationId': 'ai.toolCall' }],
    ['other', { 'traceloop.span.kind': 'workflow' }],
    ['tool', { 'traceloop.span.kind': 'tool' }],
    ['tool', { 'gen_ai.tool.name': 'search' }],
    ['model', { 'gen_ai.request.model': 'm' }],
    ['other', { 'http.request.method': 'GET' }],
    // Gemini CLI.
    ['model', { 'gen_ai.operation.name': 'llm_call' }],
    ['tool', { 'gen_ai.operation.name': 'tool_call' }],
    ['tool', { 'gen_ai.operation.name': 'run_function', 'gen_ai.tool.name': 'search' }],
    ['model', { 'gen_ai.operation.name': 'inference', 'gen_ai.request.model': 'm' }],
    ['other', { 'gen_ai.operation.name': 'agent_call', 'gen_ai.request.model': 'm' }],
    ['other', { 'gen_ai.operation.name': 'invoke_workflow', 'gen_ai.request.model': 'm' }],
    ['other', { 'gen_ai.operation.name': 'retrieval', 'gen_ai.request.model': 'm' }],
  ]
  for (const [kind, values] of cases) {
    test(`is ${kind} for ${JSON.stringify(values)}`, () => expect(kindOf(attributes(values))).toBe(kind as never))
  }
})

describe('a span', () => {
  test('becomes a completed task with the times of the client, and one event', () => {
    const mapped = mapSpan(
      span({
        parentSpanId: '00f067aa0ba902b7',
        attributes: attributes({ 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 7, n: 2n ** 60n }),
      }),
      taskIdOf,
      context,
    )
    expect(mapped).toMatchObject({
      name: 'a span',
      status: 'completed',
      startedAt: START,
      completedAt: START + 250,
      errorMessage: null,
      taskId: taskIdOf(SPAN),
      parentTaskId: taskIdOf('00f067aa0ba902b7'),
    })
    expect(mapped.events).toHaveLength(1)
    expect(mapped.events[0]).toMatchObject({ type: 'llm.call', level: 'info', occurredAt: START + 250 })
    expect(textAt(mapped.events[0].payload)).toContain('"n":1152921504606846976')
    expect(parsed(mapped.events[0].payload)).toMatchObject({
      'gen_ai.usage.input_tokens': 7,
      duration_ms: 250,
      status: 'unset',
      trace_id: TRACE,
      span_id: SPAN,
      parent_span_id: '00f067aa0ba902b7',
    })
  })

  test('with an error becomes a failed task; its exception is an event of its own, before it', () => {
    const exception = {
      timeNano: START * 1e6,
      name: 'exception',
      attributes: attributes({ 'exception.message': 'no' }),
    }
    const mapped = mapSpan(span({ statusCode: 2, events: [exception] }), taskIdOf, context)
    expect(mapped).toMatchObject({ status: 'failed', errorMessage: 'no' })
    expect(mapped.events.map(({ type, level }) => [type, level])).toEqual([
      ['exception', 'error'],
      ['span', 'error'],
    ])
    expect(new Set(mapped.events.map((event) => event.id)).size).toBe(2)
  })

  test('without an end is a running task without events', () => {
    expect(mapSpan(span({ endNano: 0 }), taskIdOf, context)).toMatchObject({
      status: 'running',
      completedAt: null,
      events: [],
    })
  })

  test('that ends before it starts, or far in the future, has times that the stores accept', () => {
    expect(mapSpan(span({ endNano: (START - 5) * 1e6 }), taskIdOf, context)).toMatchObject({ completedAt: START })
    expect(mapSpan(span({ endNano: 2 ** 64 }), taskIdOf, context).completedAt).toBe(Date.UTC(2300, 0, 1) - 1)
  })

  test('with a NUL, a lone surrogate or no name has a name that the stores accept', () => {
    expect(mapSpan(span({ name: 'a\0b\ud800' }), taskIdOf, context).name).toBe('a\ufffdb\ufffd')
    expect(mapSpan(span({ name: '' }), taskIdOf, context).name).toBe('span')
  })

  test('event with the name of a system event gets a prefix', () => {
    const events = [{ timeNano: 0, name: 'run.completed', attributes: attributes() }]
    expect(mapSpan(span({ events }), taskIdOf, context).events[0].type).toBe('otel.run.completed')
  })

  test('is rejected for ids that are too short, zero or not hex', () => {
    expect(problemOf(span())).toBeNull()
    expect(problemOf(span({ parentSpanId: '0000000000000000' }))).toBeNull()
    expect(problemOf(span({ traceId: '00' }))).toContain('trace_id')
    expect(problemOf(span({ traceId: '0'.repeat(32) }))).toContain('trace_id')
    expect(problemOf(span({ spanId: 'xyz' }))).toContain('span_id')
    expect(problemOf(span({ parentSpanId: 'abc' }))).toContain('parent_span_id')
  })

  test.each([
    ['levels that a store takes', `${'['.repeat(100)}${']'.repeat(100)}`, 'value'],
    ['more levels', `${'['.repeat(101)}${']'.repeat(101)}`, 'text'],
    ['many objects, but few levels', `[${'{},'.repeat(200)}{}]`, 'messages'],
    ['more than is parsed', `[${'1,'.repeat(100_000)}1]`, 'value'],
    ['more than is parsed, cut off', `[${'1,'.repeat(100_000)}1`, 'text'],
    ['no value', '[1,]', 'text'],
  ])('takes a string for JSON that has %s, or not', (_, text, member) => {
    const { input } = mapSpan(span({ attributes: attributes({ 'input.value': text }) }), taskIdOf, context)
    expect(Object.keys(parsed(input) as object)).toEqual([member])
  })

  test('has input and output from each convention', () => {
    const io = (values: Record<string, AnyValue>) => {
      const { input, output } = mapSpan(span({ attributes: attributes(values) }), taskIdOf, context)
      return [parsed(input), parsed(output)]
    }
    expect(io({ 'input.value': '{"q":1}', 'output.value': 'plain' })).toEqual([{ q: 1 }, { text: 'plain' }])
    expect(io({ 'gen_ai.input.messages': '[{"role":"user"}]', 'gen_ai.output.messages': '[]' })).toEqual([
      { messages: [{ role: 'user' }] },
      { value: [] },
    ])
    expect(
      io({ 'gen_ai.prompt.0.role': 'user', 'gen_ai.prompt.0.content': 'hi', 'gen_ai.completion.0.content': 'ho' }),
    ).toEqual([{ messages: [{ role: 'user', content: 'hi' }] }, { messages: [{ content: 'ho' }] }])
    expect(io({ 'ai.toolCall.args': '{"city":"Rome"}', 'ai.toolCall.result': '21' })).toEqual([
      { city: 'Rome' },
      { text: '21' },
    ])
    expect(
      io({ 'mastra.span.type': 'agent_run', 'mastra.agent_run.input': 'hi', 'mastra.agent_run.output': '{"a":1}' }),
    ).toEqual([{ text: 'hi' }, { a: 1 }])
    expect(io({})).toEqual([null, null])
  })
})

describe('usage', () => {
  test('is added under the standard names if the attributes have it under others', () => {
    expect(
      Object.fromEntries(
        usageOf(attributes({ 'llm.token_count.prompt': 5, 'llm.token_count.completion': '6', 'llm.model_name': 'm' })),
      ),
    ).toEqual({ 'gen_ai.usage.input_tokens': 5, 'gen_ai.usage.output_tokens': 6, 'gen_ai.response.model': 'm' })
    expect(usageOf(attributes({ 'gen_ai.usage.input_tokens': 5 })).size).toBe(0)
    expect(usageOf(attributes({ 'gen_ai.usage.cost': 0.25 })).get('cost_usd')).toBe(0.25)
  })
})

test('session, user and tags are found under the names of each instrumentation', () => {
  const names = {
    'AI SDK 7': 'ai.settings.context.{sessionId,userId,tags}',
    Traceloop: 'traceloop.association.properties.{session_id,user_id}',
    'Traceloop, as its guide has it': 'traceloop.association.properties.{sessionId,userId}',
    LangSmith: 'langsmith.metadata.{session_id,user_id}',
    'LangSmith, threads': 'langsmith.metadata.{thread_id,user_id}',
    'LangSmith, conversations': 'langsmith.metadata.{conversation_id,user_id}',
    Laminar: 'lmnr.association.properties.{session_id,user_id,tags}',
  }
  for (const [who, pattern] of Object.entries(names)) {
    const [, prefix, list] = /^(.*)\{(.*)\}$/.exec(pattern)!
    const [session, user, tags] = list!.split(',').map((name) => prefix + name)
    const sent = attributes({ [session!]: 's-1', [user!]: 'u-1', ...(tags !== undefined && { [tags]: ['a', 'b'] }) })
    expect([who, sessionOf(sent), userOf(sent)]).toEqual([who, 's-1', 'u-1'])
    if (tags !== undefined) expect(tagsOf(sent)).toEqual(['a', 'b'])
  }
  expect(sessionOf(attributes({ 'conversation.id': 'codex-1' }))).toBe('codex-1')
  expect(tagsOf(attributes({ 'langsmith.span.tags': 'a, b,' }))).toEqual(['a', 'b'])
})

test('tags are an array, also as JSON text, or one string', () => {
  expect(tagsOf(attributes({ 'tag.tags': '["t1","t2"]' }))).toEqual(['t1', 't2'])
  expect(tagsOf(attributes({ 'tag.tags': '[draft] a' }))).toEqual(['[draft] a'])
  expect(tagsOf(attributes({ 'langfuse.trace.tags': ['a', '', 'b'] }))).toEqual(['a', 'b'])
  expect(tagsOf(attributes({ 'tag.tags': 'a' }))).toEqual(['a'])
})

describe('a payload above the limit', () => {
  test('is cut at its largest strings, and names them', () => {
    const json = writePayload(out, attributes({ small: 'kept', big: 'é"\n'.repeat(5_000), n: 1 }), [], 8_192)
    expect(json.end - json.start).toBeLessThanOrEqual(8_192)
    expect(parsed(json)).toMatchObject({ small: 'kept', n: 1, truncated: ['big'] })
    expect(parsed(json).big).toStartWith('é"\né"\n')
  })

  test('of 100,000 attributes keeps the first ones', () => {
    const many = attributes(Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`key ${i}`, i])))
    const json = writePayload(out, many, [['trace_id', TRACE]], 65_536)
    expect(json.end - json.start).toBeLessThanOrEqual(65_536)
    const payload = parsed(json)
    expect(payload).toMatchObject({ 'key 0': 0, trace_id: TRACE })
    expect(payload.truncated.at(-1)).toMatch(/^and \d+ more$/)
  })

  test('keeps the members that the service adds', () => {
    const json = writePayload(out, attributes({ big: 'x'.repeat(9_000) }), [['trace_id', TRACE]], 8_192)
    expect(parsed(json)).toMatchObject({ trace_id: TRACE, truncated: ['big'] })
  })
})

describe('a log record', () => {
  test('becomes an event with its name, level, body and attributes', () => {
    const record = log({ eventName: 'step', severityNumber: 13, body: 'hello', attributes: attributes({ a: 1 }) })
    const event = mapLog(record, context, new Map())
    expect(event).toMatchObject({ type: 'step', level: 'warn', occurredAt: START })
    expect(parsed(event.payload)).toEqual({ a: 1, body: 'hello' })
    expect(mapLog(log({ severityText: 'ERROR' }), context, new Map())).toMatchObject({ type: 'log', level: 'error' })
  })

  test('has the same id in a repeated export, and equal records of one export have different ids', () => {
    const first = new Map<string, number>()
    const second = new Map<string, number>()
    const ids = (copies: Map<string, number>) => [log(), log()].map((record) => mapLog(record, context, copies).id)
    expect(new Set(ids(first)).size).toBe(2)
    const again = ids(second)
    expect(again).toEqual(ids(new Map()))
  })

  test('belongs to the run of its trace, else of its session, else of its resource and day', () => {
    const runs = [
      log({ traceId: TRACE }),
      log({ attributes: attributes({ 'session.id': 's' }) }),
      log({ resource: { attributes: attributes({ 'service.name': 'a' }) } }),
      log({ resource: { attributes: attributes({ 'service.name': 'a' }) }, timeNano: (START + 86_400_000) * 1e6 }),
    ].map((record) => runOfLog(record, 'a', context))
    expect(runs.map(({ externalRunId }) => externalRunId)).toEqual([TRACE, 's', 'a 2025-06-15', 'a 2025-06-16'])
    expect(new Set(runs.map(({ runId }) => runId)).size).toBe(4)
  })
})

test('derived ids are UUIDs of version 8 and do not depend on anything else', () => {
  expect(hashedId('a', 'b')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(hashedId('a', 'b')).toBe(hashedId('a', 'b'))
  expect(hashedId('a', 'b')).not.toBe(hashedId('b', 'a'))
})
