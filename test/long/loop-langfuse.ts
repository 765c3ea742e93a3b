import { type LoopCase, type LoopContext, MIB, membersOf, sending } from './loop-case.ts'

/** The limit of a batch, with room for the frame around the repeated part. */
const FULL = 4.5 * MIB - 4_096

const TRACE = crypto.randomUUID()
const LARGE = crypto.randomUUID()
const TIMES = { timestamp: '2026-01-31T09:30:00.000Z', startTime: '2026-01-31T09:30:00.000Z' }

const repeated = (unit: string, last: string, bytes = FULL) => `${unit.repeat(Math.floor(bytes / unit.length))}${last}`
const batchOf = (events: string) => `{"batch":[${events}]}`

function event(type: string, body: string): string {
  return `{"id":"${crypto.randomUUID()}","type":"${type}","timestamp":"${TIMES.timestamp}","body":${body}}`
}

const bodyOf = (members: string, id: string = crypto.randomUUID(), traceId: string = TRACE) =>
  `{"id":"${id}","traceId":"${traceId}","startTime":"${TIMES.startTime}",${members}}`

const spanWith = (members: string) => batchOf(event('span-create', bodyOf(members)))

/** Updates of one observation, as many as a batch may have. */
function updates(count: number, members: (index: number) => string): string {
  const id = crypto.randomUUID()
  return batchOf(Array.from({ length: count }, (_, i) => event('span-update', bodyOf(members(i), id))).join())
}

