import { expect, test } from 'bun:test'
import { readAst } from '../../src/sql/analytics/ast.ts'
import { isAllowedFunction } from '../../src/sql/analytics/functions.ts'
import { INFALLIBLE_FUNCTIONS, isInfallible } from '../../src/sql/analytics/infallible.ts'

const treeOf = (...functions: readonly string[]) =>
  readAst(functions.map((name) => `Function ${name} (alias x) (children 1)`).join('\n'))!

test.each([
  [['toStartOfHour', 'count', 'equals'], true],
  [['COUNT'], true],
  [['count', 'throwIf'], false],
  [['count', 'intDiv'], false],
  [['count', 'CAST'], false],
  [['count', 'toUInt8'], false],
  [['numbers'], false],
  [[], true],
])('a query that calls %p: %p', (functions, expected) => {
  expect(isInfallible(treeOf(...functions))).toBe(expected)
})

test('the SQL guard allows each infallible function', () => {
  expect([...INFALLIBLE_FUNCTIONS].filter((name) => !isAllowedFunction(name))).toEqual([])
})
