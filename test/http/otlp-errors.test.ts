import { beforeAll, describe, expect, test } from 'bun:test'
import { doors } from '../../src/openapi/doors.ts'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import {
  attributesOf,
  eventsOf,
  inProtobuf,
  logsOf,
  randomHex,
  runsOf,
  sendExport,
  span,
  tasksOf,
  tracesOf,
} from '../support/otlp.ts'
import { encodeMessage, MetricsData } from '../support/otlp-proto.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

const runOf = async (externalRunId: unknown) => (await runsOf(service, externalRunId))[0]

const UNAUTHENTICATED = 16
const INVALID_ARGUMENT = 3
const RESOURCE_EXHAUSTED = 8

describe('keys', () => {
  test('are accepted as bearer token, also undecoded, X-API-Key, and password of Basic auth', async () => {
    const { agentKey } = await newAgent(service.api)
    for (const key of [service.workspaceKey, agentKey]) {
      const places: Record<string, string>[] = [
        { authorization: `Bearer ${key}` },
        // As LangSmith's exporter sends what OTEL_EXPORTER_OTLP_HEADERS has encoded.
        { authorization: `Bearer%20${key}` },
        { 'x-api-key': key },
        { authorization: `Basic ${Buffer.from(`any:${key}`).toString('base64')}` },
      ]
      for (const headers of places) {
        const sent = await sendExport(service, 'traces', tracesOf([span()]), { key: null, headers })
        expect([sent.status, sent.body]).toEqual([200, {}])
      }
    }
  })

  test('undecoded are accepted by no other route', async () => {
    const headers = { authorization: `Bearer%20${service.workspaceKey}` }
    expect((await fetch(`${service.url}/api/v1/runs`, { headers })).status).toBe(401)
  })

  test('that are missing or invalid are rejected with a Status in the encoding of the request', async () => {
    for (const [data, type] of [
      [tracesOf([span()]), 'application/json'],
      [inProtobuf(tracesOf([span()])), 'application/x-protobuf'],
    ] as const) {
      const places: Record<string, string>[] = [{}, { 'x-api-key': 'nonsense' }, { authorization: 'Bearer%20nonsense' }]
      for (const headers of places) {
        const sent = await sendExport(service, 'traces', data, { key: null, headers })
        expect([sent.status, sent.headers.get('content-type')]).toEqual([401, type])
        expect(sent.body).toMatchObject({ code: UNAUTHENTICATED })
      }
    }
  })
})

describe('addresses', () => {
  test('are also those of programs that are given a host and a port only', async () => {
    const id = randomHex(16)
    const bodies = [
      ['traces', tracesOf([span({ traceId: id })])],
      ['logs', logsOf([{ traceId: id, body: { stringValue: 'said' } }])],
      ['metrics', { resourceMetrics: [] }],
    ] as const
    for (const [signal, body] of bodies) {
      const headers = { 'x-api-key': service.workspaceKey, 'content-type': 'application/json' }
      const sent = await fetch(`${service.url}/v1/${signal}`, { method: 'POST', headers, body: JSON.stringify(body) })
      expect([signal, sent.status, await sent.json()]).toEqual([signal, 200, {}])
    }
    await eventually(async () => expect((await runsOf(service, id))[0]).toMatchObject({ event_count: 2 }))
  })

  test('and keys work as the printed lines have them', async () => {
    const [{ text }] = doors({ url: service.url, key: service.workspaceKey })
    const lines = new Map([...text.matchAll(/(OTEL_\w+)=(\S+)/g)].map(([, name, value]) => [name, value!]))
    expect(lines.get('OTEL_EXPORTER_OTLP_PROTOCOL')).toBe('http/protobuf')
    const [header = '', value = ''] = lines.get('OTEL_EXPORTER_OTLP_HEADERS')!.split('=')
    const sent = await fetch(`${lines.get('OTEL_EXPORTER_OTLP_ENDPOINT')}/v1/traces`, {
      method: 'POST',
      // Not decoded, as some exporters send it.
      headers: { [header]: value, 'content-type': 'application/x-protobuf' },
      body: Uint8Array.from(inProtobuf(tracesOf([span()]))),
    })
    expect(sent.status).toBe(200)
  })
})

