import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type protobuf from 'protobufjs'
import { ApiError } from '../../src/base/errors.ts'
import { mapLog } from '../../src/doors/otlp/log-mapping.ts'
import { encodeValue } from '../../src/doors/traces/json-writer.ts'
import { type MappingContext, mapSpan } from '../../src/doors/traces/mapping.ts'
import { detailsOfSpans } from '../../src/doors/traces/run-details.ts'
import { Utf8Text } from '../../src/doors/traces/telemetry.ts'
import { openLogs, openTraces } from '../../src/doors/traces/wire/protobuf.ts'
import { parseConfig } from '../../src/service/config/config.ts'
import { Bytes } from '../../src/stores/clickhouse/bytes.ts'
import { attributesOf, inProtobuf, logsOf, span as spanOf, tracesOf } from '../support/otlp.ts'
import { atOnce, decodedAtOnce, openLogsJson, openTracesJson } from '../support/otlp-decode.ts'
import { objectOf, logsOf as recordsOf, spansOf } from '../support/otlp-oracle.ts'
import { encodeMessage, LogsData, TracesData } from '../support/otlp-proto.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
const RUNS = { seed: SEED, numRuns: 300 }

const text = fc.string({ unit: 'grapheme', maxLength: 12 })
const nano = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String)
const id = (length: number) => fc.uint8Array({ minLength: 0, maxLength: length }).map((bytes) => Buffer.from(bytes))

const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.record({ stringValue: text }),
    fc.record({ boolValue: fc.boolean() }),
    fc.record({ intValue: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String) }),
    fc.record({ doubleValue: fc.double() }),
    fc.record({ bytesValue: id(9) }),
    fc.constant({}),
    fc.record({ arrayValue: fc.record({ values: fc.array(tie('value'), { maxLength: 3 }) }) }),
    fc.record({ kvlistValue: fc.record({ values: fc.array(tie('keyValue'), { maxLength: 3 }) }) }),
  ),
  keyValue: fc.record({ key: text, value: tie('value') }),
}))
const attributes = fc.array(fc.record({ key: text, value }), { maxLength: 4 })

const span = fc.record({
  traceId: id(16),
  spanId: id(8),
  parentSpanId: id(8),
  name: text,
  kind: fc.integer({ min: 0, max: 5 }),
  startTimeUnixNano: nano,
  endTimeUnixNano: nano,
  attributes,
  droppedAttributesCount: fc.nat(),
  traceState: text,
  flags: fc.nat(),
  events: fc.array(fc.record({ timeUnixNano: nano, name: text, attributes }), { maxLength: 2 }),
  links: fc.array(fc.record({ traceId: id(16), spanId: id(8), traceState: text, attributes }), { maxLength: 2 }),
  status: fc.record({ message: text, code: fc.integer({ min: 0, max: 2 }) }),
})
const logRecord = fc.record({
  timeUnixNano: nano,
  observedTimeUnixNano: nano,
  severityNumber: fc.integer({ min: 0, max: 24 }),
  severityText: text,
  body: value,
  attributes,
  traceId: id(16),
  spanId: id(8),
  eventName: text,
})
const grouped = <T>(byResource: string, byScope: string, items: string, item: fc.Arbitrary<T>) =>
  fc
    .array(
      fc.record({
        resource: fc.record({ attributes }),
        [byScope]: fc.array(
          fc.record({ scope: fc.record({ name: text, version: text }), [items]: fc.array(item, { maxLength: 3 }) }),
          { maxLength: 2 },
        ),
        schemaUrl: text,
      }),
      { maxLength: 2 },
    )
    .map((groups) => ({ [byResource]: groups }))
const traces = grouped('resourceSpans', 'scopeSpans', 'spans', span)
const logs = grouped('resourceLogs', 'scopeLogs', 'logRecords', logRecord)

const [decodeTraces, decodeLogs] = [decodedAtOnce(openTraces), decodedAtOnce(openLogs)]
const [decodeTracesJson, decodeLogsJson] = [decodedAtOnce(openTracesJson), decodedAtOnce(openLogsJson)]

/** What protobufjs decodes, in the JSON encoding of OTLP. */
function inJson(type: protobuf.Type, bytes: Uint8Array): Uint8Array {
  const object = type.toObject(type.decode(bytes), { longs: String, arrays: true })
  const json = JSON.stringify(object, function (this: Record<string, unknown>, key, plain) {
    const raw = this[key]
    if (raw instanceof Uint8Array) return Buffer.from(raw).toString(key === 'bytesValue' ? 'base64' : 'hex')
    if (typeof raw === 'number' && !Number.isFinite(raw)) return String(raw)
    return Object.is(raw, -0) ? '-0' : plain
  })
  return Buffer.from(json)
}

function attempt<T>(decode: () => T): T | 'refused' {
  try {
    return decode()
  } catch (error) {
    if (error instanceof ApiError && error.code === 'VALIDATION_ERROR') return 'refused'
    throw error
  }
}

