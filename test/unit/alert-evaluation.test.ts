import { expect, test } from 'bun:test'
import { evaluate } from '../../src/sql/alerts/evaluation.ts'

/** What events show of the rows of an alert's query (docs/alerts.md). */

const EVALUATED = { query: '', params: {}, windowMs: null, by: ['k'], column: 'n' }
const NEVER = new AbortController().signal

async function rowsOf(columns: readonly { name: string; type: string }[], row: readonly unknown[]) {
  const session = { run: async () => ({ columns, rows: [row] }), [Symbol.dispose]: () => {} }
  const evaluation = await evaluate(session, EVALUATED, 0, NEVER)
  return evaluation.rowsOf('["a"]')
}

const COLUMNS = [
  { name: 'k', type: 'String' },
  { name: 'n', type: 'UInt64' },
]

test('rows are objects', async () => {
  expect(await rowsOf(COLUMNS, ['a', '5'])).toEqual({ rows: [{ k: 'a', n: 5 }], rowCount: 1 })
})

test('rows whose names alone are too long are not encoded, which would take a thousand series too long', async () => {
  let encoded = 0
  const toJSON = () => encoded++
  const long = { name: 'c'.repeat(9_000), type: 'String' }
  expect(await rowsOf([...COLUMNS, long], ['a', '5', { toJSON }])).toEqual({ rows: [], rowCount: 1 })
  expect(encoded).toBe(0)
})

test('the events of an evaluation show a megabyte together, since a thousand series may fire at once', async () => {
  const text = 'x'.repeat(2_000)
  const rows = Array.from({ length: 1_000 }, (_, n) => [`${n}`, '5', text])
  const columns = [...COLUMNS, { name: 'text', type: 'String' }]
  const session = { run: async () => ({ columns, rows }), [Symbol.dispose]: () => {} }
  const evaluation = await evaluate(session, EVALUATED, 0, NEVER)
  const shown = rows.map((_, n) => evaluation.rowsOf(JSON.stringify([`${n}`])))
  expect(shown.map(({ rowCount }) => rowCount)).toEqual(rows.map(() => 1))
  const first = shown.findIndex((each) => each.rows.length === 0)
  expect(Math.round((first * text.length) / 1e5)).toBe(10)
  expect(shown.slice(first).every((each) => each.rows.length === 0)).toBe(true)
})
