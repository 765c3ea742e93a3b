import { describe, expect, test } from 'bun:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { ApiError } from '../../src/base/errors.ts'
import { inflateAsync } from '../../src/base/http/inflate.ts'
import { inSlices, SharedSlice } from '../../src/base/http/shared-slice.ts'
import { mapLog, runOfLog } from '../../src/doors/otlp/log-mapping.ts'
import { problemOf } from '../../src/doors/traces/mapping.ts'
import { detailsOfSpans } from '../../src/doors/traces/run-details.ts'
import type { AnyValue, Attributes, LogRecord, Span } from '../../src/doors/traces/telemetry.ts'
import { TraceStore } from '../../src/doors/traces/trace-store.ts'
import { toProtobuf } from '../../src/doors/traces/wire/json.ts'
import { JSON_BYTES_MAX, JsonConverter } from '../../src/doors/traces/wire/json-converter.ts'
import { openMetrics, openTraces } from '../../src/doors/traces/wire/protobuf.ts'
import { parseConfig } from '../../src/service/config/config.ts'
import { Bytes } from '../../src/stores/clickhouse/bytes.ts'
import { attributesOf, inProtobuf, logsOf, span, tracesOf } from '../support/otlp.ts'
import { atOnce, DECODE_LIMITS, type Open, openLogsJson, openTracesJson } from '../support/otlp-decode.ts'

/** What one export may cost, and in how many steps it is decoded, so that the event loop is never stopped for long. */

const { limits } = parseConfig({}, '/')
const context = { workspaceId: '3f2b', limits, now: 1_750_000_000_000 }
const json = (data: object | string) => Buffer.from(typeof data === 'string' ? data : JSON.stringify(data))

function decode<Item>(open: Open<Item>, body: Uint8Array, decodeLimits = DECODE_LIMITS) {
  const opened = atOnce(open(body, decodeLimits))
  const decoded = atOnce(opened.result.decode())
  return { ...decoded.result, cost: opened.result.cost, steps: opened.steps + decoded.steps }
}

const ENCODINGS = [
  ['JSON', openTracesJson, json],
  ['protobuf', openTraces, inProtobuf],
] as const

for (const [encoding, open, encode] of ENCODINGS) {
  describe(`an export in ${encoding}`, () => {
    test('costs its spans and their events, and its size, before any is decoded', () => {
      const events = [{ name: 'a' }, { name: 'b' }]
      expect(atOnce(open(encode(tracesOf([span(), span({ events })])), DECODE_LIMITS)).result.cost).toBe(4)
      const large = tracesOf([span({ attributes: attributesOf({ text: 'x'.repeat(1_000_000) }) })])
      expect(atOnce(open(encode(large), DECODE_LIMITS)).result.cost).toBe(62)
    })

    test('costs the copies of its resource that it makes', () => {
      const spans = Array.from({ length: 100 }, () => span())
      const { cost } = decode(open, encode(tracesOf(spans, { large: 'r'.repeat(50_000) })))
      expect(cost).toBeGreaterThan(300)
    })

    test('is decoded in one step for each span, and in many for a large one', () => {
      const many = decode(open, encode(tracesOf(Array.from({ length: 500 }, () => span()))))
      expect(many.items).toHaveLength(500)
      expect(many.steps).toBeGreaterThanOrEqual(500)
      const wide = attributesOf(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`a${i}`, i])))
      const one = decode(open, encode(tracesOf([span({ attributes: wide })])))
      expect(one.items[0]?.attributes.size).toBe(20_000)
      expect(one.steps).toBeGreaterThanOrEqual(4)
    })

    test('with too large a resource or scope is refused for its spans only', () => {
      const text = 'r'.repeat(DECODE_LIMITS.resourceBytes)
      const scoped = { scopeSpans: [{ scope: { name: text }, spans: [span(), span()] }, { spans: [span()] }] }
      const large = tracesOf([span(), span()], { text })
      const data = { resourceSpans: [...large.resourceSpans, scoped, ...tracesOf([span()]).resourceSpans] }
      const { items, refusals } = decode(open, encode(data))
      expect(items).toHaveLength(2)
      expect(refusals).toMatchObject([
        {
          first: 1,
          items: 2,
          problem: expect.stringMatching(/^the resource has \d+ bytes; at most 65536 are allowed$/),
        },
        { first: 3, items: 2, problem: expect.stringMatching(/^the scope has \d+ bytes; at most 65536 are allowed$/) },
      ])
    })

    test('with too many values or texts in one span is refused for this span only', () => {
      const attributes = attributesOf({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 'x'.repeat(200) })
      const body = encode(tracesOf([span({ attributes }), span()]))
      for (const small of [{ itemParts: 17 }, { itemTextBytes: 195, textBytes: 190 }]) {
        const { items, refusals } = decode(open, body, { ...DECODE_LIMITS, ...small })
        expect([items.length, refusals.length], JSON.stringify(small)).toEqual([1, 1])
        expect(refusals[0]).toMatchObject({ first: 1, items: 1, problem: expect.stringContaining('more ') })
      }
    })

    test('keeps the start of a long text, in whole characters', () => {
      for (const unit of ['x', 'é', '€', '\u{1f600}', '"', '\\', '\n', '\u0001', 'a"é\\u0041\u{1f600}']) {
        const text = unit.repeat(60)
        const body = encode(tracesOf([span({ attributes: attributesOf({ text, after: 1 }) })]))
        for (let textBytes = 40; textBytes < 60; textBytes++) {
          const { items } = decode(open, body, { ...DECODE_LIMITS, textBytes })
          const kept = items[0]?.attributes.get('text') as string
          expect(items[0]?.attributes.get('after')).toBe(1)
          const start = kept.replace(/\ufffd+$/, '')
          expect(text.startsWith(start), `${textBytes} of ${unit}: ${kept}`).toBe(true)
          expect(start.length).toBeGreaterThan(4)
          expect(start.length).toBeLessThan(text.length)
        }
      }
    })
  })
}

