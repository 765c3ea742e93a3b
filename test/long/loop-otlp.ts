import { gzipSync, zstdCompressSync } from 'node:zlib'
import { type LoopCase, MIB } from './loop-case.ts'

/** The limit of an export, with room for the frame around the repeated part. */
const FULL = 64 * MIB - 4_096
/** The same for JSON. */
const JSON_FULL = 8 * MIB - 4_096

type Signal = 'traces' | 'logs' | 'metrics'

function hostile(name: string, signal: Signal, type: string, make: () => Uint8Array, encoding?: string): LoopCase {
  return {
    name: `OTLP ${signal}, ${type}: ${name}${encoding === undefined ? '' : ` (${encoding})`}`,
    // Said here, because making an export to see which route it calls takes seconds.
    route: `POST /otlp/v1/${signal}`,
    status: 'any',
    request: () => ({
      method: 'POST',
      path: `/otlp/v1/${signal}`,
      headers: {
        'content-type': type === 'JSON' ? 'application/json' : 'application/x-protobuf',
        ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
      },
      body: make(),
    }),
  }
}

function varint(value: number): number[] {
  const bytes: number[] = []
  for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80)
  return [...bytes, value]
}

type Part = Uint8Array | string | number[]

/** A length-delimited field of protobuf. */
function field(number: number, ...parts: Part[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array)))
  return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(content.length)]), content])
}

/** So many repetitions that they have about `bytes` bytes. */
function filled(bytes: number, unit: Part): Buffer {
  const one = Buffer.from(unit as Uint8Array)
  return Buffer.alloc(Math.floor(bytes / one.length) * one.length, one)
}

function random(bytes: number): Buffer {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes)))
}

/** Different units, as many as fit. */
function each(bytes: number, unit: (index: number) => Buffer): Buffer {
  const all: Buffer[] = []
  for (let length = 0, i = 0; ; i++) {
    const next = unit(i)
    length += next.length
    if (length > bytes) return Buffer.concat(all)
    all.push(next)
  }
}

const TIMES = [7, 8].map((number) => Buffer.from([(number << 3) | 1, 0, 0, 0xc4, 0x11, 0x0a, 0x1c, 0x90, 0x18]))
const PARENT = Buffer.alloc(8, 7)
const spanWith = (traceId: Uint8Array, ...parts: Part[]) =>
  field(2, field(1, traceId), field(2, random(8)), field(4, PARENT), ...TIMES, ...parts)
const textValue = (text: Part) => field(2, field(1, text))
const attribute = (key: Part, value: Buffer) => field(9, field(1, key), value)
const exported = (resource: Part, ...scopes: Buffer[]) => field(1, field(1, resource), ...scopes)
const traces = (...spans: Buffer[]) =>
  exported(field(1, field(1, 'service.name'), textValue('loop')), field(2, ...spans))
const oneSpan = (...parts: Part[]) => traces(spanWith(random(16), ...parts))
const logWith = (...parts: Part[]) => field(2, ...parts)
const logs = (resource: Part, ...records: Buffer[]) => exported(resource, field(2, ...records))

function nestedValue(levels: number): Buffer {
  let value = field(1, 'end')
  for (let i = 0; i < levels; i++) value = field(5, field(1, value))
  return value
}

const BIG_VARINT = [0xa0, 0x06, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]
/** Unknown fields of each wire type. */
const UNKNOWN: Readonly<Record<string, Part>> = {
  varints: [0xa0, 0x06, 1],
  'long varints': BIG_VARINT,
  'fixed 64': [0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8],
  'empty texts': [0xa2, 0x06, 0],
  groups: [0xa3, 0x06, 0xa4, 0x06],
  'fixed 32': [0xa5, 0x06, 1, 2, 3, 4],
}

