import { type ApiError, invalid } from '../../base/errors.ts'
import { type ColumnarClient, ColumnarError } from '../../stores/clickhouse/client.ts'
import { TENANT_WORKLOAD } from '../../stores/clickhouse/protocol.ts'
import { quote } from '../../stores/clickhouse/quoting.ts'
import { type AstNode, literalText, readAst, setTableOf } from './ast.ts'
import { unboundedCall } from './bounds.ts'
import { isAllowedFunction, isAllowedTableFunction, isCallByName, takesFunction } from './functions.ts'
import { isInfallible } from './infallible.ts'
import { isWholeRow, jsonPathsOf } from './json-paths.ts'
import { refusal } from './problems.ts'
import { TABLES } from './tables.ts'
import { NUMERIC_TYPE } from './typed-contexts.ts'
import { withTypedPaths } from './typed-paths.ts'

/**
 * First layer around tenant SQL: allows only queries whose every part is known to be harmless. ClickHouse itself parses
 * the text; the guard reads only its normal form and the tree that it prints.
 */
export interface SqlGuard {
  /** @throws ApiError VALIDATION_ERROR that names what is invalid or not allowed */
  check(query: string, signal?: AbortSignal): Promise<CheckedQuery>
}

/** A query that passed the guard. */
export interface CheckedQuery {
  /** In ClickHouse's normal form: one SELECT on one line, without comments. */
  readonly text: string
  /** See {@link jsonPathsOf}. */
  readonly jsonPaths: readonly string[] | null
  /** Those of `jsonPaths` that are only used as numbers: see `numberExpression`. */
  readonly numberPaths: readonly string[]
  /** Placeholders whose values become types of casts: see {@link refuseValues}. */
  readonly typeParameters: readonly string[]
  /** See {@link isInfallible}. */
  readonly isInfallible: boolean
  /** The tables that it names; also names that its own WITH defines. */
  readonly tables: readonly string[]
  /** Whether it may use columns that it does not name, as through `*`. */
  readonly usesWholeRows: boolean
}

/** Turns an engine error into the caller's error. */
type Explain = (error: ColumnarError) => ApiError

/** Bytes of a statement: a query and the scope around it. */
export const STATEMENT_BYTES_MAX = 2_000_000
/** Settings for parsing a query without running it. */
export const PARSER_SETTINGS = {
  workload: TENANT_WORKLOAD,
  readonly: 1,
  max_execution_time: 5,
  max_query_size: STATEMENT_BYTES_MAX,
}

/**
 * Matches strings, quoted names and `{name:Type}` placeholders of the engine's normal form. The normal form keeps types as
 * written, even with comments, so only unambiguous ones match.
 */