describe('in JSON', () => {
  test('white space, unknown members and the order of members do not matter', () => {
    const data = tracesOf([span({ name: 'a "quoted\\" name', attributes: attributesOf({ a: 'é\n', b: 1.5 }) }), span()])
    const [{ resource, scopeSpans }] = data.resourceSpans
    const group = { x: [{ y: ['}', '\\"]'] }], scopeSpans, z: -1.5e3, resource, w: null, v: '', u: {}, t: [] }
    const other = JSON.stringify({ q: 'resourceSpans', resourceSpans: [group], p: [[], {}] }, null, ' \n\t')
    expect(decode(openTracesJson, json(` ${other}\r\n`)).items).toEqual(decode(openTracesJson, json(data)).items)
    const escaped = JSON.stringify(data).replace('"resourceSpans"', '"resource\\u0053pans"')
    expect(decode(openTracesJson, json(escaped)).items).toHaveLength(2)
  })

  test('what is not JSON, or has no list where there is one, is refused', () => {
    const good = JSON.stringify(tracesOf([span()]))
    const bad = [
      ...['{', '[]', '{"a":1', '{"a" 1}', '{"a":1,}', '{,}', '{"a":}', '{"a":[}]}', '{"resourceSpans":[{}', `${good}x`],
      ...[
        '{"resourceSpans":{}}',
        '{"resourceSpans":[{"scopeSpans":1}]}',
        '{"resourceSpans":[{"scopeSpans":[{"spans":{}}]}]}',
      ],
      ...['{"a":"\\', '{"a":"x', '{"resourceSpans":[{"scopeSpans":[{"spans":[{"a":tru}]}]}]}', '{"a":[1,2'],
    ]
    for (const text of bad) {
      expect(() => decode(openTracesJson, json(text)), text).toThrow(/^body: /)
      expect(() => decode(openTracesJson, json(text)), text).not.toThrow(/undefined/)
    }
  })

  test('a byte order mark is skipped, and an empty body is an empty export', () => {
    expect(decode(openTracesJson, json(`\ufeff${JSON.stringify(tracesOf([span()]))}`)).items).toHaveLength(1)
    expect(decode(openTracesJson, json('')).items).toEqual([])
  })

  test('of the wrong type, an item is one without content, and a member is absent', () => {
    const wrong = {
      traceId: 7,
      spanId: 'xyz',
      parentSpanId: 'nothex',
      name: {},
      kind: 'x',
      startTimeUnixNano: {},
      status: 1,
    }
    const { items } = decode(openTracesJson, json(tracesOf([1 as never, wrong, span()])))
    expect(items).toHaveLength(3)
    expect(items[0]).toMatchObject({ traceId: '', spanId: '', name: '' })
    expect(items[1]).toMatchObject({ traceId: '', name: '', kind: 0, startNano: 0, statusCode: 0 })
    // An id that is no hex must not look like none: the span would be a root.
    expect(problemOf({ ...(items[2] as Span), parentSpanId: items[1]?.parentSpanId ?? '' })).toContain('parent_span_id')
    expect(problemOf({ ...(items[2] as Span), spanId: items[1]?.spanId ?? '' })).toContain('span_id')
  })

  test('a long body is parsed in a thread, and becomes the same', async () => {
    const converter = new JsonConverter()
    const spans = Array.from({ length: 2_000 }, () => span({ attributes: attributesOf({ text: 'é"'.repeat(200) }) }))
    const body = json(tracesOf(spans))
    const [all, bad] = await Promise.allSettled([
      converter.convert('w', body, 'traces'),
      converter.convert('w', json(`${body.toString()}x`), 'traces'),
    ])
    expect(all).toEqual({ status: 'fulfilled', value: new Uint8Array(toProtobuf(body, 'traces')) })
    expect(bad).toMatchObject({
      reason: { code: 'VALIDATION_ERROR', message: expect.stringMatching(/^body: not valid JSON/) },
    })
    expect(converter.convert('w', Buffer.alloc(JSON_BYTES_MAX + 1, ' '), 'logs')).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      message: expect.stringContaining('send protobuf'),
    })
  })
})

