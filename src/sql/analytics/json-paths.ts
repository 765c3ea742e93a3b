import { quote } from '../../stores/clickhouse/quoting.ts'
import { type AstNode, setTableOf } from './ast.ts'

/** Columns of free-form JSON, which queries read by path: `payload.tokens.in`. No other column has one of these names. */
export const JSON_COLUMNS: readonly string[] = [
  'payload',
  'input',
  'output',
  'metadata',
  'error_detail',
  'edited_input',
  'output_schema',
  'input_schema',
]

/** A longer path has too many possible readings (see {@link pathExpression}). */
const SEGMENTS_MAX = 4
const PATHS_MAX = 100

const WHOLE_ROW_KINDS = new Set(
  'Asterisk QualifiedAsterisk ColumnsRegexpMatcher ColumnsListMatcher QualifiedColumnsRegexpMatcher QualifiedColumnsListMatcher'.split(
    ' ',
  ),
)

const TYPES = { String: 'String', Int64: 'Int64', UInt64: 'UInt64', Double: 'Float64', Bool: 'Bool' } as const

/** Whether a node stands for all columns of a table: `*`, `COLUMNS('…')`, `x IN events`. */
export function isWholeRow(node: AstNode): boolean {
  return (WHOLE_ROW_KINDS.has(node.kind) && !isCounted(node)) || setTableOf(node) !== undefined
}

/**
 * The paths into JSON columns that a query uses, as `payload.tokens.in`. Null if it uses such a column in another way (as a
 * whole, with ClickHouse's subcolumn syntax), or uses its name as an alias.
 * @param nodes the tree of a query without {@link isWholeRow}
 */
export function jsonPathsOf(nodes: readonly AstNode[]): readonly string[] | null {
  const paths = new Set<string>()
  for (const node of nodes) {
    if (JSON_COLUMNS.includes(node.alias)) return null
    if (node.kind !== 'Identifier') continue
    const segments = node.name.split('.')
    const at = JSON_COLUMNS.includes(segments[0]) ? 0 : JSON_COLUMNS.includes(segments[1] ?? '') ? 1 : -1
    if (at < 0) continue
    const steps = segments.slice(at + 1)
    if (steps.length === 0 || steps.length > SEGMENTS_MAX || !steps.every(isPlain)) return null
    paths.add(segments.slice(at).join('.'))
  }
  return paths.size > PATHS_MAX ? null : [...paths]
}

/** `count(*)` reads no column. */
function isCounted(node: AstNode): boolean {
  const call = node.parent?.parent
  return node.kind === 'Asterisk' && call?.kind === 'Function' && call.name === 'count'
}

/** Excludes ClickHouse's own syntax (`^`a``, `:`Int64``, `[]`) and anything that would need escaping. */
function isPlain(step: string): boolean {
  return step !== '' && !/[`'"\\:^@[\]\p{Cc}]/u.test(step)
}

/**
 * SQL expression: the value at a path as `Dynamic`, with the type it has in each row; null where the path is missing.
 *
 * Extracting one path from the text costs a tenth of parsing the whole payload as JSON, and less if the text lacks the
 * longest step of the path.
 *
 * A dot may separate steps or be part of a key, as in `gen_ai.request.model`: each reading is tried if the text contains
 * its keys.
 */
export function pathExpression(path: string): string {
  const [column, ...steps] = path.split('.')
  const text = `ifNull(${column}, '')`
  const [nested, ...dotted] = readings(steps)
  const choices = dotted.flatMap((keys) => [presence(text, keys), valueAt(text, keys)])
  const value =
    choices.length === 0 ? valueAt(text, nested) : `multiIf(${choices.join(', ')}, ${valueAt(text, nested)})`
  return `if(${absence(text, steps)}, NULL, ${value})`
}

/**
 * SQL expression: like {@link pathExpression} for a path that is only used as a number. Parses the text once instead of
 * two or three times. The type of a number (`Int64` or `Float64`) may then depend on other rows, but its value as
 * `Float64` does not.
 */
export function numberExpression(path: string): string {
  const [column, ...steps] = path.split('.')
  const text = `ifNull(${column}, '')`
  const [nested, ...dotted] = readings(steps)
  // Parsing an empty text costs nothing; skipping such rows would copy the others out of the block and back.
  const choices = [`${absence(text, steps)}, ''`, ...dotted.map((keys) => asNested(text, keys, nested))]
  return `JSONExtract(${at(`multiIf(${choices.join(', ')}, ${text})`, nested)}, 'Dynamic')`
}

/** Arguments of `multiIf`: if the text has a value at `keys`, a text with that value at the keys `nested`. */
function asNested(text: string, keys: readonly string[], nested: readonly string[]): string {
  const opening = nested.map((key) => `{"${key}":`).join('')
  const value = `JSONExtractRaw(${at(text, keys)})`
  return `${presence(text, keys)}, concat(${quote(opening)}, ${value}, ${quote('}'.repeat(nested.length))})`
}

/** Whether the text has the keys, of which some contain a dot. */
function presence(text: string, keys: readonly string[]): string {
  const possible = keys.filter((key) => key.includes('.')).map((key) => `NOT (${lacks(text, `"${key}"`)})`)
  return `${possible.join(' AND ')} AND JSONHas(${at(text, keys)})`
}

/**
 * Whether the text certainly lacks the path. Searches for its longest step, because the engine finds words of four bytes or
 * more twice as fast as shorter ones.
 */
function absence(text: string, steps: readonly string[]): string {
  // In every reading, a key begins with the first step, and one ends with the last.
  const parts = steps.map((step, i) => `${i === 0 ? '"' : ''}${step}${i === steps.length - 1 ? '"' : ''}`)
  return lacks(
    text,
    parts.reduce((found, part) => (part.length > found.length ? part : found)),
  )
}

/** Whether the text certainly does not contain a part of a key, not even with escapes. */
function lacks(text: string, part: string): string {
  const escaping = part.includes('/') ? '\\' : '\\u'
  return `position(${text}, ${quote(part)}) = 0 AND position(${text}, ${quote(escaping)}) = 0`
}

/**
 * Extracts the value with the type that the JSON text has. `JSONExtract` alone may use the type of values seen before:
 * the same number could be `Int64` in one row and `Float64` in another, and form two groups of a GROUP BY.
 */
function valueAt(text: string, keys: readonly string[]): string {
  const where = at(text, keys)
  const typed = Object.entries(TYPES).map(
    ([shown, type]) => `JSONType(${where}) = '${shown}', JSONExtract(${where}, '${type}')::Dynamic`,
  )
  return `multiIf(${typed.join(', ')}, JSONExtract(${where}, 'Dynamic'))`
}

function at(text: string, keys: readonly string[]): string {
  return [text, ...keys.map(quote)].join(', ')
}

/** All ways to join adjacent steps into keys, the one with the most keys first: a.b is [a, b] or [a.b]. */
function readings(steps: readonly string[]): string[][] {
  if (steps.length === 1) return [[...steps]]
  const [first, ...rest] = steps
  const ofRest = readings(rest)
  return [...ofRest.map((keys) => [first, ...keys]), ...ofRest.map(([next, ...keys]) => [`${first}.${next}`, ...keys])]
}
