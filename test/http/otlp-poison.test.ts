import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { attributesOf, inProtobuf, logsOf, randomHex, runsOf, sendExport, span, tracesOf } from '../support/otlp.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Words that callers choose and that an object, a column or Postgres must not take for something else. */

const WORDS = ['constructor', '__proto__', 'toString', 'hasOwnProperty']
const NUL = 'a\0b'

let service: TestService
const { url: databaseUrl, sql } = await freshDatabase()

beforeAll(async () => {
  service = await startTestService({ DATABASE_URL: databaseUrl, RATE_LIMIT_EVENTS_PER_SECOND: '0' })
})

test('words that every object has are neither levels nor kinds of spans', async () => {
  for (const word of WORDS) {
    const traceId = randomHex(16)
    const logs = await sendExport(service, 'logs', logsOf([{ traceId, severityText: word }]))
    expect([logs.status, logs.body], word).toEqual([200, {}])
    const names = ['gen_ai.operation.name', 'traceloop.span.kind', 'openinference.span.kind']
    const spans = names.map((name) => span({ traceId, attributes: attributesOf({ [name]: word }) }))
    const traces = await sendExport(service, 'traces', tracesOf(spans))
    expect([traces.status, traces.body], word).toEqual([200, {}])
    const query = `SELECT level, count() AS n FROM events GROUP BY level`
    const answer = await service.api('POST', '/api/v1/query', { query, wait_for: traces.lastSeq })
    expect([answer.status, answer.data?.rows.map(({ level }: { level: string }) => level)], answer.text).toEqual([
      200,
      ['info'],
    ])
  }
})

describe('NUL', () => {
  for (const [encoding, encode] of [
    ['JSON', (data: object) => data],
    ['protobuf', inProtobuf],
  ] as const) {
    test(`in every text of an export in ${encoding} loses nothing`, async () => {
      const texts = {
        'session.id': NUL,
        'user.id': NUL,
        'tag.tags': NUL,
        'gen_ai.agent.name': NUL,
        'input.value': NUL,
        'output.value': NUL,
        'exception.message': NUL,
        [NUL]: NUL,
      }
      const resource = { 'service.name': NUL, [NUL]: NUL }
      const events = [{ name: NUL, attributes: attributesOf(texts) }]
      const failed = { code: 2, message: NUL }
      const traceId = randomHex(16)
      const spans = [
        span({ name: NUL, traceId, events, status: failed, attributes: attributesOf(texts) }),
        span({
          name: NUL,
          traceId,
          parentSpanId: randomHex(8),
          attributes: attributesOf({ ...texts, 'gen_ai.operation.name': 'invoke_agent' }),
        }),
      ]
      const traces = await sendExport(service, 'traces', encode(tracesOf(spans, resource)))
      expect([traces.status, traces.body]).toEqual([200, {}])
      expect(await runsOf(service, traceId)).toHaveLength(2)
      const record = { eventName: NUL, severityText: NUL, body: { stringValue: NUL }, attributes: attributesOf(texts) }
      const logs = await sendExport(service, 'logs', encode(logsOf([record], resource)))
      expect([logs.status, logs.body]).toEqual([200, {}])
      expect(await runsOf(service, 'a\ufffdb')).toHaveLength(1)
    })
  }
})

test('a trace with more than 10,000 roots is stored, and its run has one end', async () => {
  const traceId = randomHex(16)
  const roots = Array.from({ length: 10_500 }, () => span({ traceId }))
  const sent = await sendExport(service, 'traces', inProtobuf(tracesOf(roots)))
  expect([sent.status, sent.body]).toEqual([200, {}])
  expect(await runsOf(service, traceId)).toMatchObject([{ status: 'completed' }])
}, 60_000)

test('values that Postgres cannot store are rejected with their items only', async () => {
  const [good, bad] = [randomHex(16), randomHex(16)]
  // No such value is known, so a trigger stands for it.
  await sql.unsafe(`
    create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'unsupported Unicode escape sequence' using errcode = '22P05'; end $$;
    create trigger refuse before insert on runs for each row when (new.external_run_id = '${bad}') execute function refuse()`)
  const traces = [good, bad, bad].map((traceId) => span({ traceId, parentSpanId: randomHex(8), name: traceId }))
  const sent = await sendExport(service, 'traces', tracesOf(traces))
  const logs = await sendExport(service, 'logs', logsOf([{ traceId: good }, { traceId: bad, eventName: 'bad' }]))
  await sql.unsafe('drop function refuse cascade')
  const problem = 'the database cannot store one of its values'
  expect([sent.status, sent.body]).toEqual([
    200,
    { partialSuccess: { rejectedSpans: '2', errorMessage: `span "${bad}": ${problem}` } },
  ])
  expect([logs.status, logs.body]).toEqual([
    200,
    { partialSuccess: { rejectedLogRecords: '1', errorMessage: `log record "bad": ${problem}` } },
  ])
  expect([(await runsOf(service, good)).length, (await runsOf(service, bad)).length]).toEqual([1, 0])
})

test('usage in strings counts under every name', async () => {
  const traceId = randomHex(16)
  const usage = { 'gen_ai.usage.input_tokens': '812', 'gen_ai.usage.output_tokens': '20', cost_usd: '0.1' }
  const attributes = attributesOf({ 'gen_ai.operation.name': 'chat', ...usage })
  // A hundred sums of 0.1 are 9.99999999999998 in binary fractions.
  const spans = Array.from({ length: 100 }, () => span({ traceId, parentSpanId: randomHex(8), attributes }))
  await sendExport(service, 'traces', tracesOf(spans))

  await eventually(async () => (await runsOf(service, traceId))[0].event_count === 100)
  expect((await runsOf(service, traceId))[0]).toMatchObject({
    usage: { input_tokens: 81_200, output_tokens: 2_000 },
    cost_usd: 10,
  })
})
