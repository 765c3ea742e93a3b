import type { AstNode } from './ast.ts'

/**
 * Functions that fail for no value of their arguments: at most for a type, which is checked before anything is read. None
 * of them takes long for any value either.
 */
const FUNCTIONS = new Set(
  `and or not xor equals notequals less lessorequals greater greaterorequals isnull isnotnull in notin tuple array
   if plus minus multiply divide negate least greatest abs tostring lower upper startswith concat
   tostartofsecond tostartofminute tostartoffiveminutes tostartoftenminutes tostartoffifteenminutes tostartofhour
   tostartofday tostartofweek tostartofmonth tostartofquarter tostartofyear tomonday tominute tohour todayofweek
   todayofmonth tomonth toquarter toyear now today yesterday tointervalsecond tointervalminute
   tointervalhour tointervalday tointervalweek tointervalmonth
   count countif sum sumif min max avg uniq uniqexact any`.split(/\s+/),
)

/**
 * Whether nothing in a query can fail because of a value. Only then may ClickHouse read aggregate projections for it: it
 * reads those without the PREWHERE of `views.ts`, so the query's expressions may be evaluated on rows of other workspaces
 * before the filter removes them, and an error would reveal their contents.
 */
export function isInfallible(nodes: readonly AstNode[]): boolean {
  return nodes.every(({ kind, name }) => kind !== 'Function' || FUNCTIONS.has(name.toLowerCase()))
}