describe('a body', () => {
  test('of another content type is rejected', async () => {
    const sent = await sendExport(service, 'traces', 'spans', { headers: { 'content-type': 'text/plain' } })
    expect([sent.status, sent.body.code]).toEqual([400, INVALID_ARGUMENT])
    expect(sent.body.message).toContain('Content-Type')
  })

  test('that is truncated protobuf, invalid JSON or corrupt gzip is rejected, and nothing of it is stored', async () => {
    const root = span()
    const whole = inProtobuf(tracesOf([root, span()]))
    const sent = [
      await sendExport(service, 'traces', whole.subarray(0, whole.length - 9)),
      await sendExport(service, 'traces', '{"resourceSpans":['),
      await sendExport(service, 'traces', '{"resourceSpans":{}}'),
      await sendExport(service, 'traces', '[]'),
      await sendExport(service, 'logs', Uint8Array.from([10, 200])),
      await sendExport(service, 'traces', whole, { headers: { 'content-encoding': 'gzip' } }),
    ]
    expect(sent.map(({ status, body }) => [status, body.code])).toEqual(sent.map(() => [400, INVALID_ARGUMENT]))
    expect(await runOf(root.traceId)).toBeUndefined()
  })

  test('that is empty is accepted', async () => {
    for (const signal of ['traces', 'logs', 'metrics'] as const) {
      for (const data of [new Uint8Array(0), '', '{}']) {
        const sent = await sendExport(service, signal, data)
        expect([sent.status, sent.body, sent.lastSeq]).toEqual([200, {}, null])
      }
    }
  })

  test('above the limit of an export is rejected with 413, also after decompression', async () => {
    const small = await startTestService({}, { bounds: { limits: { otlp_bytes: 20_000 } } })
    const data = inProtobuf(tracesOf([span({ attributes: attributesOf({ big: 'x'.repeat(30_000) }) })]))
    const sent = [
      await sendExport(small, 'traces', data),
      await sendExport(small, 'traces', Bun.gzipSync(Uint8Array.from(data)), {
        headers: { 'content-encoding': 'gzip' },
      }),
    ]
    expect(sent.map(({ status, body }) => [status, body.code])).toEqual(sent.map(() => [413, RESOURCE_EXHAUSTED]))
    await small.stop()
  })

  test('may be larger than LIMIT_BODY_BYTES', async () => {
    const small = await startTestService({ LIMIT_BODY_BYTES: '20000' })
    const spans = Array.from({ length: 300 }, () => span({ attributes: attributesOf({ text: 'x'.repeat(200) }) }))
    expect((await sendExport(small, 'traces', tracesOf(spans))).body).toEqual({})
    await small.stop()
  })

  test('above the rate limit of the key is rejected with 429 and Retry-After', async () => {
    const slow = await startTestService({ RATE_LIMIT_EVENTS_PER_SECOND: '2' })
    const send = () => sendExport(slow, 'traces', inProtobuf(tracesOf([span(), span(), span()])))
    const sent = [await send(), await send()]
    expect(sent.map(({ status }) => status)).toEqual([200, 429])
    expect(sent[1].body.code).toBe(RESOURCE_EXHAUSTED)
    expect(Number(sent[1].headers.get('retry-after'))).toBeGreaterThan(0)
    await slow.stop()
  })
})

