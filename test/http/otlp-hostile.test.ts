import { beforeAll, describe, expect, test } from 'bun:test'
import {
  attributesOf,
  type Exported,
  eventsOf,
  inProtobuf,
  logsOf,
  randomHex,
  sendExport,
  span,
  tracesOf,
} from '../support/otlp.ts'
import { seededRandom } from '../support/random.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Exports that are valid only in part, or contain what no sender should send: their valid items are still stored. */

const MUTATIONS = 200
const RESOURCE_EXHAUSTED = 8

let service: TestService

beforeAll(async () => {
  service = await startTestService({ RATE_LIMIT_EVENTS_PER_SECOND: '0', RATE_LIMIT_INGEST_REQUESTS_PER_MINUTE: '0' })
})

async function payloadsOf(traceId: unknown): Promise<Record<string, unknown>[]> {
  const events = await eventsOf(service, traceId)
  return events.map(({ payload }: { payload: Record<string, unknown> }) => payload)
}

/** A value of `levels` nested arrays. */
function nested(levels: number): object {
  let value: object = { stringValue: 'end' }
  for (let i = 0; i < levels; i++) value = { arrayValue: { values: [value] } }
  return value
}

/** How many items were rejected, and why the first one; the count has a name of its own in JSON. */
function partialOf({ body }: Exported): unknown[] {
  const { rejected, rejectedSpans, errorMessage } = (body.partialSuccess ?? {}) as Record<string, unknown>
  return [rejectedSpans ?? rejected, errorMessage]
}

const ENCODINGS = [
  ['JSON', (data: object) => data],
  ['protobuf', inProtobuf],
] as const

for (const [encoding, encode] of ENCODINGS) {
  describe(`in ${encoding}`, () => {
    test('the last value of a repeated attribute wins', async () => {
      const traceId = randomHex(16)
      const attributes = [...attributesOf({ twice: 1 }), ...attributesOf({ twice: 'again', once: 2 })]
      await sendExport(service, 'traces', encode(tracesOf([span({ traceId, attributes })])))
      expect(await payloadsOf(traceId)).toMatchObject([{ twice: 'again', once: 2 }])
    })

    test('a huge string is cut, and the payload names it as truncated', async () => {
      const traceId = randomHex(16)
      const attributes = attributesOf({ huge: 'é"'.repeat(2_000_000), 'session.id': 's'.repeat(200_000), kept: 1 })
      const sent = await sendExport(service, 'traces', encode(tracesOf([span({ traceId, attributes })])))
      expect(sent.body).toEqual({})
      const [payload] = await payloadsOf(traceId)
      expect(payload).toMatchObject({ kept: 1, truncated: expect.arrayContaining(['huge']) })
      expect(payload.huge).toStartWith('é"é"')
    })

    test('a large export of usual spans is stored whole', async () => {
      const traceId = randomHex(16)
      const attributes = attributesOf(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`name.${n}`, `v${n}`])))
      const events = Array.from({ length: 5 }, () => ({ name: 'e', attributes: attributes.slice(0, 3) }))
      const spans = Array.from({ length: 2_000 }, () => span({ traceId, attributes, events }))
      const sent = await sendExport(service, 'traces', encode(tracesOf(spans)))
      expect([sent.status, sent.body]).toEqual([200, {}])
    })

    test('too many spans or span events are rejected before they fill the memory', async () => {
      const sent = await sendExport(service, 'traces', encode(tracesOf(new Array(300_000).fill({}))))
      expect([sent.status, sent.body.code]).toEqual([413, RESOURCE_EXHAUSTED])
      expect(sent.body.message).toContain('send several')
      const events = tracesOf([span({ events: new Array(11_000).fill({}) }), span()])
      const answer = await sendExport(service, 'traces', encode(events))
      expect(partialOf(answer)).toEqual(['1', 'span 1: more than 10000 events and links'])
    })

    test('a resource that is too large is rejected with its spans, and the others are stored', async () => {
      const traceId = randomHex(16)
      const large = tracesOf([span(), span()], { large: 'r'.repeat(70_000) })
      const data = { resourceSpans: [...large.resourceSpans, ...tracesOf([span({ traceId })]).resourceSpans] }
      const [rejected, message] = partialOf(await sendExport(service, 'traces', encode(data)))
      expect([rejected, message]).toEqual([
        '2',
        expect.stringMatching(/^spans 1 to 2: the resource has \d+ bytes; at most 65536 /),
      ])
      expect(await payloadsOf(traceId)).toHaveLength(1)
    })
  })
}

test('a value nested too deeply is replaced; its span and the others are stored', async () => {
  for (const levels of [300, 5_000]) {
    const traceId = randomHex(16)
    const other = span({ traceId, attributes: attributesOf({ other: true }) })
    const sent = [await sendExport(service, 'traces', deepExport(traceId, levels, other))]
    if (levels === 300) {
      const attributes = [{ key: 'deep', value: nested(levels) }, ...attributesOf({ kept: 1 })]
      sent.push(await sendExport(service, 'traces', tracesOf([span({ traceId, attributes })])))
    }
    expect(sent.map(({ body }) => body)).toEqual(sent.map(() => ({})))
    const [first, ...more] = await payloadsOf(traceId)
    expect(first.other).toBe(true)
    expect(more).toHaveLength(sent.length)
    for (const payload of more) {
      expect(payload.kept).toBe(1)
      expect(JSON.stringify(payload.deep)).toContain('nested more than 100 deep')
    }
  }
})