const IN_A_SPAN: Readonly<Record<string, () => Buffer>> = {
  'attributes without names': () => oneSpan(filled(FULL, [0x4a, 0])),
  'attributes with one name': () => oneSpan(filled(FULL, attribute('same', textValue('v')))),
  '100,000 attributes': () => oneSpan(...Array.from({ length: 100_000 }, (_, i) => attribute(`a${i}`, textValue('v')))),
  '120,000 attributes with quotes': () =>
    oneSpan(...Array.from({ length: 120_000 }, (_, i) => attribute(`"${i}`, textValue('"\n"')))),
  'a long text': () => oneSpan(attribute('long', textValue(filled(FULL, 'x')))),
  'a long text beyond Latin-1': () => oneSpan(attribute('long', textValue(filled(FULL, 'é€"\n')))),
  'a long name': () => oneSpan(attribute(filled(FULL, 'é'), textValue('v'))),
  'texts of 1 MB': () => oneSpan(filled(FULL, attribute('a', textValue(filled(MIB, 'a"'))))),
  '14 texts of 1 MB': () =>
    oneSpan(...Array.from({ length: 14 }, (_, i) => attribute(`t${i}`, textValue(filled(MIB, 'é"\\'))))),
  'JSON as input and output': () =>
    oneSpan(
      attribute('input.value', textValue(`[${'0,'.repeat(1.4 * MIB)}0]`)),
      attribute('output.value', textValue(`[${'{},'.repeat(3 * MIB)}0]`)),
    ),
  'numbers as usage': () => oneSpan(attribute('gen_ai.usage.input_tokens', textValue(filled(10 * MIB, '1')))),
  'values in an array': () => oneSpan(attribute('a', field(2, field(5, filled(FULL, [0x0a, 0]))))),
  '90,000 values in an array': () => oneSpan(attribute('a', field(2, field(5, filled(180_000, [0x0a, 0]))))),
  'values in a map': () => oneSpan(attribute('a', field(2, field(6, filled(FULL, field(1, field(1, 'k'))))))),
  'deep values': () => oneSpan(attribute('deep', field(2, nestedValue(2_000)))),
  'many deep values': () => oneSpan(filled(FULL, attribute('deep', field(2, nestedValue(90))))),
  'long integers': () => oneSpan(filled(FULL, attribute('n', field(2, [0x18, ...BIG_VARINT.slice(2)])))),
  'bytes as text': () => oneSpan(attribute('b', field(2, field(7, random(32 * MIB))))),
  events: () => oneSpan(filled(FULL, field(11, field(2, 'e')))),
  '9,000 events': () => oneSpan(filled(9_000 * 5, field(11, field(2, 'e')))),
  links: () => oneSpan(filled(FULL, field(13, field(1, 'l')))),
  '9,000 links': () => oneSpan(filled(9_000 * 5, field(13, field(1, 'l')))),
  'packed garbage': () => oneSpan(attribute('g', field(2, field(5, field(1, random(FULL)))))),
}

const SPANS: Readonly<Record<string, () => Buffer>> = {
  'empty spans': () => traces(filled(FULL, [0x12, 0])),
  'empty scopes': () => exported('', filled(FULL, [0x12, 0])),
  'empty resources': () => filled(FULL, [0x0a, 0]),
  '60,000 spans of a trace': () => {
    const traceId = random(16)
    return traces(each(60_000 * 70, () => spanWith(traceId)))
  },
  '20,000 traces': () => traces(each(20_000 * 70, () => spanWith(random(16)))),
  '30,000 spans of 2 KB': () => {
    const traceId = random(16)
    return traces(each(FULL, () => spanWith(traceId, attribute('content', textValue(filled(2_000, 'a "word" '))))))
  },
  '300 spans of 200 KB': () => {
    const traceId = random(16)
    return traces(each(FULL, () => spanWith(traceId, attribute('input.value', textValue(filled(200_000, 'a "b" '))))))
  },
  'a resource of 8 MiB, 10 traces': () =>
    exported(
      field(1, field(1, 'r'), textValue(filled(8 * MIB, 'r'))),
      field(2, ...Array.from({ length: 10 }, () => spanWith(random(16)))),
    ),
  'a resource of 60 KB, 1,000 traces': () =>
    exported(
      field(1, field(1, 'r'), textValue(filled(60_000, '"r'))),
      field(2, ...Array.from({ length: 1_000 }, () => spanWith(random(16)))),
    ),
  'a scope of 60 KB, 1,000 spans': () => {
    const traceId = random(16)
    const spans = Array.from({ length: 1_000 }, () => spanWith(traceId))
    return exported('', field(2, field(1, field(1, filled(60_000, 's'))), ...spans))
  },
  'many resources': () =>
    each(20_000 * 100, (i) => exported(field(1, field(1, `r${i}`), textValue('x')), field(2, spanWith(random(16))))),
  'many scopes': () =>
    exported(
      '',
      each(20_000 * 80, (i) => field(2, field(1, field(1, `s${i}`)), spanWith(random(16)))),
    ),
}

