import { expect, test } from 'bun:test'
import { ALERT_TEMPLATES } from '../../src/sql/alerts/templates.ts'
import { withFixedTime } from '../../src/sql/analytics/fixed-time.ts'

/** The clock of a query that is evaluated as of a time. Queries are in the engine's normal form. */

const MS = 1_700_000_000_250

test.each([
  ['SELECT now()', 'SELECT toDateTime(1700000000)'],
  ["SELECT NOW('Asia/Tokyo')", "SELECT toDateTime(1700000000, 'Asia/Tokyo')"],
  ['SELECT now64()', "SELECT toDateTime64(CAST('1700000000.25', 'Decimal(18, 3)'), 3)"],
  ["SELECT now64(6, 'UTC')", "SELECT toDateTime64(CAST('1700000000.25', 'Decimal(18, 3)'), 6, 'UTC')"],
  ['SELECT today(), yesterday()', 'SELECT toDate(toDateTime(1700000000)), (toDate(toDateTime(1700000000)) - 1)'],
  ['SELECT toDate(now()) AS now, now', 'SELECT toDate(toDateTime(1700000000)) AS now, now'],
  ["SELECT 'now()', `now`, e.now, nowhere(1)", "SELECT 'now()', `now`, e.now, nowhere(1)"],
  ['SELECT quantileExact(0.5)(x), any(x), {now:String}', 'SELECT quantileExact(0.5)(x), any(x), {now:String}'],
])('%s', (query, expected) => {
  expect(withFixedTime(query, MS)).toBe(expected)
})

test.each([
  'SELECT rand()',
  'SELECT RAND()',
  'SELECT randomString(5)',
  'SELECT generateUUIDv4()',
  'SELECT dateTimeToUUIDv7(now())',
  'SELECT arrayShuffle([1, 2])',
  'SELECT nowInBlock()',
  'SELECT CURRENT_DATE',
  'SELECT current_timestamp()',
  'SELECT localtime',
  'SELECT UTC_timestamp()',
  'SELECT rowNumberInAllBlocks()',
  'SELECT quantile(0.95)(x)',
  'SELECT quantilesIf(0.5)(x, y)',
  'SELECT median(x)',
  'SELECT arrayMap(now64, [3])',
  'SELECT arrayMap(rand, [3])',
  'SELECT now64(toUInt8(rand()))',
])('%s is refused', (query) => {
  expect(() => withFixedTime(query, MS)).toThrow(/^query: .*(not allowed in an alert|cannot be an argument)/)
})

test('calls within each other are passed over once', () => {
  const arguments_ = `${'1, '.repeat(25_000)}1`
  const nested = `SELECT ${'now('.repeat(800)}${arguments_}${')'.repeat(800)}`
  const flat = `SELECT now(${arguments_})${', now()'.repeat(800)}`
  expect(withFixedTime(nested, MS)).toStartWith('SELECT toDateTime(1700000000, toDateTime(1700000000, ')
  // In one process, so that a slow machine is slow with both. Once for each call around it would be 800 times as long.
  expect(msOf(nested)).toBeLessThan(20 * msOf(flat))
})

test('templates have names of their own', () => {
  const names = ALERT_TEMPLATES.items.map(({ template }) => template)
  expect(names).toEqual([
    'error_rate',
    'cost_per_hour',
    'silent_agent',
    'waiting_approvals',
    'p95_latency',
    'webhook_failures',
  ])
})

/** The shortest time that a query takes of several; other work on the machine only ever prolongs one. */
function msOf(query: string): number {
  const times = Array.from({ length: 3 }, () => {
    const started = performance.now()
    withFixedTime(query, MS)
    return performance.now() - started
  })
  return Math.min(...times)
}