/** A valid span, then one with a value nested more deeply than protobufjs can encode. */
function deepExport(traceId: string, levels: number, good: object): Uint8Array {
  let value: Buffer = delimited(1, Buffer.from('end'))
  for (let i = 0; i < levels; i++) value = delimited(5, delimited(1, value))
  const deep = Buffer.concat([delimited(1, Buffer.from('deep')), delimited(2, value)])
  const kept = Buffer.concat([delimited(1, Buffer.from('kept')), delimited(2, Buffer.from([3 << 3, 1]))])
  const ids = Buffer.concat([delimited(1, Buffer.from(traceId, 'hex')), delimited(2, Buffer.from(randomHex(8), 'hex'))])
  const spanBytes = Buffer.concat([ids, delimited(9, deep), delimited(9, kept)])
  return Buffer.concat([inProtobuf(tracesOf([good])), delimited(1, delimited(2, delimited(2, spanBytes)))])
}

/** A length-delimited field of protobuf. */
function delimited(field: number, bytes: Uint8Array): Buffer {
  const head = [(field << 3) | 2]
  let length = bytes.length
  for (; length > 0x7f; length >>>= 7) head.push((length & 0x7f) | 0x80)
  return Buffer.concat([Buffer.from([...head, length]), bytes])
}

test('invalid UTF-8 is replaced in protobuf, and rejected in JSON', async () => {
  const traceId = randomHex(16)
  const bytes = Buffer.from(inProtobuf(tracesOf([span({ traceId, attributes: attributesOf({ word: 'a~~b' }) })])))
  bytes.fill(0xff, bytes.indexOf('~~'), bytes.indexOf('~~') + 2)
  expect((await sendExport(service, 'traces', new Uint8Array(bytes))).body).toEqual({})
  expect(await payloadsOf(traceId)).toMatchObject([{ word: 'a\ufffd\ufffdb' }])
  const json = Buffer.from(JSON.stringify(tracesOf([span({ name: '~~' })])))
  json.fill(0xff, json.indexOf('~~'), json.indexOf('~~') + 2)
  const headers = { 'content-type': 'application/json' }
  expect((await sendExport(service, 'traces', new Uint8Array(json), { headers })).status).toBe(400)
})

describe('mutated exports', () => {
  const random = seededRandom('mutated exports')

  function valid(): object {
    const traceId = randomHex(16)
    const content = attributesOf({
      'gen_ai.operation.name': random.pick(['chat', 'invoke_agent', 'execute_tool', 'x']),
      'gen_ai.input.messages': '[{"role":"user","content":"hi"}]',
      'gen_ai.usage.input_tokens': random.int(0, 500),
      'user.id': 'someone',
    })
    const attributes = [...content, { key: 'deep', value: nested(3) }]
    const event = { name: 'exception', timeUnixNano: '1769851800000000000', attributes: content }
    const root = span({ traceId, attributes, events: [event], status: { code: 2, message: 'no' } })
    return random.bool(0.5)
      ? tracesOf([root, span({ traceId, parentSpanId: root.spanId, attributes, links: [root] })])
      : logsOf([{ traceId, severityNumber: 9, body: { stringValue: 'line' }, attributes }, { eventName: 'e' }])
  }

  /** Changes, removes, inserts or repeats bytes in one to four places. */
  function mutated(bytes: Uint8Array): Uint8Array {
    let mutant = Buffer.from(bytes)
    for (let i = random.int(1, 4); i > 0; i--) {
      const at = random.int(0, mutant.length)
      const end = Math.min(mutant.length, at + random.int(1, 9))
      const between = random.pick([
        Buffer.from(Array.from({ length: end - at }, () => random.int(0, 255))),
        Buffer.alloc(0),
        Buffer.concat([mutant.subarray(at, end), mutant.subarray(at, end)]),
        Buffer.alloc(random.int(1, 12), 0xff),
      ])
      mutant = Buffer.concat([mutant.subarray(0, at), between, mutant.subarray(end)])
    }
    return new Uint8Array(mutant)
  }

  for (const encoding of ['application/json', 'application/x-protobuf']) {
    test(`in ${encoding} are stored, or rejected with 400, and never cause a 500`, async () => {
      for (let i = 0; i < MUTATIONS; i++) {
        const data = valid()
        const bytes = encoding === 'application/json' ? Buffer.from(JSON.stringify(data)) : inProtobuf(data)
        const signal = random.pick(['traces', 'logs'] as const)
        const mutant = mutated(bytes)
        const sent = await sendExport(service, signal, mutant, { headers: { 'content-type': encoding } })
        expect([200, 400], `${signal} ${Buffer.from(mutant).toString('base64')}`).toContain(sent.status)
        if (sent.status !== 200) expect(sent.body.message).toBeString()
      }
      expect((await sendExport(service, 'traces', tracesOf([span()]))).body).toEqual({})
    })
  }
})
