import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { EventScan } from '../../src/activity/events/scan.ts'
import { ScanPool } from '../../src/activity/events/scan-pool.ts'
import { ApiError } from '../../src/base/errors.ts'
import { uuidFromWords } from '../../src/stores/clickhouse/bytes.ts'
import { EventBlock } from '../../src/stores/journal/blocks/event-block.ts'
import { LEVELS } from '../../src/stores/journal/levels.ts'
import { LIMITS, runRef } from '../support/events.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
const RUN = runRef().runId

const POOL = new ScanPool()

/** The scan of each event, as plain values: the same with and without SIMD instructions. */
function scanned(body: string, partial = false) {
  const bytes = new TextEncoder().encode(body)
  const scan = new EventScan()
  scan.scan(bytes, LIMITS, partial)
  const values = valuesOf(scan)
  POOL.use(bytes, LIMITS, partial, (scan) => expect(valuesOf(scan)).toEqual(values))
  return values
}

function valuesOf(scan: EventScan) {
  const events = Array.from({ length: scan.count }, (_, row) => ({
    type: scan.decodedTypes.get(row)?.toString() ?? scan.text.toString('utf8', scan.typeStart[row], scan.typeEnd[row]),
    level: LEVELS[scan.level[row] - 1],
    payload:
      scan.payloadStart[row] < 0 ? '{}' : scan.text.toString('utf8', scan.payloadStart[row], scan.payloadEnd[row]),
    occurred_at: Number.isNaN(scan.occurredAt[row]) ? undefined : scan.occurredAt[row],
    id: scan.idOf(row),
    task_id: taskIdOf(scan, row),
  }))
  return { runId: scan.runId, events, rejected: scan.rejected }
}

function taskIdOf({ taskIds }: EventScan, row: number): string | undefined {
  const isNone = taskIds === undefined || taskIds.subarray(row * 4, row * 4 + 4).every((word) => word === 0)
  return isNone ? undefined : uuidFromWords(taskIds, row * 4)
}

/** Why a body is refused: the same with and without SIMD instructions. */
function refusal(body: string): string {
  const bytes = new TextEncoder().encode(body)
  const message = messageOf(() => new EventScan().scan(bytes, LIMITS, false))
  expect(messageOf(() => POOL.use(bytes, LIMITS, false, () => {}))).toBe(message)
  return message
}

function messageOf(scan: () => void): string {
  try {
    scan()
  } catch (error) {
    if (error instanceof ApiError && error.code === 'VALIDATION_ERROR') return error.message
    throw error
  }
  return 'accepted'
}

const call = (events: unknown, rest: object = { run_id: RUN }) => JSON.stringify({ ...rest, events })