describe('in protobuf', () => {
  test('unknown fields are skipped in many steps, in the export and in a span', () => {
    const unknown = Buffer.alloc(300_000, Buffer.from([0xa0, 0x06, 1]))
    expect(atOnce(openTraces(unknown, DECODE_LIMITS)).steps).toBeGreaterThanOrEqual(6)
    const spanBytes = Buffer.concat([Buffer.from([0x12, 0xe0, 0xa7, 0x12]), unknown])
    const length = (bytes: Buffer) =>
      Buffer.from([(bytes.length & 0x7f) | 0x80, ((bytes.length >> 7) & 0x7f) | 0x80, bytes.length >> 14])
    const scope = Buffer.concat([Buffer.from([0x12]), length(spanBytes), spanBytes])
    const body = Buffer.concat([Buffer.from([0x0a]), length(scope), scope])
    expect(atOnce(openTraces(body, DECODE_LIMITS)).steps).toBeGreaterThanOrEqual(6)
    const { refusals } = decode(openTraces, body, { ...DECODE_LIMITS, itemParts: 20_000 })
    expect(refusals).toEqual([{ first: 1, items: 1, problem: 'too many fields' }])
    expect(decode(openMetrics, body).items).toEqual([0])
  })
})

test('an export beyond the budget of its key is not decoded', async () => {
  const limited = new ApiError('RATE_LIMITED', 'too many events')
  const decoding = () => {
    throw new Error('was decoded')
  }
  const charged: number[] = []
  const takeBudget = (_: unknown, events: number) => {
    charged.push(events)
    throw limited
  }
  const traces = new TraceStore({ takeBudget } as never)
  const slice = new SharedSlice().of('w')
  const stored = traces.storeExport({ workspaceId: 'w' } as never, { cost: 77, decode: decoding }, {} as never, slice)
  expect(await stored.catch((error: unknown) => error)).toBe(limited)
  expect(charged).toEqual([77])
})

/** Counts how often it is read from its start to its end. */
class CountedAttributes extends Map<string, AnyValue> {
  reads = 0

  override [Symbol.iterator]() {
    this.reads++
    return super[Symbol.iterator]()
  }
}

describe('a resource', () => {
  test('is encoded once for all traces and log records of an export', () => {
    const attributes = new CountedAttributes([
      ['service.name', 'a'],
      ['long', 'x'.repeat(10_000)],
    ])
    const resource = { attributes: attributes as Attributes }
    const { items: spans } = decode(openTraces, inProtobuf(tracesOf([span()])))
    const { items: logs } = decode(openLogsJson, json(logsOf([{ eventName: 'e' }])))
    const details = Array.from(
      { length: 100 },
      () => atOnce(detailsOfSpans([{ ...(spans[0] as Span), resource }], limits, 0)).result,
    )
    expect(details[99]?.metadata.parse()).toMatchObject({ resource: { 'service.name': 'a' } })
    const ids = Array.from({ length: 100 }, (_, i) => {
      const record: LogRecord = { ...(logs[0] as LogRecord), resource, timeNano: i + 1 }
      return `${runOfLog(record, 'a', context).runId} ${mapLog(record, { ...context, out: new Bytes() }, new Map()).id}`
    })
    expect(new Set(ids).size).toBe(100)
    expect(attributes.reads).toBe(1)
  })
})

