import { gzipSync } from 'node:zlib'
import { type LoopCase, MIB } from './loop-case.ts'

/** The limit of a body, with room for the frame around the repeated part. */
const FULL = 8 * MIB - 4_096

const repeated = (unit: string, last: string, bytes = FULL) => `${unit.repeat(Math.floor(bytes / unit.length))}${last}`
const many = (count: number, item: (n: number) => string) => Array.from({ length: count }, (_, n) => item(n)).join()
const body = (items: string) => `{"data":[${items}]}`
const TIMES = '"started_at":"2026-01-31T09:30:00Z","ended_at":"2026-01-31T09:30:01Z"'
/** A new trace in each request. */
const newTrace = () => `trace_${crypto.randomUUID().replaceAll('-', '')}`
const span = (trace: string, id: number, data: string, more = '') =>
  `{"object":"trace.span","id":"span_${id}","trace_id":"${trace}","parent_id":"span_x",${TIMES},"span_data":{${data}}${more}}`
const one = (data: string, more = '') => body(span(newTrace(), 1, data, more))
const head = (members: string) => body(`{"object":"trace","id":"${newTrace()}",${members}}`)
const CUSTOM = '"type":"custom","name":"c"'

const CASES: Readonly<Record<string, () => string>> = {
  '30,000 turn spans': () => {
    const trace = newTrace()
    return body(
      many(30_000, (n) =>
        span(trace, n, `"type":"custom","name":"turn","data":{"sdk_span_type":"turn","turn":${n},"agent_name":"a"}`),
      ),
    )
  },
  '30,000 model calls of new models': () => {
    const trace = newTrace()
    return body(
      many(30_000, (n) =>
        span(trace, n, `"type":"generation","model":"a/gpt-${n}","usage":{"input_tokens":1,"output_tokens":1}`),
      ),
    )
  },
  '20,000 traces': () => body(many(20_000, (n) => span(newTrace(), n, CUSTOM))),
  '20,000 beginnings of traces': () => body(many(20_000, () => `{"object":"trace","id":"${newTrace()}"}`)),
  '20,000 beginnings of one trace': () => {
    const trace = newTrace()
    return body(many(20_000, (n) => `{"object":"trace","id":"${trace}","metadata":{"n":${n}}}`))
  },
  'empty items': () => body(repeated('{},', '{}')),
  'numbers as items': () => body(repeated('1,', '1')),
  'half a million members': () => one(`${CUSTOM},"data":{${many(500_000, (n) => `"m${n}":${n}`)}}`),
  'half a million members of metadata': () => head(`"metadata":{${many(500_000, (n) => `"m${n}":${n}`)}}`),
  '90,000 members': () => one(`${many(90_000, (n) => `"m${n}":${n}`)},${CUSTOM}`),
  'metadata of 60 KB': () => head(`"metadata":{${many(4_000, (n) => `"m${n}":"\\u0000"`)}}`),
  '90,000 members of metadata': () => head(`"metadata":{${many(90_000, (n) => `"m${n}":"\\u0000${n}"`)}}`),
  'members with one name': () => one(`${CUSTOM},"data":{${repeated('"a":1,', '"a":1')}}`),
  'lists named data': () => `{${repeated('"data":[],', '"a":1')}}`,
  'deep arrays': () => one(`${CUSTOM},"data":${'['.repeat(FULL / 2)}${']'.repeat(FULL / 2)}`),
  brackets: () => one(`${CUSTOM},"data":[${repeated('[],', '[]')}]`),
  'deep brackets': () => one(`${CUSTOM},"data":[${repeated(`${'['.repeat(100)}${']'.repeat(100)},`, '[]')}]`),
  'brackets outside of the list': () => `{"more":[${repeated('[],', '[]')}],"data":[]}`,
  'brackets that are just read': () =>
    body(many(40, (n) => span(newTrace(), n, `${CUSTOM},"data":[${repeated('[],', '[]', MIB / 6)}]`))),
  '100,000 deep': () => one(`${CUSTOM},"data":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`),
  'a long text': () => one(`${CUSTOM},"data":"${'x'.repeat(FULL)}"`),
  'a long text of escapes': () => one(`${CUSTOM},"data":"${repeated('\\u00e9\\"\\\\', '')}"`),
  'a long text as input': () =>
    one(
      `"type":"function","name":"f","input":"[${'0,'.repeat(1.4 * MIB)}0]","output":"${repeated('{},', '', 4 * MIB)}"`,
    ),
  'a long error': () => one(CUSTOM, `,"error":{"message":"${'é'.repeat(3 * MIB)}","data":{}}`),
  'long ids': () => body(`{"object":"trace","id":"${'x'.repeat(FULL)}"}`),
  'long names': () => head(`"workflow_name":"${'é'.repeat(1.5 * MIB)}","group_id":"${'\\u0000'.repeat(MIB / 2)}"`),
  'numbers of 400 digits': () => one(`${CUSTOM},"data":[${repeated(`${'9'.repeat(400)},`, '1')}]`),
  '40 spans of 200 KB': () => {
    const trace = newTrace()
    return body(many(40, (n) => span(trace, n, `"type":"generation","input":"${'a \\"b\\" '.repeat(20_000)}"`)))
  },
  'no JSON': () => '['.repeat(FULL),
  spaces: () => `${' '.repeat(FULL)}{}`,
}

function hostile(name: string, make: () => Uint8Array, encoding?: string): LoopCase {
  return {
    name: `OpenAI traces: ${name}`,
    route: 'POST /openai/v1/traces/ingest',
    status: 'any',
    request: () => ({
      method: 'POST',
      path: '/openai/v1/traces/ingest',
      headers: {
        'content-type': 'application/json',
        ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
      },
      body: make(),
    }),
  }
}

/** Calls of which each is the worst in one respect. */
export const OPENAI_TRACES_CASES: readonly LoopCase[] = [
  ...Object.entries(CASES).map(([name, make]) => hostile(name, () => Buffer.from(make()))),
  hostile('a bomb', () => gzipSync(Buffer.alloc(256 * MIB, 0x20)), 'gzip'),
]
