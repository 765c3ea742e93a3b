import { expect, test } from 'bun:test'
import { ApiError, invalid } from '../../src/base/errors.ts'
import { WorkspaceSlots } from '../../src/base/workspace-slots.ts'
import { EngineTime, Penalties } from '../../src/sql/analytics/caps.ts'
import { atCharacters } from '../../src/sql/analytics/problems.ts'
import { ExceptionScanner, exceptionBlock, mintExceptionTag } from '../../src/stores/clickhouse/exception-block.ts'
import { ClickHouseFailure } from '../../src/stores/clickhouse/protocol.ts'
import { eventually } from '../support/eventually.ts'
import { waitOf } from '../support/failures.ts'
import { seededRandom } from '../support/random.ts'

test('a workspace has a fixed number of slots, and a slot is released only once', () => {
  const slots = new WorkspaceSlots(2, { one: 'query', many: 'queries' })
  const release = slots.take('a')
  slots.take('a')
  expect(() => slots.take('a')).toThrow('2 queries of this workspace are running')
  slots.take('b')
  release()
  release()
  slots.take('a')
  expect(() => slots.take('a')).toThrow(ApiError)
})

test('counts only the time spent waiting for the engine', async () => {
  let isSpent = false
  const time = new EngineTime(2_000, () => {
    isSpent = true
  })
  await time.during(Bun.sleep(20))
  await Bun.sleep(2_050)
  expect(await time.during(Promise.resolve('x'))).toBe('x')
  expect(isSpent).toBe(false)
  await time.during(eventually(() => isSpent))
})

test('an answer that arrives gives time back, up to the limit', async () => {
  let isSpent = false
  const time = new EngineTime(2_000, () => {
    isSpent = true
  })
  for (let piece = 0; piece < 3; piece++) {
    await time.during(Bun.sleep(700))
    time.delivered(1_000_000)
  }
  expect(isSpent).toBe(false)
  await time.during(eventually(() => isSpent))
})

test('separates the rows from the final exception block, wherever the pieces are split', () => {
  const random = seededRandom('exception blocks')
  for (let round = 0; round < 200; round++) {
    const tag = mintExceptionTag()
    const failure = new ClickHouseFailure(395, 'SOME_ERROR', `it's (like) this:\n${'é'.repeat(random.int(0, 50))}.`)
    // Rows that look like the block.
    const rows = Buffer.from(Array.from({ length: random.int(0, 30) }, () => random.pick(LOOKALIKES)).join(''))
    const fails = random.bool()
    const sent = fails ? Buffer.concat([rows, exceptionBlock(tag, failure, '26.1')]) : rows
    const scanner = new ExceptionScanner(tag)
    const taken: Buffer[] = []
    for (let at = 0; at < sent.length; ) {
      const end = Math.min(sent.length, at + random.int(1, 40))
      taken.push(Buffer.from(scanner.push(sent.subarray(at, end))))
      at = end
    }
    const end = scanner.end()
    if (Buffer.isBuffer(end)) taken.push(end)
    else expect(end).toMatchObject({ code: 395, type: 'SOME_ERROR', message: failure.message })
    expect(Buffer.isBuffer(end)).toBe(!fails)
    expect(Buffer.concat(taken).toString()).toBe(rows.toString())
  }
})

const LOOKALIKES = [
  '\r\n',
  '__exception__',
  '\r\n__exception__\r\n',
  '\r\n__exc',
  'abc',
  '\r',
  '0123456789abcdef',
  '\n',
]

test('counts positions in a text in characters', () => {
  const error = (problem: string) => invalid('query', problem)
  const query = "select 'é',\n 'ü' x y z"
  const at = Buffer.byteLength(query.slice(0, query.indexOf('y'))) + 1
  const converted = atCharacters(error(`Syntax error: failed at position ${at} (y) (line 2, col 9): y z`), query)
  expect(converted).toMatchObject({
    code: 'VALIDATION_ERROR',
    message: 'query: Syntax error: failed at position 20 (y) (line 2, col 8): y z',
  })
  const plain = error('Syntax error: failed at position 8 (x)')
  expect(atCharacters(plain, 'select 1 x y')).toBe(plain)
})

test('each engine restart that a workspace causes blocks its queries for longer, and never those of other workspaces', () => {
  let ms = 0
  const penalties = new Penalties(30, () => ms)
  const secondsOf = (workspace: string) => waitOf(() => penalties.check(workspace))
  const waits = []
  for (let restart = 0; restart < 6; restart++) {
    penalties.add('a')
    waits.push(secondsOf('a'))
    expect(secondsOf('b')).toBe(0)
    ms += (waits.at(-1) ?? 0) * 1000
    expect(secondsOf('a')).toBe(0)
  }
  expect(waits).toEqual([30, 120, 480, 1_920, 3_600, 3_600])
  // Old restarts are forgotten once another workspace is counted.
  ms += 7 * 3_600_000
  penalties.add('b')
  penalties.add('a')
  expect(secondsOf('a')).toBe(30)
})