describe('spans', () => {
  test('with invalid ids are rejected, and the others are stored', async () => {
    const good = span()
    const spans = [span({ name: 'bad one', traceId: '00' }), good, span({ spanId: '0'.repeat(16) }), null, 7]
    const { status, body } = await sendExport(service, 'traces', tracesOf(spans as object[]))
    expect(status).toBe(200)
    expect(body).toEqual({
      partialSuccess: {
        rejectedSpans: '4',
        errorMessage: 'span "bad one": trace_id: expected 16 bytes that are not all zero',
      },
    })
    expect(await runOf(good.traceId)).toMatchObject({ status: 'completed' })
    const sent = await sendExport(service, 'traces', inProtobuf(tracesOf([span({ traceId: '00' })])))
    expect(sent.body).toMatchObject({ partialSuccess: { rejected: '1' } })
  })

  test('from the future, without times, or with an end before the start are stored', async () => {
    const traceId = randomHex(16)
    const spans = [
      span({
        traceId,
        name: 'future',
        startTimeUnixNano: '18446744073709551615',
        endTimeUnixNano: '18446744073709551615',
      }),
      span({ traceId, name: 'timeless', startTimeUnixNano: '0', endTimeUnixNano: 0 }),
      span({
        traceId,
        name: 'backwards',
        startTimeUnixNano: '1769851801000000000',
        endTimeUnixNano: '1769851800000000000',
      }),
    ]
    expect((await sendExport(service, 'traces', tracesOf(spans))).body).toEqual({})
    const statuses = (await tasksOf(service, traceId)).map(({ status }: { status: string }) => status)
    expect(statuses).toEqual(['completed', 'completed', 'completed'])
  })

  test('with 100,000 attributes, deeply nested values or hostile text are stored', async () => {
    const traceId = randomHex(16)
    const many = Array.from({ length: 100_000 }, (_, i) => ({ key: `key ${i}`, value: { intValue: i } }))
    let deep: object = { stringValue: 'end' }
    for (let i = 0; i < 90; i++) deep = { arrayValue: { values: [deep] } }
    const hostile = attributesOf({ __proto__: 'x', 'a\0b': 'c\0d', 'user.id': 'u\0', 'session.id': 's\ud800', '': '' })
    const spans = [
      span({ traceId, attributes: many }),
      span({ traceId, attributes: [{ key: 'deep', value: deep }] }),
      span({
        traceId,
        name: 'n\0\ud800',
        attributes: [...hostile, ...attributesOf({ 'input.value': '{"a":"\\u0000"}' })],
      }),
      span({ traceId, attributes: attributesOf({ 'input.value': '['.repeat(50_000) + ']'.repeat(50_000) }) }),
    ]
    const sent = await sendExport(service, 'traces', tracesOf(spans, { 'service.name': 'a\0\ud800', x: '\0\ud800' }))
    expect([sent.status, sent.body]).toEqual([200, {}])
    expect(await tasksOf(service, traceId)).toHaveLength(4)
  })

  test('that are parents of each other, or of themselves, are stored', async () => {
    const traceId = randomHex(16)
    const [a, b, c] = [randomHex(8), randomHex(8), randomHex(8)]
    const spans = [
      span({ traceId, spanId: a, parentSpanId: b }),
      span({ traceId, spanId: b, parentSpanId: a }),
      span({ traceId, spanId: c, parentSpanId: c }),
    ]
    expect((await sendExport(service, 'traces', tracesOf(spans))).body).toEqual({})
    expect(await tasksOf(service, traceId)).toHaveLength(3)
    expect(await runOf(traceId)).toMatchObject({ status: 'running' })
  })

  test('of a cancelled run are stored, and it stays cancelled', async () => {
    const traceId = randomHex(16)
    const child = span({ traceId, parentSpanId: randomHex(8) })
    await sendExport(service, 'traces', tracesOf([child]))
    await service.api('POST', `/api/v1/runs/${(await runOf(traceId)).run_id}/cancel`, {})
    expect((await sendExport(service, 'traces', tracesOf([span({ traceId })]))).body).toEqual({})
    expect(await runOf(traceId)).toMatchObject({ status: 'cancelled' })
    expect(await tasksOf(service, traceId)).toHaveLength(2)
  })

  test('of many traces in one export are all stored', async () => {
    const spans = Array.from({ length: 3_000 }, (_, i) => span({ name: `root ${i}` }))
    expect((await sendExport(service, 'traces', inProtobuf(tracesOf(spans)))).body).toEqual({})
    expect(await runOf(spans[2_999].traceId)).toMatchObject({ status: 'completed' })
  })

  test('of an archived agent are rejected with the reason', async () => {
    const send = () => sendExport(service, 'traces', tracesOf([span()], { 'service.name': 'to be archived' }))
    await send()
    const { data } = await service.api('GET', '/api/v1/agents?limit=200')
    const { agent_id } = data.items.find(({ name }: { name: string }) => name === 'to be archived')
    await service.api('DELETE', `/api/v1/agents/${agent_id}`)
    expect((await send()).body).toMatchObject({
      partialSuccess: { rejectedSpans: '1', errorMessage: expect.stringContaining('archived') },
    })
  })
})

describe('logs', () => {
  test('become events of the run of their trace, session or day, once when repeated', async () => {
    const traceId = randomHex(16)
    const session = randomHex(4)
    const records = [
      { traceId, timeUnixNano: '1769851800000000000', severityNumber: 17, body: { stringValue: 'oh' } },
      { eventName: 'step', attributes: attributesOf({ 'session.id': session, n: 1 }) },
      { timeUnixNano: '1769851800000000000', body: { stringValue: 'plain' } },
    ]
    for (const data of [logsOf(records), inProtobuf(logsOf(records))]) {
      expect((await sendExport(service, 'logs', data)).body).toEqual({})
    }
    for (const [externalRunId, expected] of [
      [traceId, { type: 'log', level: 'error', payload: { body: 'oh', trace_id: traceId } }],
      [session, { type: 'step', level: 'info', payload: { n: 1 } }],
      ['an agent 2026-01-31', { type: 'log', payload: { body: 'plain' } }],
    ] as const) {
      expect(await eventsOf(service, externalRunId)).toMatchObject([expected])
    }
  })
})

test('metrics are rejected with the reason', async () => {
  const metric = { name: 'm', gauge: { dataPoints: [{ timeUnixNano: '1' }, { timeUnixNano: '2' }] } }
  const data = { resourceMetrics: [{ scopeMetrics: [{ metrics: [metric] }] }] }
  const sent = await sendExport(service, 'metrics', data)
  expect(sent.body).toMatchObject({ partialSuccess: { rejectedDataPoints: '2' } })
  const again = await sendExport(service, 'metrics', encodeMessage(MetricsData, data))
  expect(again.body).toMatchObject({ partialSuccess: { rejected: '2' } })
})