/** Escapes every non-ASCII character, and one that needs no escape. */
function withEscapes(text: string): string {
  return text.replace(/[\u0080-\uffff]|a/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const event = fc.record(
  {
    type: fc
      .string({ minLength: 1, maxLength: 60, unit: 'grapheme' })
      .filter((type) => !/^(run|task|approval|input)\.|\0/.test(type)),
    level: fc.constantFrom(...LEVELS),
    payload: fc.dictionary(fc.string(), fc.jsonValue()),
    occurred_at: fc
      .date({ min: new Date('1900-01-01'), max: new Date('2299-12-31'), noInvalidDate: true })
      .map((date) => date.toISOString()),
    id: fc.string({ minLength: 1, maxLength: 64, unit: 'grapheme-ascii' }),
    task_id: fc.uuid(),
  },
  { requiredKeys: ['type'] },
)

describe(`the event scan (SEED=${SEED})`, () => {
  test('reads events like JSON.parse, with any white space, escapes and order of members', () => {
    fc.assert(
      fc.property(
        fc.array(event, { minLength: 1, maxLength: 20 }),
        fc.constantFrom(undefined, 1, '\t'),
        fc.boolean(),
        fc.boolean(),
        (events, space, runLast, escaped) => {
          const body = runLast ? { events, run_id: RUN.toUpperCase() } : { run_id: RUN.toUpperCase(), events }
          let text = JSON.stringify(body, null, space)
          if (escaped) text = text.replace(/"(?:[^"\\]|\\.)*"/g, withEscapes)
          const { runId, events: found } = scanned(text)
          expect(runId).toBe(RUN)
          expect(found.map(({ payload, ...rest }) => ({ ...rest, payload: JSON.parse(payload) }))).toEqual(
            events.map((sent) => ({
              type: sent.type,
              level: sent.level ?? 'info',
              payload: JSON.parse(JSON.stringify(sent.payload ?? {})),
              occurred_at: sent.occurred_at === undefined ? undefined : Date.parse(sent.occurred_at),
              id: sent.id,
              task_id: sent.task_id,
            })),
          )
        },
      ),
      { seed: SEED, numRuns: 500 },
    )
  })

  test('rejects a broken body or reads it like JSON.parse, and never crashes', () => {
    const whole = call([
      { type: 'a', payload: { x: [1, { y: 'é\n' }], z: null }, level: 'warn', id: 'i' },
      { type: 'b' },
    ])
    fc.assert(
      fc.property(
        fc.nat(whole.length),
        fc.nat(3),
        fc.string({ maxLength: 3, unit: fc.constantFrom('{', '}', '[', ']', '"', ',', ':', '\\', '1', '-', 'x', ' ') }),
        (at, cut, insert) => {
          const broken = whole.slice(0, at) + insert + whole.slice(at + cut)
          const message = refusal(broken)
          if (message === 'accepted') expect(() => JSON.parse(broken)).not.toThrow()
        },
      ),
      { seed: SEED, numRuns: 3_000 },
    )
  })
})

test('names the place of each problem and the expected value', () => {
  const long = 'x'.repeat(201)
  const cases: [unknown, string][] = [
    [
      [{ type: 'a' }, { level: 'warning', type: 'b' }],
      'events[1].level: expected one of debug, info, warn, error; got "warning"',
    ],
    [[{ type: 'a', level: null }], 'events[0].level: expected one of debug, info, warn, error; got null'],
    [[{ payload: {} }], 'events[0].type: required'],
    [[{ type: '' }], 'events[0].type: expected a non-empty string; got ""'],
    [[{ type: 5 }], 'events[0].type: expected a non-empty string; got 5'],
    [[{ type: long }], 'events[0].type: expected at most 200 characters; got 201'],
    [[{ type: 'a\0' }], 'events[0].type: expected text without NUL and lone surrogates'],
    [
      [{ type: 'run.started' }],
      'events[0].type: types that start with run., task., approval., input. are reserved for system events; got "run.started"',
    ],
    [[{ type: 'a', payload: [1] }], 'events[0].payload: expected a JSON object; got [1]'],
    [[{ type: 'a', payload: 'x' }], 'events[0].payload: expected a JSON object; got "x"'],
    [
      [{ type: 'a', occurred_at: 'yesterday' }],
      'events[0].occurred_at: expected an RFC 3339 timestamp such as 2026-01-31T09:30:00.123Z; got "yesterday"',
    ],
    [
      [{ type: 'a', occurred_at: '2026-02-30T00:00:00.000Z' }],
      'events[0].occurred_at: expected an RFC 3339 timestamp such as 2026-01-31T09:30:00.123Z; got "2026-02-30T00:00:00.000Z"',
    ],
    [[{ type: 'a', id: '' }], 'events[0].id: expected a string of 1 to 64 characters; got ""'],
    [
      [{ type: 'a', kind: 'x' }],
      'events[0].kind: unknown field; expected id, task_id, type, level, payload, occurred_at',
    ],
    [[{ type: 'a', task_id: 'x' }], 'events[0].task_id: expected a UUID; got "x"'],
    [[{ type: 'a', task_id: null }], 'events[0].task_id: expected a UUID; got null'],
    [[7], 'events[0]: expected an event object'],
    [[], 'events: expected at least one event'],
    [{}, 'events: expected an array of events; got {}'],
    [
      Array.from({ length: 5_001 }, () => ({ type: 'a' })),
      'events: expected at most 5000 events per call; split them into several calls',
    ],
    [
      [{ type: 'a', payload: { x: 'y'.repeat(512 * 1024) } }],
      'events[0].payload: expected at most 524288 bytes; got 524296',
    ],
  ]
  for (const [events, message] of cases) expect(refusal(call(events))).toBe(message)
  expect(refusal(call([{ type: 'a' }], {}))).toBe('run_id: required')
  expect(refusal(call([{ type: 'a' }], { run_id: 'x' }))).toBe('run_id: expected a UUID; got "x"')
  expect(refusal(call([{ type: 'a' }], { run_id: RUN, extra: 1 }))).toBe(
    'extra: unknown field; expected run_id, events',
  )
  expect(refusal(`{"run_id":"${RUN}"}`)).toBe('events: required')
  expect(refusal('[]')).toBe('body: expected a JSON object')
  expect(refusal(`{"run_id":"${RUN}","events":[{"type":"\\u0072un.x"}]}`)).toContain('reserved for system events')
  expect(
    refusal(`{"run_id":"${RUN}","events":[{"type":"a","payload":${'{"a":'.repeat(200)}1${'}'.repeat(200)}}]}`),
  ).toContain('less nesting')
})

test('a partial call keeps the valid events and lists the others', () => {
  const { events, rejected } = scanned(
    call([{ type: 'a' }, { type: 'b', level: 'loud' }, 5, { type: 'c', id: 'x' }, { level: 'info' }]),
    true,
  )
  expect(events.map(({ type, id }) => [type, id])).toEqual([
    ['a', undefined],
    ['c', 'x'],
  ])
  expect(rejected.map(({ index, message }) => [index, message.split(':')[0]])).toEqual([
    [1, 'events[1].level'],
    [2, 'events[2]'],
    [4, 'events[4].type'],
  ])
})

test('keeps payloads byte for byte: 64-bit integers, __proto__, escaped NULs, lone surrogates, white space', () => {
  const payload = '{ "n": 12345678901234567890, "f":1.0,\n"__proto__":{"x":1},"s":"\\u0000\\ud800","é":"é" }'
  expect(scanned(`{"run_id":"${RUN}","events":[{"type":"a","payload":${payload}}]}`).events[0].payload).toBe(payload)
})

test('the escaped type of an event that is not stored does not become that of the next one', () => {
  const types = (body: string) => scanned(body, true).events.map(({ type }) => type)
  expect(types(`{"run_id":"${RUN}","events":[{"type":"\\u0061","level":"loud"},{"type":"b"}]}`)).toEqual(['b'])
  expect(types(`{"run_id":"${RUN}","events":[{"type":"\\u0061","type":"b"}]}`)).toEqual(['b'])
  const twice = `{"run_id":"${RUN}","events":[{"type":"\\u0061"},5],"events":[{"type":"b"}]}`
  expect(types(twice)).toEqual(['b'])
  expect(scanned(twice, true).rejected).toEqual([])
})

test('the task of a rejected event does not become that of the next event', () => {
  const tasks = (body: string) => scanned(body, true).events.map(({ task_id }) => task_id)
  const [one, two] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()]
  const events = [{ type: 'a' }, { type: 'b', task_id: one, level: 'loud' }, { type: 'c' }, { type: 'd', task_id: two }]
  expect(tasks(call(events))).toEqual([undefined, undefined, two])
  expect(tasks(`{"run_id":"${RUN}","events":[{"type":"a","task_id":"${one}"}],"events":[{"type":"b"}]}`)).toEqual([
    undefined,
  ])
})