const BODIES: Readonly<Record<string, () => string>> = {
  'no events': () => batchOf(repeated('1,', '1')),
  '10,000 updates of one observation': () => updates(10_000, (i) => `"output":${i}`),
  '9,000 updates of metadata': () => updates(9_000, (i) => `"metadata":{"member ${i}":"${'m'.repeat(40)}"}`),
  '60 updates of metadata of 60 KB': () => updates(60, (i) => `"metadata":{"${i}":"${'m'.repeat(60_000)}"}`),
  '9,000 earlier updates of a large object as metadata': () => {
    const first = event('span-create', bodyOf(`"metadata":{${membersOf(65_000)}}`, LARGE)).replace('09:30', '09:31')
    const others = Array.from({ length: 9_000 }, () =>
      event('span-update', bodyOf(`"metadata":{"earlier":"${'m'.repeat(200)}"}`, LARGE)),
    )
    return batchOf([first, ...others].join())
  },
  '10,000 updates of the metadata of a trace': () =>
    batchOf(
      Array.from({ length: 10_000 }, (_, i) =>
        event('trace-create', `{"id":"${TRACE}","metadata":{"member ${i}":"${'m'.repeat(200)}"}}`),
      ).join(),
    ),
  '9,900 earlier texts as metadata of a trace with a large object': () => {
    const first = event('trace-create', `{"id":"${TRACE}","metadata":{${membersOf(60_000)}}}`).replace('09:30', '09:31')
    return batchOf(
      [first, ...Array.from({ length: 9_900 }, () => event('trace-create', `{"id":"${TRACE}","metadata":"x"}`))].join(),
    )
  },
  'a batch after another': () =>
    `{${`"batch":[${'1,'.repeat(9_999)}1],`}${repeated('"batch":[],', '"batch":[]', FULL - 20_000)}}`,
  'a long escaped event id': () =>
    batchOf(event('span-create', bodyOf('"name":"n"')).replace(/"id":"[^"]*"/, `"id":"${repeated('\\u0041', '')}"`)),
  '5,000 traces': () =>
    batchOf(
      Array.from({ length: 5_000 }, (_, i) =>
        event('span-create', bodyOf(`"name":"${i}"`, crypto.randomUUID(), crypto.randomUUID())),
      ).join(),
    ),
  '10,000 beginnings of traces': () =>
    batchOf(
      Array.from({ length: 10_000 }, () =>
        event('trace-create', `{"id":"${crypto.randomUUID()}","name":"n","input":{"a":1}}`),
      ).join(),
    ),
  '10,000 observations of as many traces': () =>
    batchOf(
      Array.from({ length: 10_000 }, () =>
        event('generation-create', bodyOf('"name":"n","usage":{"input":1}', crypto.randomUUID(), crypto.randomUUID())),
      ).join(),
    ),
  '10,000 traces that end': () =>
    batchOf(
      Array.from({ length: 10_000 }, () =>
        event(
          'generation-create',
          bodyOf(
            `"name":"n","endTime":"${TIMES.startTime}","input":"i","output":"o","usage":{"input":1}`,
            crypto.randomUUID(),
            crypto.randomUUID(),
          ),
        ),
      ).join(),
    ),
  '10,000 scores of as many traces': () =>
    batchOf(
      Array.from({ length: 10_000 }, () =>
        event('score-create', `{"traceId":"${crypto.randomUUID()}","name":"n","value":1}`),
      ).join(),
    ),
  'brackets as input': () => spanWith(`"input":[${repeated('[],', '[]')}]`),
  'deep brackets as input': () => spanWith(`"input":[${repeated(`${'['.repeat(100)}${']'.repeat(100)},`, '[]')}]`),
  'deep brackets outside of the batch': () =>
    `{"metadata":[${repeated(`${'['.repeat(100)}${']'.repeat(100)},`, '[]')}],"batch":[]}`,
  'deep objects as metadata': () =>
    spanWith(`"metadata":[${repeated(`${'{"":'.repeat(100)}0${'}'.repeat(100)},`, '0')}]`),
  '10,000 observations': () =>
    batchOf(Array.from({ length: 10_000 }, () => event('span-create', bodyOf('"name":"n"'))).join()),
  '10,000 unknown types': () => batchOf(Array.from({ length: 10_000 }, () => event('unknown', '{}')).join()),
  'a long name': () => spanWith(`"name":"${repeated('\\u00e9', '')}"`),
  'a long input': () => spanWith(`"input":"${repeated('é"'.replace('"', '\\"'), '', FULL / 2)}"`),
  'numbers as input': () => spanWith(`"input":[${repeated('1,', '1')}]`),
  'empty objects as metadata': () => spanWith(`"metadata":[${repeated('{},', '{}')}]`),
  'members of a body': () => spanWith(repeated('"a":1,', '"a":1')),
  'members of metadata': () => spanWith(`"metadata":{${repeated('"a":1,', '"a":1')}}`),
  'deep arrays': () => spanWith(`"input":${'['.repeat(FULL / 2)}${']'.repeat(FULL / 2)}`),
  'tags of a trace': () => batchOf(event('trace-create', bodyOf(`"tags":[${repeated('"t",', '"t"')}]`))),
  'input and metadata of a trace': () =>
    batchOf(
      event(
        'trace-create',
        bodyOf(`"input":[${repeated('1,', '1', FULL / 2)}],"metadata":"${repeated('\\u0000', '', FULL / 2)}"`),
      ),
    ),
  'long usage': () => batchOf(event('generation-create', bodyOf(`"usageDetails":{${repeated('"a":1,', '"a":1')}}`))),
  'a long score': () =>
    batchOf(event('score-create', `{"traceId":"${TRACE}","name":"n","comment":"${repeated('c', '')}"}`)),
  '5,000 scores': () =>
    batchOf(
      Array.from({ length: 5_000 }, () => event('score-create', `{"traceId":"${TRACE}","name":"n","value":1}`)).join(),
    ),
  spaces: () => `${' '.repeat(FULL)}{"batch":[]}`,
  'no JSON': () => '['.repeat(FULL),
}

/** Of a workspace key, which registers an agent for each name. */
const OF_THE_WORKSPACE: Readonly<Record<string, () => string>> = {
  '10,000 traces of as many agents': () =>
    batchOf(
      Array.from({ length: 10_000 }, (_, i) =>
        event(
          'trace-create',
          `{"id":"${crypto.randomUUID()}","name":"${TRACE} ${i}","userId":"u${i}","sessionId":"s${i}","tags":["a","b"],"metadata":{"m":"${'m'.repeat(100)}"},"input":{"a":1},"output":{"b":2}}`,
        ),
      ).join(),
    ),
}

/** Batches of which each is the worst in one respect. */
export function langfuseCases({ service }: Pick<LoopContext, 'service'>): readonly LoopCase[] {
  const caseOf = ([name, make]: [string, () => string], headers: Record<string, string>): LoopCase => ({
    name: `Langfuse: ${name}`,
    route: 'POST /api/public/ingestion',
    status: 'any',
    request: () => sending('POST', '/api/public/ingestion', make(), headers),
  })
  const authorization = `Bearer ${service.workspaceKey}`
  return [
    ...Object.entries(BODIES).map((each) => caseOf(each, {})),
    ...Object.entries(OF_THE_WORKSPACE).map((each) => caseOf(each, { authorization })),
  ]
}
