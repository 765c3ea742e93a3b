import { expect, test } from 'bun:test'
import { parseTimestamp } from '../../src/base/timestamp.ts'
import { seededRandom } from '../support/random.ts'

const at = (text: string) => Date.parse(text)

test.each([
  ['2026-01-31T09:30:00.123Z', at('2026-01-31T09:30:00.123Z')],
  ['2026-01-31T09:30:00Z', at('2026-01-31T09:30:00.000Z')],
  ['2026-01-31t09:30:00z', at('2026-01-31T09:30:00.000Z')],
  ['2026-01-31 09:30:00Z', at('2026-01-31T09:30:00.000Z')],
  ['2026-01-31T09:30:00.1Z', at('2026-01-31T09:30:00.100Z')],
  ['2026-01-31T09:30:00.123456789Z', at('2026-01-31T09:30:00.123Z')],
  ['2026-01-31T09:30:00.999999999Z', at('2026-01-31T09:30:00.999Z')],
  ['2026-01-31T09:30:00.123+00:00', at('2026-01-31T09:30:00.123Z')],
  ['2026-01-31T09:30:00+05:45', at('2026-01-31T03:45:00.000Z')],
  ['2026-01-31T23:30:00-01:00', at('2026-02-01T00:30:00.000Z')],
  ['2026-01-31T09:30:00-00:00', at('2026-01-31T09:30:00.000Z')],
  ['2024-02-29T00:00:00.000Z', at('2024-02-29T00:00:00.000Z')],
  ['2000-02-29T00:00:00.000Z', at('2000-02-29T00:00:00.000Z')],
  ['1900-01-01T00:00:00.000Z', at('1900-01-01T00:00:00.000Z')],
  ['2299-12-31T23:59:59.999Z', at('2299-12-31T23:59:59.999Z')],
  ['1899-12-31T23:00:00-02:00', at('1900-01-01T01:00:00.000Z')],
  ['2016-12-31T23:59:60Z', at('2017-01-01T00:00:00.000Z')],
  ['2016-12-31T23:59:60.500Z', at('2017-01-01T00:00:00.500Z')],
  ['2017-01-01T05:29:60+05:30', at('2017-01-01T00:00:00.000Z')],
])('%s', (text, ms) => {
  expect(parseTimestamp(text)).toBe(ms)
})

test.each([
  '',
  '2026',
  '2026-01-31',
  '2026-01-31T09:30Z',
  '2026-01-31T09:30:00',
  '2026-01-31T09:30:00.Z',
  '2026-01-31T09:30:00,123Z',
  '2026-01-31T09:30:00+0100',
  '2026-01-31T09:30:00+01',
  '2026-01-31T09:30:00+24:00',
  '2026-01-31T09:30:00+01:60',
  '2026-02-30T00:00:00.000Z',
  '2026-02-29T00:00:00.000Z',
  '2100-02-29T00:00:00.000Z',
  '2026-04-31T00:00:00.000Z',
  '2026-13-01T00:00:00.000Z',
  '2026-00-01T00:00:00.000Z',
  '2026-01-00T00:00:00.000Z',
  '2026-01-31T24:00:00.000Z',
  '2026-01-31T09:60:00.000Z',
  '2026-01-31T09:30:61.000Z',
  '2026-01-31T09:30:60.000Z',
  '2026-01-31T09:3 :00.000Z',
  '2026-01-31T09:30:00.1x3Z',
  '1899-12-31T23:59:59.999Z',
  '2300-01-01T00:00:00.000Z',
  '0026-01-31T09:30:00.000Z',
  '+02026-01-31T09:30:00Z',
  '-2026-01-31T09:30:00.00Z',
  ' 2026-01-31T09:30:00.123Z',
  '2026-01-31T09:30:00.123Z ',
  '2026-01-31T09:30:00.123Z\n',
  '２０２６-01-31T09:30:00.123Z',
  '1769851800',
])('rejects %p', (text) => {
  expect(parseTimestamp(text)).toBeNull()
})

test('agrees with Date on random instants, in the fast form and the general one', () => {
  const { int } = seededRandom('timestamps')
  for (let i = 0; i < 5_000; i++) {
    const ms = int(Date.UTC(1900, 0, 1), Date.UTC(2299, 11, 31))
    const text = new Date(ms).toISOString()
    expect(parseTimestamp(text)).toBe(ms)
    const offset = int(-14 * 60, 14 * 60)
    const local = new Date(ms + offset * 60_000).toISOString().slice(0, -1)
    const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60].map((n) =>
      String(n).padStart(2, '0'),
    )
    expect(parseTimestamp(`${local}${offset < 0 ? '-' : '+'}${hours}:${minutes}`)).toBe(ms)
  }
})

test('a single changed character is never read as a different instant', () => {
  const { int, pick } = seededRandom('timestamp mutations')
  const good = '2026-01-31T09:30:00.123Z'
  for (let i = 0; i < 5_000; i++) {
    const index = int(0, good.length - 1)
    const text = good.slice(0, index) + pick([...'0123456789:-+.TZtz x\0é']) + good.slice(index + 1)
    const ms = parseTimestamp(text)
    if (ms !== null)
      expect(new Date(ms).toISOString().slice(0, 23)).toBe(text.toUpperCase().replace(' ', 'T').slice(0, 23))
  }
})
