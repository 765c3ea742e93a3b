import { expect, test } from 'bun:test'
import { addressState, number, oneOf, text, texts } from '../../src/dashboard/page/context/address-state.ts'
import { SQL } from '../../src/dashboard/page/sql/sql-address.ts'

const STATE = addressState({
  ...texts('q', 'agent'),
  range: text('1h'),
  sort: oneOf(['newest', 'oldest']),
  version: number,
})

test('an address is read as what each member is; what it lacks, or has wrong, is the default', () => {
  const nothing = { q: '', agent: '', range: '1h', sort: 'newest', version: null } as const
  expect(STATE.of({})).toEqual(nothing)
  expect(STATE.of({ sort: 'toString', version: '1e3', range: '', other: 'x' })).toEqual(nothing)
  const given = { q: 'a b', agent: 'x', range: '7d', sort: 'oldest', version: 12 } as const
  expect(STATE.of({ ...given, version: '12' })).toEqual(given)
})

test('what is written is read back, and a default is left out', () => {
  expect(STATE.write({ q: 'a', range: '7d', sort: 'oldest', version: 12 })).toEqual({
    ...{ q: 'a', range: '7d', sort: 'oldest', version: '12' },
  })
  expect(STATE.write(STATE.of({}))).toEqual({ q: '', agent: '', range: '', sort: '', version: '' })
  const shown = { q: 'SELECT 1', saved: 'x', as: 'chart', chart: { kind: 'bar', y: ['n'] } } as const
  expect(SQL.of(SQL.write({ ...shown, chart: { kind: 'bar', y: ['n'] } }))).toEqual({
    ...shown,
    chart: { kind: 'bar', y: ['n'] },
  })
  expect(SQL.of({ chart: '{"kind":' }).chart).toEqual({})
})
