import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { CliError } from '../../src/cli/shared/error.ts'
import { renderTable } from '../../src/cli/shared/table.ts'
import { readArgs } from '../../src/cli/sql/args.ts'
import { pointOut, readResult } from '../../src/cli/sql/service.ts'
import { splitStatements } from '../../src/cli/sql/statements.ts'
import { seededRandom } from '../support/random.ts'

/** The parts of `bun run sql` that need no service. */

const KEY = { AGENT_RUN_KEY: 'svc_ws_x' }
const { seed } = seededRandom('sql prompt')

describe('the command line', () => {
  test('reads all options; key and URL may come from the environment', () => {
    const args = ['SELECT 1', '--format=csv', '--param', 'a=1', '--param', 'b=x=y', '--wait-for', '12', '--output', 'f']
    expect(readArgs(args, { ...KEY, AGENT_RUN_URL: 'https://runs.example/ ' })).toEqual({
      url: 'https://runs.example',
      key: 'svc_ws_x',
      query: 'SELECT 1',
      file: undefined,
      format: 'csv',
      output: 'f',
      params: { a: '1', b: 'x=y' },
      waitFor: 12,
      noColor: false,
    })
    const cursor = ['--key', 'svc_ws_y', '-f', 'q.sql', '--wait-for', 'e.12']
    expect(readArgs(cursor, { ...KEY, NO_COLOR: '1' })).toMatchObject({
      url: 'http://127.0.0.1:3000',
      key: 'svc_ws_y',
      file: 'q.sql',
      format: 'table',
      waitFor: 'e.12',
      noColor: true,
    })
  })

  test.each([
    [['SELECT', '1'], 'put the query in quotes: "SELECT 1"'],
    [['SELECT 1', '-f', 'q.sql'], 'give a query or --file, not both'],
    [['--param', 'a'], '--param takes name=value; got "a"'],
    [['--param', 'a b=1'], '--param takes name=value; got "a b=1"'],
    [['--wait-for', ''], '--wait-for takes a seq, or "complete_through" of an earlier result'],
    [['--key', 'secret'], 'a workspace key begins with svc_ws_; this one does not'],
  ])('rejects %j and says what to do', (args, message) => {
    expect(() => readArgs(args, KEY)).toThrow(new CliError(message, 2))
  })
})

describe('statements', () => {
  /** Parts of statements, some with a semicolon that ends nothing. */
  const part = fc.constantFrom(
    'SELECT 1',
    ' ',
    '\n',
    "'a;b'",
    "'it''s;'",
    "'\\';'",
    '"c;d"',
    '`e;\\`f`',
    "-- g; '\n",
    '# h; "\n',
    "/* i; /* j; */ ' */",
    "$$k;'$$",
    '$l$ $$ ; $l$',
    '{m:UInt8}',
    '-1',
    '/2',
    '$n',
  )

  test('end at semicolons outside literals and comments', () => {
    const statement = fc.array(part, { maxLength: 8 }).map((parts) => `x ${parts.join(' ')}`)
    const property = fc.property(fc.array(statement, { maxLength: 4 }), statement, (ended, rest) => {
      const text = `${ended.map((each) => `${each};`).join('')}${rest}`
      expect(splitStatements(text)).toEqual({ complete: ended.map((each) => each.trim()), rest: rest.trimStart() })
    })
    fc.assert(property, { seed })
  })

  test.each(["SELECT 'a;", 'SELECT "a;', 'SELECT `a;', 'SELECT $$a;', '/* a;', "SELECT '\\';"])(
    '%j is incomplete: something is still open',
    (text) => {
      expect(splitStatements(text)).toEqual({ complete: [], rest: text })
    },
  )

  test('ignores comments and empty statements', () => {
    expect(splitStatements(' -- a\n;;/* b */ ;\n')).toEqual({ complete: [], rest: '' })
  })
})

test('marks the place of a syntax error, counted in characters', () => {
  const query = "SELECT 'ä€',\n\tFORM x"
  const message = `query: Syntax error: failed at position ${"SELECT 'ä€',\n\t".length + 1} (FORM)`
  expect(pointOut(message, query)).toBe(`${message}\n   FORM x\n   ^`)
  const long = `SELECT ${'1, '.repeat(100)}FORM ${'x'.repeat(200)}`
  const [, line, mark] = pointOut('failed at position 308', long).split('\n')
  expect(line?.slice(mark?.indexOf('^'))).toStartWith('FORM xx')
  expect(line?.length).toBeLessThan(110)
  expect(pointOut('failed at position 99', 'SELECT')).toBe('failed at position 99')
})

test('a table is never wider than its terminal, and all its lines are equally wide', () => {
  const text = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 60 }),
    fc.constantFrom('界', '\u0301', '👩‍👩‍👧', '\t', '\x1b[1m'),
  )
  const cell = fc.option(text, { nil: null })
  const grid = fc.integer({ min: 1, max: 6 }).chain((columns) =>
    fc.record({
      columns: fc.array(fc.record({ name: text, type: fc.constantFrom('String', 'UInt64', 'Nullable(Float64)') }), {
        minLength: columns,
        maxLength: columns,
      }),
      rows: fc.array(fc.array(cell, { minLength: columns, maxLength: columns }), { maxLength: 5 }),
    }),
  )
  const property = fc.property(grid, fc.integer({ min: 60, max: 120 }), (given, width) => {
    const table = renderTable(given, { paint: (_, shown) => shown, width, frame: 'box' })
    const widths = new Set(
      table
        ?.trimEnd()
        .split('\n')
        .map((line) => Bun.stringWidth(line)),
    )
    expect([widths.size, Math.max(...widths) <= width]).toEqual([1, true])
  })
  fc.assert(property, { seed })
})

test('numbers keep all their digits, and columns their order', () => {
  const data =
    '{"columns":[{"name":"2","type":"Int64"},{"name":"1","type":"String"}],"rows":[{"2": 9007199254740993,"1": "a\\nb"},' +
    '{"2": null,"1": {"x": 1.0}}],"row_count":2,"truncated":false,"statistics":{"elapsed_ms":1,"rows_read":2,' +
    '"bytes_read":3},"complete_through":"e.1"}'
  const answer = readResult(`{"data":${data},"error":null}`)
  expect([answer.json, answer.rows]).toEqual([
    data,
    [
      ['9007199254740993', 'a\nb'],
      [null, '{"x": 1.0}'],
    ],
  ])
})