describe(`the OTLP decoders (SEED=${SEED})`, () => {
  test('read spans as protobufjs does, in both encodings', () => {
    fc.assert(
      fc.property(traces, (data) => {
        const bytes = encodeMessage(TracesData, data)
        const spans = decodeTraces(bytes)
        expect(spans).toEqual(spansOf(objectOf(TracesData, bytes)))
        expect(decodeTracesJson(inJson(TracesData, bytes))).toEqual(spans)
      }),
      RUNS,
    )
  })

  test('read log records as protobufjs does, in both encodings', () => {
    fc.assert(
      fc.property(logs, (data) => {
        const bytes = encodeMessage(LogsData, data)
        const records = decodeLogs(bytes)
        expect(records).toEqual(recordsOf(objectOf(LogsData, bytes)))
        expect(decodeLogsJson(inJson(LogsData, bytes))).toEqual(records)
      }),
      RUNS,
    )
  })

  test('refuse or read any bytes, and never fail otherwise', () => {
    fc.assert(
      fc.property(traces, fc.nat(), fc.uint8Array({ maxLength: 4 }), (data, place, insert) => {
        const bytes = encodeMessage(TracesData, data)
        const at = place % (bytes.length + 1)
        const broken = Buffer.concat([bytes.subarray(0, at), insert, bytes.subarray(at + (place % 3))])
        for (const decode of [decodeTraces, decodeLogs, decodeTracesJson]) attempt<unknown>(() => decode(broken))
        attempt(() => decodeTraces(bytes.subarray(0, at)))
      }),
      { ...RUNS, numRuns: 1_000 },
    )
  })

  test('refuse what protobufjs refuses: the first half of an export', () => {
    fc.assert(
      fc.property(traces, fc.nat(), (data, place) => {
        const bytes = encodeMessage(TracesData, data)
        const half = bytes.subarray(0, place % (bytes.length + 1))
        let isRefused = false
        try {
          TracesData.decode(half)
        } catch {
          isRefused = true
        }
        expect(attempt(() => decodeTraces(half)) === 'refused').toBe(isRefused)
      }),
      RUNS,
    )
  })
})

const piece = fc.oneof(
  fc.constantFrom('"', '\\', '\n', '\0', '\x1f', '\x7f', ' ', '[{"a":"', '"}]', 'é', '\u2028', '\ufeff', '😀'),
  fc.string({ maxLength: 40 }),
)
/** Longer and shorter than the strings that stay bytes. */
const longText = fc.oneof(
  fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join('')),
  fc.json({ maxDepth: 3 }).map((json) => ` [${json},${json},"${'x'.repeat(120)}"]\n`),
  fc.constantFrom(70_000, 20_000).map((length) => 'é"\n'.repeat(length / 3)),
)

describe(`long strings (SEED=${SEED})`, () => {
  const limits = { ...parseConfig({}, '/').limits, event_payload_bytes: 50_000, run_input_bytes: 30_000 }
  const context = { workspaceId: 'w', limits, now: 0 }
  /** What `map` makes of an item, with the JSON that it writes. */
  const mapped = <Mapped>(map: (context: MappingContext) => Mapped) => {
    const out = new Bytes()
    return { item: map({ ...context, out }), json: out.view().toString() }
  }

  test('of protobuf become the same bytes in the stores as those of JSON', () => {
    const names = [
      'input.value',
      'output.value',
      'gen_ai.prompt.0.content',
      'session.id',
      'tag.tags',
      'gen_ai.agent.name',
    ]
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names, 'other'), longText), (values) => {
        const event = { name: 'exception', attributes: attributesOf(values) }
        const traces = tracesOf([spanOf({ attributes: attributesOf(values), events: [event], status: { code: 2 } })])
        const [spans, sameSpans] = [
          decodeTraces(inProtobuf(traces)),
          decodeTracesJson(Buffer.from(JSON.stringify(traces))),
        ]
        expect(mapped((to) => mapSpan(spans[0]!, String, to))).toEqual(
          mapped((to) => mapSpan(sameSpans[0]!, String, to)),
        )
        expect(atOnce(detailsOfSpans(spans, limits, 0))).toEqual(atOnce(detailsOfSpans(sameSpans, limits, 0)))
        const logs = logsOf([{ body: { stringValue: Object.values(values).join() }, attributes: attributesOf(values) }])
        const [record, same] = [decodeLogs(inProtobuf(logs)), decodeLogsJson(Buffer.from(JSON.stringify(logs)))]
        expect(mapped((to) => mapLog(record[0]!, to, new Map()))).toEqual(
          mapped((to) => mapLog(same[0]!, to, new Map())),
        )
      }),
      { ...RUNS, numRuns: 100 },
    )
  })

  test('that are not UTF-8 get replacement characters', () => {
    const body = inProtobuf(tracesOf([spanOf({ attributes: attributesOf({ text: 'é'.repeat(200) }) })]))
    body[body.lastIndexOf(0xa9)] = 0x20
    expect(decodeTraces(body)[0]?.attributes.get('text')).toBe(`${'é'.repeat(199)}\ufffd `)
  })
})

test(`text becomes the JSON that JSON.stringify makes (SEED=${SEED})`, () => {
  const unit = fc.oneof(piece, fc.constantFrom('\ud800', '\udfff'))
  fc.assert(
    fc.property(fc.array(unit), (units) => {
      const text = units.join('')
      expect(encodeValue(text)).toBe(JSON.stringify(text))
      const utf8 = Buffer.from(text)
      if (text.isWellFormed()) expect(encodeValue(new Utf8Text(utf8, 0, utf8.length))).toBe(JSON.stringify(text))
    }),
    { ...RUNS, numRuns: 3_000 },
  )
})
