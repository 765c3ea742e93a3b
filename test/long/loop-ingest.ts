import { gzipSync, zstdCompressSync } from 'node:zlib'
import {
  type AnyLoopCase,
  hardObjects,
  type LoopCase,
  type LoopContext,
  listOf,
  MIB,
  membersOf,
  sending,
} from './loop-case.ts'

const BODY_BYTES = 10 * MIB
const EVENTS_MAX = 5_000
const PAYLOAD_BYTES = 512 * 1024
const INPUT_BYTES = 3 * MIB
const EVENTS = '/api/ingest/v1/events'

/** What agents report (docs/events.md). */
export function ingestCases(context: LoopContext): AnyLoopCase[] {
  return [...eventCases(context), ...compressedCases(context), ...runCases(context), ...taskCases(context)]
}

function eventCases({ runId }: LoopContext): LoopCase[] {
  const body = (events: string) => `{"run_id":"${runId}","events":[${events}]}`
  const call = (name: string, events: () => string, path = EVENTS, status?: number): LoopCase => ({
    name,
    route: `POST ${EVENTS}`,
    request: () => sending('POST', path, body(events())),
    ...(status !== undefined && { status }),
  })
  const many = (event: (n: number) => string) => () => Array.from({ length: EVENTS_MAX }, (_, n) => event(n)).join(',')
  const salt = () => crypto.randomUUID()
  const small = hardObjects(BODY_BYTES / EVENTS_MAX - 100)
  const large = hardObjects(PAYLOAD_BYTES)
  return [
    call(
      '5,000 events without a payload',
      many(() => '{"type":"t"}'),
    ),
    ...Object.entries(small).map(([name, payload]) =>
      call(
        `5,000 events, ${name}`,
        many(() => `{"type":"t","payload":${payload}}`),
      ),
    ),
    ...Object.entries(large).flatMap(([name, payload]) =>
      ['t', 'llm.call'].map((type) =>
        call(`18 large ${type === 't' ? 'events' : 'model calls'}, ${name}`, () =>
          listOf(`{"type":"${type}","payload":${payload}}`, 19 * (PAYLOAD_BYTES + 60)),
        ),
      ),
    ),
    call(
      '5,000 model calls',
      many(() => `{"type":"llm.call","payload":{"input_tokens":1,"a":[${listOf('1', 1_800)}]}}`),
    ),
    call('5,000 new ids', () => {
      const own = salt()
      return many((n) => `{"type":"t","id":"${own}${String(n).padStart(28, '0')}"}`)()
    }),
    call('5,000 equal ids', () => many(() => `{"type":"t","id":"\\u0061\\u0062"}`)()),
    call(
      '5,000 escaped types and times',
      many(() => `{"type":"${'\\u0061'.repeat(200)}","occurred_at":"2026-01-31T09:30:00.123456789+00:00"}`),
    ),
    call(
      '5,000 invalid events, partial',
      many(() => `{"type":"t","${'x'.repeat(2_000)}":0}`),
      `${EVENTS}?partial=true`,
    ),
    call(
      '5,000 invalid levels, partial',
      many(() => `{"type":"run.x","level":"${'\\u0061'.repeat(330)}"}`),
      `${EVENTS}?partial=true`,
    ),
    call('tiny events above the limit', () => listOf('{"type":"t"}', BODY_BYTES - 100), EVENTS, 400),
    call('members of an event', () => `{"type":"t",${membersOf(BODY_BYTES - 200)}}`, `${EVENTS}?partial=true`),
    call('spaces', () => `{"type":"t"}${'\n'.repeat(BODY_BYTES - 200)}`),
    call('a mistake at the end', () => `{"type":"t"}${'\n'.repeat(BODY_BYTES - 200)}!`, EVENTS, 400),
    {
      name: 'invalid UTF-8 at the end',
      status: 400,
      request: () =>
        sending('POST', EVENTS, Buffer.concat([Buffer.from('é'.repeat(BODY_BYTES / 2 - 1)), Buffer.from([0xff])])),
    },
    {
      name: 'with an Idempotency-Key',
      request: () =>
        sending('POST', EVENTS, body(many(() => `{"type":"t","payload":${small.members}}`)()), {
          'idempotency-key': salt(),
        }),
    },
  ]
}

function compressedCases({ runId }: LoopContext): LoopCase[] {
  const events = listOf(`{"type":"t","payload":{"a":"${'a'.repeat(2_100)}"}}`, BODY_BYTES - 100)
  const texts: [string, string, number][] = [
    ['events', `{"run_id":"${runId}","events":[${events}]}`, 200],
    ['a bomb', ' '.repeat(200 * MIB), 413],
  ]
  return texts.flatMap(([name, text, status]) =>
    (
      [
        ['gzip', gzipSync],
        ['zstd', zstdCompressSync],
      ] as const
    ).map(([encoding, compress]) => {
      const bytes = new Uint8Array(compress(text))
      return {
        name: `${encoding}, ${name}`,
        status,
        request: () => sending('POST', EVENTS, bytes, { 'content-encoding': encoding }),
      }
    }),
  )
}

function runCases({ agentId, service, agentKey }: LoopContext): AnyLoopCase[] {
  const start = (name: string, rest: () => string, headers = {}, status?: number): LoopCase => ({
    name,
    route: 'POST /api/ingest/v1/run/start',
    request: () => sending('POST', '/api/ingest/v1/run/start', `{"agent_id":"${agentId}",${rest()}}`, headers),
    ...(status !== undefined && { status }),
  })
  const ending = (name: string, path: string, rest: string): AnyLoopCase => ({
    name,
    route: `POST /api/ingest/v1/run/${path}`,
    async run() {
      const made = await service.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
      const body = `{"run_id":"${made.data.run_id}",${rest}}`
      const { status } = await service.api('POST', `/api/ingest/v1/run/${path}`, body, { key: agentKey })
      return { sent: body.length, status }
    },
  })
  return [
    ...Object.entries(hardObjects(INPUT_BYTES)).map(([name, input]) =>
      start(`input, ${name}`, () => `"input":${input}`),
    ),
    ...Object.entries(hardObjects(INPUT_BYTES)).map(([name, input]) =>
      start(`metadata, ${name}`, () => `"metadata":${input}`),
    ),
    start('with an Idempotency-Key', () => `"input":${hardObjects(INPUT_BYTES).members}`, {
      'idempotency-key': crypto.randomUUID(),
    }),
    start('tags', () => `"tags":[${listOf('"a"', BODY_BYTES - 200)}]`, {}, 400),
    ...Object.entries(hardObjects(BODY_BYTES - 200)).map(([name, output]) =>
      ending(`output, ${name}`, 'complete', `"output":${output}`),
    ),
    ...Object.entries(hardObjects(BODY_BYTES - 200)).map(([name, detail]) =>
      ending(`error_detail, ${name}`, 'fail', `"error_message":"e","error_detail":${detail}`),
    ),
  ]
}

function taskCases({ runId }: LoopContext): LoopCase[] {
  return Object.entries(hardObjects(INPUT_BYTES)).map(([name, input]) => ({
    name: `input and output, ${name}`,
    route: 'POST /api/ingest/v1/tasks',
    request: () =>
      sending(
        'POST',
        '/api/ingest/v1/tasks',
        `{"run_id":"${runId}","task":{"id":"${crypto.randomUUID()}","name":"t","status":"completed","input":${input},"output":${input}}}`,
      ),
  }))
}