describe('a pool of scans', () => {
  const bodyOf = (text: string) => new TextEncoder().encode(call([{ type: text, id: text }, text]))

  test('lends a scan to one function: afterwards it throws, and what was taken out stays the same', () => {
    const pool = new ScanPool()
    let leaked: EventScan | undefined
    const rejected = pool.use(bodyOf('one'), LIMITS, true, (scan) => {
      leaked = scan
      expect(scan.idOf(0)).toBe('one')
      return scan.rejected
    })
    expect(rejected[0].message).toBe('events[1]: expected an event object')
    const before = structuredClone(rejected)
    pool.use(bodyOf('two'), LIMITS, true, (scan) => expect(scan.idOf(0)).toBe('two'))
    expect(rejected).toEqual(before)
    expect(leaked!.isReleased).toBe(true)
    expect(() => leaked!.idOf(0)).toThrow('outside of ScanPool.use')
    expect(() => leaked!.text.toString()).toThrow('outside of ScanPool.use')
    expect(() => leaked!.typeStart[0]).toThrow('outside of ScanPool.use')
    const block = new EventBlock()
    expect(() => block.add({ run: runRef(), scan: leaked!, rows: undefined, ids: undefined }, 1)).toThrow()
  })

  test('gets the memory back from a body that was refused', () => {
    const pool = new ScanPool()
    const texts: Buffer[] = []
    const use = (body: string) =>
      pool.use(new TextEncoder().encode(body), LIMITS, false, (scan) => void texts.push(scan.text))
    use(call([{ type: 'a' }]))
    expect(() => use(call([{}]))).toThrow('events[0].type: required')
    use(call([{ type: 'a' }]))
    expect(texts[1]).toBe(texts[0])
  })
})