const QUOTED_OR_PARAMETER =
  /'(?:[^'\\]|\\.)*'|`((?:[^`\\]|\\.)*)`|"((?:[^"\\]|\\.)*)"|\{(\w+):((?:[\w\s(),=.]|-(?!-)|'[^'\\{}]*'|`[^`\\{}]*`)*)\}/gs

const NO_FORMAT = 'FORMAT and INTO OUTFILE are not allowed in a query: set the format in the request'

/** Of a placeholder's integer, with leading zeros. */
const DIGITS_MAX = 100

const PLACEHOLDER = 9_000_000_000_000

/** Harmless parts of a SELECT. Functions, tables and lists of selects are checked in more detail. */
const PLAIN_KINDS = new Set(
  `SelectIntersectExceptQuery SelectQuery ExpressionList Subquery WithElement Identifier Literal Asterisk
   QualifiedAsterisk ColumnsTransformerList ColumnsExceptTransformer ColumnsReplaceTransformer
   ColumnsReplaceTransformer::Replacement ColumnsRegexpMatcher ColumnsListMatcher QualifiedColumnsRegexpMatcher
   QualifiedColumnsListMatcher TablesInSelectQuery TablesInSelectQueryElement TableJoin ArrayJoin OrderByElement
   InterpolateElement WindowDefinition WindowListElement`.split(/\s+/),
)

/** Functions whose second argument is a type, of which they create values. */
const TYPE_FUNCTIONS = /^(_?cast|accurateCast(OrNull|OrDefault)?)$/i

const TABLE_NAMES = new Intl.ListFormat('en-GB').format(TABLES.keys())

export function createGuard(client: ColumnarClient, explain: Explain): SqlGuard {
  const ask = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await answer
    } catch (error) {
      throw error instanceof ColumnarError ? explain(error) : error
    }
  }
  return {
    async check(query, signal) {
      const text = await ask(normalFormOf(client, query, signal))
      if (!/^[\s(]*(SELECT|WITH|FROM)\b/.test(text)) throw refusal('only SELECT is allowed')
      refuseHidden(text)
      const printTree = (sql: string) =>
        client.queryText(`EXPLAIN AST ${sql}`, 'TabSeparated', { settings: PARSER_SETTINGS, signal })
      const { statement, names } = withoutParameters(text)
      const tree = await ask(printTree(statement))
      const nodes = readAst(tree)
      // A FORMAT clause also applies to the printed tree.
      if (nodes === null && / FORMAT \S+$/.test(text)) throw refusal(NO_FORMAT)
      if (nodes === null) throw refusal('this query cannot be analysed')
      const typeParameters = nodes.flatMap((node) => refuseNode(node, names) ?? [])
      refuseCallsByName(nodes)
      refuseUnbounded(nodes)
      // A NATURAL JOIN uses all columns with common names, so none may be missing; the tree does not show that a join is natural.
      const usesWholeRows = /\bNATURAL\b/.test(text) || nodes.some(isWholeRow)
      const jsonPaths = usesWholeRows ? null : jsonPathsOf(nodes)
      const print = (sql: string) => printTree(withTypedValues(sql))
      const typed = await ask(withTypedPaths(text, nodes, print))
      const tables = nodes.flatMap((node) =>
        node.kind === 'TableIdentifier' ? node.name : (setTableOf(node)?.name ?? []),
      )
      return { ...typed, jsonPaths, typeParameters, isInfallible: isInfallible(nodes), tables, usesWholeRows }
    },
  }
}

/**
 * The query in the engine's normal form: on one line, without comments.
 * @throws ColumnarError when it does not parse
 */
export async function normalFormOf(client: ColumnarClient, query: string, signal?: AbortSignal): Promise<string> {
  // A placeholder would need a session of its own: see `IdleSessions`.
  const sql = `SELECT formatQuerySingleLine(${quote(query)}) AS text`
  const [row] = await client.query<{ text: string }>(sql, { settings: PARSER_SETTINGS, signal })
  return row.text
}

/** Refuses what the printed tree does not show, or what could forge it. */
function refuseHidden(text: string): void {
  for (const [, backquoted, doubleQuoted, parameter, type] of text.matchAll(QUOTED_OR_PARAMETER)) {
    // The tree prints names unescaped: a line break could forge a node, and a bracket an alias.
    const name = backquoted ?? doubleQuoted ?? ''
    if (/[\\\p{Cc}]/u.test(name)) throw refusal('names with control characters or backslashes are not allowed')
    if (/\((alias|children) /.test(name)) throw refusal('names that contain "(alias " or "(children " are not allowed')
    if (parameter !== undefined && /\bIdentifier\b/.test(type)) {
      throw refusal(
        `the placeholder ${parameter} has the type Identifier, which is not allowed: placeholders stand for values`,
      )
    }
  }
  if (/[{}]/.test(text.replace(QUOTED_OR_PARAMETER, '')))
    throw refusal('a placeholder must be written as {name:Type}, with a plain type')
  refuseStates(text)
}

/**
 * Replaces placeholders for printing the tree. They only ever become values, so each is replaced by a number that
 * identifies it.
 */
function withoutParameters(text: string): { statement: string; names: readonly string[] } {
  const names: string[] = []
  const statement = text.replace(QUOTED_OR_PARAMETER, (whole, _back, _double, parameter, type) =>
    // Only a String placeholder can be the type of a cast.
    parameter === undefined ? whole : String(PLACEHOLDER + names.push(type === 'String' ? parameter : '') - 1),
  )
  return { statement, names }
}

/** Like {@link withoutParameters}, but with example values of the placeholders' types. */
function withTypedValues(text: string): string {
  return text.replace(QUOTED_OR_PARAMETER, (whole, _back, _double, parameter, type: string) =>
    parameter === undefined ? whole : exampleOf(type),
  )
}

function exampleOf(type: string): string {
  const [, element] = /^ *Array\((.*)\) *$/.exec(type) ?? []
  if (element !== undefined) return `[${exampleOf(element)}]`
  if (NUMERIC_TYPE.test(type)) return '1'
  return /^(Nullable\(|LowCardinality\()*String\)*$/.test(type) ? "'?'" : 'NULL'
}

/** The placeholder that a node of the tree stands for. */
function parameterOf(node: AstNode | undefined, names: readonly string[]): string | undefined {
  const number = node?.kind === 'Literal' ? /^UInt64_(\d+)$/.exec(node.rest)?.[1] : undefined
  return names[Number(number) - PLACEHOLDER] || undefined
}

/** @returns the placeholder that is the type of a cast, if there is one */
function refuseNode(node: AstNode, parameters: readonly string[]): string | undefined {
  switch (node.kind) {
    case 'SelectWithUnionQuery':
      if (node.children.some((child) => child.kind === 'Set')) throw refusal('SETTINGS is not allowed')
      if (node.children.length !== 1) throw refusal(NO_FORMAT)
      return
    case 'Set':
      throw refusal('SETTINGS is not allowed')
    case 'Function':
      return refuseFunction(node, parameters)
    case 'TableIdentifier':
      refuseTable(node.name)
      return
    case 'TableExpression':
      if (node.children.some((child) => child.kind === 'SampleRatio')) throw refusal('SAMPLE is not allowed')
      return
    case 'ColumnsApplyTransformer':
      throw refusal('APPLY is not allowed')
    default:
      if (!PLAIN_KINDS.has(node.kind)) throw refusal(`${node.kind} is not allowed in a query`)
  }
}

function refuseFunction(node: AstNode, parameters: readonly string[]): string | undefined {
  const name = node.name
  if (node.parent?.kind === 'TableExpression') {
    if (!isAllowedTableFunction(name)) throw refusal(`the table function ${name} is not allowed`)
    if (name === 'values') refuseStructure(literalText(node.children[0]?.children[0]))
    return
  }
  if (!isAllowedFunction(name)) throw refusal(`the function ${name} is not allowed`)
  const set = setTableOf(node)
  if (set !== undefined) refuseTable(set.name)
  const [first, second] = node.children[0]?.children ?? []
  const typeParameter = TYPE_FUNCTIONS.test(name) ? parameterOf(second, parameters) : undefined
  if (TYPE_FUNCTIONS.test(name) && typeParameter === undefined) refuseType(literalText(second))
  if (takesFunction(name) && second !== undefined && first?.kind === 'Identifier' && !isAllowedFunction(first.name)) {
    throw refusal(
      `${name}(${first.name}, …) calls the function ${first.name}, which is not allowed; for a column of that name use a lambda, x -> …`,
    )
  }
  return typeParameter
}

function refuseUnbounded(nodes: readonly AstNode[]): void {
  const aliases = new Set(nodes.map(({ alias }) => alias))
  for (const node of nodes) {
    const problem = node.kind === 'Function' ? unboundedCall(node, aliases) : undefined
    if (problem !== undefined) throw refusal(problem)
  }
}

/** Names such as `user` are function calls unless the query defines them as aliases. */
function refuseCallsByName(nodes: readonly AstNode[]): void {
  const aliases = new Set(nodes.map(({ alias }) => alias))
  for (const { kind, name } of nodes)
    if (kind === 'Identifier' && isCallByName(name) && !aliases.has(name)) {
      throw refusal(
        `${name} is a function, which is not allowed; for a column of that name write its table, too: t.${name}`,
      )
    }
}

/** A list of columns may hold expressions, which the tree does not show: `s String ALIAS file('…')`. */
function refuseStructure(structure: string | undefined): void {
  const isPlain = withoutBrackets(structure?.replace(/'[^'\\]*'/g, '') ?? '')
    ?.split(',')
    .every((column) => /^ *\w+ +(?!(DEFAULT|MATERIALIZED|ALIAS|EPHEMERAL)\b)\w+ *$/i.test(column))
  if (isPlain !== true)
    throw refusal("values() must begin with a list of columns, each a name and a type, such as 'a UInt8, b String'")
}

/** The text outside brackets; undefined if they do not match, or contain what could hide one. */
function withoutBrackets(text: string): string | undefined {
  let outside = ''
  let depth = 0
  for (const [part] of text.matchAll(/[()]|[^()]+/g)) {
    if (part === '(') depth++
    else if (part === ')') depth--
    else if (depth === 0) outside += part
    else if (!/^(?:[\w ,=.]|-(?!-))*$/.test(part)) return undefined
    if (depth < 0) return undefined
  }
  return depth === 0 ? outside : undefined
}

/** Refuses types that are computed or contain escapes, because they could evaluate to a type that is not allowed. */
function refuseType(type: string | undefined): void {
  if (type === undefined)
    throw refusal('the type of a cast must be a string literal or a {name:String} placeholder, not an expression')
  if (type.includes('\\')) throw refusal('types with backslashes are not allowed')
  refuseStates(type)
}

/** Aggregate states are refused, because they would be parsed from arbitrary bytes. */
function refuseStates(text: string): void {
  if (/AggregateFunction/i.test(text)) throw refusal('AggregateFunction types are not allowed')
}

/** Values of placeholders in a request: see `RunQuery` and `StreamQuery`. */
interface GivenParameters {
  readonly params?: Readonly<Record<string, unknown>>
  readonly parameters?: Readonly<Record<string, string>>
}

/**
 * Applies the rules for types in a query to placeholder values that become types of casts, and refuses integers that the
 * engine would wrap round: 300 as UInt8 is 44.
 * @throws ApiError VALIDATION_ERROR
 */
export function refuseValues(
  { text, typeParameters }: Pick<CheckedQuery, 'text' | 'typeParameters'>,
  { params = {}, parameters = {} }: GivenParameters,
): void {
  for (const name of typeParameters) {
    // A value may be given in both ways. The engine uses the second, but both are checked.
    if (Object.hasOwn(params, name)) refuseType(typeof params[name] === 'string' ? params[name] : undefined)
    // In ClickHouse's text form quotes may be escaped.
    if (Object.hasOwn(parameters, name))
      refuseType(parameters[name].replace(/\\(['\\])/g, (whole, sign) => (sign === "'" ? sign : whole)))
  }
  for (const [, , , name, type] of text.matchAll(QUOTED_OR_PARAMETER))
    if (name !== undefined && Object.hasOwn(params, name)) refuseOverflow(name, type, params[name])
}

function refuseOverflow(name: string, type: string, value: unknown): void {
  const [, unsigned, size] = /^(?:Nullable\(|Array\()*(U?)Int(8|16|32|64)\)*$/.exec(type) ?? []
  if (size === undefined) return
  const bits = BigInt(size)
  const [min, max] = unsigned ? [0n, (1n << bits) - 1n] : [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
  for (const each of Array.isArray(value) ? value : [value]) {
    // The engine itself refuses whatever is no integer.
    const digits = String(each)
    if (!/^-?\d+$/.test(digits)) continue
    // To read a million digits takes a second.
    const number = digits.length > DIGITS_MAX ? undefined : BigInt(digits)
    if (number === undefined || number < min || number > max) {
      const got = number ?? `${digits.length} digits`
      throw invalid(`params.${name}`, `expected ${type}, ${min} to ${max}; got ${got}`)
    }
  }
}

/** Allows only unqualified names: the scoped tables and the query's own WITH. No other table has such a name here. */
function refuseTable(name: string): void {
  if (!/^\w+$/.test(name)) throw refusal(`the table ${name} is not allowed; the tables are ${TABLE_NAMES}`)
}