const LOGS: Readonly<Record<string, () => Buffer>> = {
  'a resource of 8 MiB, 10 records': () =>
    logs(
      field(1, field(1, 'r'), textValue(filled(8 * MIB, 'r'))),
      ...Array.from({ length: 10 }, (_, i) => logWith(field(12, `${i}`))),
    ),
  'a resource of 60 KB, 1,000 records': () =>
    logs(
      field(1, field(1, 'r'), textValue(filled(60_000, '"r'))),
      ...Array.from({ length: 1_000 }, (_, i) => logWith(field(12, `${i}`))),
    ),
  '100,000 records': () =>
    logs(
      '',
      each(100_000 * 10, (i) => logWith(field(12, `${i}`))),
    ),
  '10,000 sessions': () =>
    logs(
      '',
      each(10_000 * 40, (i) =>
        logWith(field(6, field(1, 'session.id'), textValue(`${i}-${random(4).toString('hex')}`))),
      ),
    ),
  'a long body': () => logs('', logWith(field(5, field(1, filled(FULL, '"é'))))),
  'long severities': () => logs('', filled(FULL, logWith(field(3, filled(MIB, 'é'))))),
}

const ids = () =>
  `"parentSpanId":"0707070707070707","traceId":"${random(16).toString('hex')}","spanId":"${random(8).toString('hex')}"`
const spansJson = (spans: string) => `{"resourceSpans":[{"scopeSpans":[{"spans":[${spans}]}]}]}`
const spanJson = (members: string) => spansJson(`{${ids()},"endTimeUnixNano":"1769851800000000000",${members}}`)
const repeated = (unit: string, last: string, bytes = JSON_FULL) =>
  `${unit.repeat(Math.floor(bytes / unit.length))}${last}`

const JSON_CASES: Readonly<Record<string, () => string>> = {
  numbers: () => spanJson(`"x":[${repeated('1,', '1')}]`),
  'numbers outside of spans': () => `{"x":[${repeated('0.12345678901234567e-300,', '1')}]}`,
  'numbers of 400 digits': () => spanJson(`"x":[${repeated(`${'9'.repeat(400)},`, '1')}]`),
  'a number of 8 MiB': () => spanJson(`"x":${repeated('9', '')}`),
  '1 MB of numbers': () => spanJson(`"x":[${repeated('0.12345678901234567e-300,', '1', MIB)}]`),
  'empty objects': () => spanJson(`"x":[${repeated('{},', '{}')}]`),
  '3 MB of empty objects': () => spanJson(`"x":[${repeated('{},', '{}', 0.8 * MIB)}]`),
  'members with one name': () => spanJson(`"x":{${repeated('"a":1,', '"a":1')}}`),
  'spans with one name': () => `{${repeated('"resourceSpans":[],', '"a":1')}}`,
  spaces: () => `${' '.repeat(JSON_FULL)}{}`,
  'spaces in a span': () => spanJson(`"x":${repeated(' \n', '1')}`),
  'deep arrays': () => spanJson(`"x":${'['.repeat(JSON_FULL / 2)}${']'.repeat(JSON_FULL / 2)}`),
  '100,000 deep': () => spanJson(`"x":${'['.repeat(100_000)}${']'.repeat(100_000)}`),
  'a long text': () => spanJson(`"name":"${'x'.repeat(JSON_FULL)}"`),
  'a long text of escapes': () => spanJson(`"name":"${repeated('\\u00e9\\"\\\\', '')}"`),
  'a long text of emoji': () =>
    spanJson(`"attributes":[{"key":"a","value":{"stringValue":"${repeated('\u{1f600}', '', JSON_FULL / 2)}"}}]`),
  '7 texts of 1 MB': () =>
    spanJson(
      `"attributes":[${Array.from({ length: 7 }, (_, i) => `{"key":"t${i}","value":{"stringValue":"${repeated('\\u00e9a', '', MIB)}"}}`).join()}]`,
    ),
  '100,000 attributes': () =>
    spanJson(
      `"attributes":[${Array.from({ length: 100_000 }, (_, i) => `{"key":"a${i}","value":{"intValue":"${i}"}}`).join()}]`,
    ),
  'empty spans': () => spansJson(repeated('{},', '{}')),
  'events without content': () => spanJson(`"events":[${repeated('{},', '{}')}]`),
  '60,000 spans': () => spansJson(Array.from({ length: 60_000 }, () => `{${ids()},"endTimeUnixNano":1}`).join()),
  '3,500 spans of 2 KB': () =>
    spansJson(
      Array.from({ length: 3_500 }, () => `{${ids()},"endTimeUnixNano":1,"name":"${'a \\"b '.repeat(330)}"}`).join(),
    ),
  'a resource of 7 MiB': () =>
    `{"resourceSpans":[{"resource":{"attributes":[{"key":"r","value":{"stringValue":"${'r'.repeat(7 * MIB)}"}}]},"scopeSpans":[{"spans":[{${ids()}}]}]}]}`,
  'no JSON': () => '['.repeat(JSON_FULL),
  'member names': () => `{${Array.from({ length: 700_000 }, (_, i) => `"${i}":0`).join()}}`,
}

