import { type AstNode, setTableOf } from './ast.ts'

/** Columns of free-form JSON, which queries take apart by path: `payload.tokens.in`. Names that no other column has. */
export const JSON_COLUMNS: readonly string[] = ['payload', 'input', 'output']

/** Of longer paths there are too many ways to read them (see {@link pathExpression}). */
const SEGMENTS_MAX = 4
const PATHS_MAX = 100

/**
 * The paths into JSON columns that a query uses, as `payload.tokens.in`; null when it uses such a column in any other way
 * too (as a whole, by `*`, in `x IN events`, by ClickHouse's subcolumn syntax), or gives its name to something of its own.
 */
export function jsonPathsOf(nodes: readonly AstNode[]): readonly string[] | null {
  const paths = new Set<string>()
  for (const node of nodes) {
    if (WHOLE_ROW_KINDS.has(node.kind) && !isCounted(node)) return null
    if (JSON_COLUMNS.includes(node.alias) || setTableOf(node) !== undefined) return null
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

/** `count(*)` looks into no column. */
function isCounted(node: AstNode): boolean {
  const call = node.parent?.parent
  return node.kind === 'Asterisk' && call?.kind === 'Function' && call.name === 'count'
}

const WHOLE_ROW_KINDS = new Set(
  'Asterisk QualifiedAsterisk ColumnsRegexpMatcher ColumnsListMatcher QualifiedColumnsRegexpMatcher QualifiedColumnsListMatcher'.split(
    ' ',
  ),
)

/** Not one of `^`a``, `:`Int64`` or `[]`, which are ClickHouse's own, nor anything that would have to be escaped. */
function isPlain(step: string): boolean {
  return step !== '' && !/[`'"\\:^@[\]\p{Cc}]/u.test(step)
}

/**
 * SQL text: the value at a path, of the type it has in each row (`Dynamic`), null where there is none.
 *
 * Reading one path from the text costs a tenth of what making a JSON value of the whole payload does, and less where
 * the text does not hold the last key at all.
 *
 * A dot may be a step or part of a key, as in `gen_ai.request.model`: each way to read the path is tried where the text
 * holds such a key.
 */
export function pathExpression(path: string): string {
  const [column, ...steps] = path.split('.')
  const text = `ifNull(${column}, '')`
  const [nested, ...dotted] = readings(steps)
  const choices = dotted.flatMap((keys) => {
    const present = keys.filter((key) => key.includes('.')).map((key) => `position(${text}, ${quote(`"${key}"`)}) > 0`)
    return [`${present.join(' AND ')} AND JSONHas(${at(text, keys)})`, valueAt(text, keys)]
  })
  const value =
    choices.length === 0 ? valueAt(text, nested) : `multiIf(${choices.join(', ')}, ${valueAt(text, nested)})`
  // A key may be written with escapes.
  const absent = `position(${text}, ${quote(`${steps.at(-1)}"`)}) = 0 AND position(${text}, '\\\\u') = 0`
  return `if(${absent}, NULL, ${value})`
}

/**
 * Of the type that the text shows. `JSONExtract` alone would give a value the type of others that came before it: the
 * same number could come as `Int64` here and as `Float64` there, and be two groups of a GROUP BY.
 */
function valueAt(text: string, keys: readonly string[]): string {
  const where = at(text, keys)
  const typed = Object.entries(TYPES).map(
    ([shown, type]) => `JSONType(${where}) = '${shown}', JSONExtract(${where}, '${type}')::Dynamic`,
  )
  return `multiIf(${typed.join(', ')}, JSONExtract(${where}, 'Dynamic'))`
}

const TYPES = { String: 'String', Int64: 'Int64', UInt64: 'UInt64', Double: 'Float64', Bool: 'Bool' } as const

function at(text: string, keys: readonly string[]): string {
  return [text, ...keys.map(quote)].join(', ')
}

/** All ways to join neighbouring steps to keys, that with the most keys first: a.b is [a, b] or [a.b]. */
function readings(steps: readonly string[]): string[][] {
  if (steps.length === 1) return [[...steps]]
  const [first, ...rest] = steps
  const ofRest = readings(rest)
  return [...ofRest.map((keys) => [first, ...keys]), ...ofRest.map(([next, ...keys]) => [`${first}.${next}`, ...keys])]
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