describe('what all spans of a trace say about their run', () => {
  const detailsOf = (attributes: Attributes, count: number) => {
    const { items } = decode(openTraces, inProtobuf(tracesOf([span()])))
    const spans = Array.from({ length: count }, () => ({ ...(items[0] as Span), attributes }))
    return atOnce(detailsOfSpans(spans, limits, 0))
  }

  test('is looked for in a step for each span', () => {
    const attributes: Attributes = new Map([['langfuse.trace.tags', '[1, 2]']])
    expect(detailsOf(attributes, 1_000).steps).toBeGreaterThan(3_000)
  })

  test('of a long list of tags only the start is read', () => {
    const read = (text: string) => detailsOf(new Map([['langsmith.span.tags', text]]), 1).result.tags
    expect(read('a, b')).toEqual(['a', 'b'])
    expect(read(`${','.repeat(1_000_000)}a`)).toEqual([])
  })
})

describe('a shared time slice', () => {
  /** Does `steps` steps of 6 ms each and notes each one. */
  function* work(name: string, steps: number, done: string[], clock: { ms: number }) {
    for (let i = 0; i < steps; i++) {
      done.push(name)
      clock.ms += 6
      yield
    }
  }

  test('lets the workspaces take turns, whatever number of calls each has', async () => {
    const clock = { ms: 0 }
    const shared = new SharedSlice(() => clock.ms)
    const done: string[] = []
    const calls = ['a', 'a', 'a', 'a', 'b'].map((owner) => inSlices(shared.of(owner), work(owner, 6, done, clock)))
    let iterations = 0
    const counting = setInterval(() => iterations++, 0)
    await calls[4]
    clearInterval(counting)
    expect(done.filter((owner) => owner === 'a').length).toBeLessThan(16)
    await Promise.all(calls)
    expect(done).toHaveLength(30)
  })

  test('lets other work run between its steps', async () => {
    const clock = { ms: 0 }
    const shared = new SharedSlice(() => clock.ms)
    const done: string[] = []
    const call = inSlices(shared.of('a'), work('step', 20, done, clock))
    const other = (async () => {
      for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
      done.push('other')
    })()
    await Promise.all([call, other])
    expect(done.indexOf('other')).toBeLessThan(19)
  })
})

describe('a compressed body', () => {
  const text = Buffer.alloc(3_000_000, 'some text ')
  const noGrowth = { maxBytes: 10_000_000, grow: () => {} }

  for (const [name, compress] of [
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ] as const) {
    test(`is inflated in a thread, counted as it grows, in ${name}`, async () => {
      const grown: number[] = []
      const grow = (bytes: number) => void grown.push(bytes)
      const inflated = await inflateAsync(compress(text), name, { ...noGrowth, grow })
      expect(Buffer.compare(inflated, text)).toBe(0)
      expect(grown.length).toBeGreaterThan(5)
      expect(grown.reduce((sum, bytes) => sum + bytes, 0)).toBe(text.length)
      const small = text.subarray(0, 1_000)
      expect(Buffer.compare(await inflateAsync(compress(small), name, noGrowth), small)).toBe(0)
    })

    test(`that is too large, cut off or something else is refused, in ${name}`, async () => {
      const codeOf = (body: Uint8Array, maxBytes = 10_000_000) =>
        inflateAsync(body, name, { ...noGrowth, maxBytes }).then(
          () => 'accepted',
          (error: unknown) => (error instanceof ApiError ? error.code : `${error}`),
        )
      const random = compress(Buffer.from(crypto.getRandomValues(new Uint8Array(60_000))))
      expect(await codeOf(compress(text), 2_999_999)).toBe('PAYLOAD_TOO_LARGE')
      expect(await codeOf(compress(text), 200_000)).toBe('PAYLOAD_TOO_LARGE')
      expect(await codeOf(random.subarray(0, random.length / 2))).toBe('VALIDATION_ERROR')
      expect(await codeOf(Buffer.alloc(50_000, 'x'))).toBe('VALIDATION_ERROR')
      expect(await codeOf(Buffer.from('x'))).toBe('VALIDATION_ERROR')
    })
  }
})
