import type { AstNode } from './ast.ts'

/** Functions that no value of their arguments makes fail. A type may, but types are checked before anything is read. */
export const INFALLIBLE_FUNCTIONS: ReadonlySet<string> = new Set(
  `abs and any array avg concat count countIf divide equals greater greaterOrEquals greatest if in isNotNull isNull least
   less lessOrEquals lower max min minus multiply negate not notEquals notIn now or plus startsWith sum sumIf today
   toDayOfMonth toDayOfWeek toHour toIntervalDay toIntervalHour toIntervalMinute toIntervalMonth toIntervalSecond
   toIntervalWeek toMinute toMonday toMonth toQuarter toStartOfDay toStartOfFifteenMinutes toStartOfFiveMinutes
   toStartOfHour toStartOfMinute toStartOfMonth toStartOfQuarter toStartOfSecond toStartOfTenMinutes toStartOfWeek
   toStartOfYear toString toYear tuple uniq uniqExact upper yesterday`.split(/\s+/),
)

/**
 * Whether nothing in a query can fail because of a value. Only then may ClickHouse read aggregate projections for it: it
 * reads those without the PREWHERE of `views.ts`, so the query's expressions may be evaluated on rows of other workspaces
 * before the filter removes them, and an error would reveal their contents.
 */
export function isInfallible(nodes: readonly AstNode[]): boolean {
  return nodes.every(({ kind, name }) => kind !== 'Function' || isInfallibleFunction(name))
}

/** Some functions may be written in any case. */
function isInfallibleFunction(name: string): boolean {
  return INFALLIBLE_FUNCTIONS.has(name) || INFALLIBLE_FUNCTIONS.has(name.toLowerCase())
}