/** Exports of which each is the worst in one respect. */
export const OTLP_CASES: readonly LoopCase[] = [
  ...Object.entries(UNKNOWN).flatMap(([name, unit]) => [
    hostile(`unknown ${name}`, 'traces', 'protobuf', () => filled(FULL, unit)),
    hostile(`unknown ${name} in a span`, 'traces', 'protobuf', () => oneSpan(filled(FULL, unit))),
    hostile(`unknown ${name} in a record`, 'logs', 'protobuf', () => logs('', logWith(filled(FULL, unit)))),
  ]),
  hostile('a long group', 'traces', 'protobuf', () =>
    Buffer.concat([Buffer.from([0xa3, 0x06]), filled(FULL, [0xa0, 0x06, 1]), Buffer.from([0xa4, 0x06])]),
  ),
  ...Object.entries({ ...IN_A_SPAN, ...SPANS }).map(([name, make]) => hostile(name, 'traces', 'protobuf', make)),
  ...Object.entries(LOGS).map(([name, make]) => hostile(name, 'logs', 'protobuf', make)),
  ...Object.entries(JSON_CASES).map(([name, make]) => hostile(name, 'traces', 'JSON', () => Buffer.from(make()))),
  hostile('points', 'metrics', 'protobuf', () => exported('', field(2, field(2, field(5, filled(FULL, [0x0a, 0])))))),
  hostile('metrics', 'metrics', 'protobuf', () => exported('', field(2, filled(FULL, [0x12, 0])))),
  hostile('points', 'metrics', 'JSON', () =>
    Buffer.from(
      `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"sum":{"dataPoints":[${repeated('{},', '{}')}]}}]}]}]}`,
    ),
  ),
  hostile(
    'a resource of 8 MiB, 10 traces',
    'traces',
    'protobuf',
    () => gzipSync(SPANS['a resource of 8 MiB, 10 traces']!()),
    'gzip',
  ),
  hostile('64 MiB of zeros', 'traces', 'protobuf', () => gzipSync(Buffer.alloc(FULL)), 'gzip'),
  hostile('64 MiB of varints', 'traces', 'protobuf', () => zstdCompressSync(filled(FULL, UNKNOWN.varints!)), 'zstd'),
  hostile('a bomb', 'logs', 'JSON', () => gzipSync(Buffer.alloc(256 * MIB, 0x20)), 'gzip'),
  hostile(
    'many members of gzip',
    'traces',
    'protobuf',
    () => filled(8 * MIB, gzipSync(filled(600, UNKNOWN.varints!))),
    'gzip',
  ),
  hostile(
    'many empty members of gzip',
    'traces',
    'protobuf',
    () => filled(16 * MIB, gzipSync(Buffer.alloc(0))),
    'gzip',
  ),
]
