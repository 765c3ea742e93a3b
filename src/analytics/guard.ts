import { type ColumnarClient, ColumnarError } from '../columnar/client.ts'
import { ApiError } from '../http/errors.ts'
import { type AstNode, readAst } from './ast.ts'
import { isAllowedFunction, isAllowedTableFunction } from './functions.ts'
import { jsonPathsOf } from './json-paths.ts'

/**
 * First layer around tenant SQL: lets through only queries of which every part is known to be harmless. The text is
 * parsed by ClickHouse itself, never by us; what we read is its normal form and the tree it prints.
 */
export interface SqlGuard {
  /** @throws ApiError VALIDATION_ERROR that says what is not allowed, or what is wrong with the query */
  check(query: string, signal?: AbortSignal): Promise<CheckedQuery>
}

/** A query that may be run. */
export interface CheckedQuery {
  /** In ClickHouse's normal form: one SELECT on one line, without comments. */
  readonly text: string
  /** See {@link jsonPathsOf}. */
  readonly jsonPaths: readonly string[] | null
}

/** Turns the engine's complaint into the caller's error. */
export type Explain = (error: ColumnarError) => ApiError

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
      const options = { settings: PARSER_SETTINGS, signal }
      const [row] = await ask(
        client.query<{ text: string }>('SELECT formatQuerySingleLine({query:String}) AS text', {
          ...options,
          params: { query },
        }),
      )
      if (!/^[\s(]*(SELECT|WITH|FROM)\b/.test(row.text)) throw refusal('only SELECT is allowed')
      refuseHidden(row.text)
      const tree = await ask(client.statementText(`EXPLAIN AST ${withoutParameters(row.text)}`, options))
      const nodes = readAst(tree)
      if (nodes === null) throw refusal('this query cannot be checked')
      for (const node of nodes) refuseNode(node)
      return { text: row.text, jsonPaths: jsonPathsOf(nodes) }
    },
  }
}

const PARSER_SETTINGS = { readonly: 1, max_execution_time: 5, max_query_size: 2_000_000 }

/** Strings and quoted names of the engine's normal form, and its `{name:Type}` placeholders. */
const QUOTED_OR_PARAMETER = /'(?:[^'\\]|\\.)*'|`((?:[^`\\]|\\.)*)`|"((?:[^"\\]|\\.)*)"|\{(\w+):([^{}]*)\}/gs

/** Refuses what the printed tree does not show, or could be made to show wrongly. */
function refuseHidden(text: string): void {
  for (const [, backquoted, doubleQuoted, parameter, type] of text.matchAll(QUOTED_OR_PARAMETER)) {
    // The tree prints names as they are: a line break in one would look like another node.
    const name = backquoted ?? doubleQuoted ?? ''
    if (/[\\\p{Cc}]/u.test(name)) throw refusal('names with control characters or backslashes are not allowed')
    if (parameter !== undefined && /\bIdentifier\b/.test(type)) {
      throw refusal(`the parameter ${parameter} is an Identifier, which is not allowed`)
    }
  }
  // Their values are read from bytes that were made elsewhere.
  if (/AggregateFunction/i.test(text)) throw refusal('AggregateFunction types are not allowed')
}

/** Placeholders only ever become values, so the tree is asked for with a value in their place. */
function withoutParameters(text: string): string {
  return text.replace(QUOTED_OR_PARAMETER, (whole, _back, _double, parameter) =>
    parameter === undefined ? whole : '1',
  )
}

/** Parts of a SELECT that can do no harm; functions, tables and lists of selects are looked at more closely. */
const PLAIN_KINDS = new Set(
  `SelectIntersectExceptQuery SelectQuery ExpressionList Subquery WithElement Identifier Literal Asterisk
   QualifiedAsterisk ColumnsTransformerList ColumnsExceptTransformer ColumnsReplaceTransformer
   ColumnsReplaceTransformer::Replacement ColumnsRegexpMatcher ColumnsListMatcher QualifiedColumnsRegexpMatcher
   QualifiedColumnsListMatcher TablesInSelectQuery TablesInSelectQueryElement TableJoin ArrayJoin OrderByElement
   InterpolateElement WindowDefinition WindowListElement`.split(/\s+/),
)

/** Their second argument, when it is a name, is a table. */
const SET_FUNCTIONS = /^(global)?(not)?(null)?in$/i

function refuseNode(node: AstNode): void {
  switch (node.kind) {
    case 'SelectWithUnionQuery':
      if (node.children.some((child) => child.kind === 'Set')) throw refusal('SETTINGS is not allowed')
      if (node.children.length !== 1) throw refusal('FORMAT and INTO OUTFILE are not allowed')
      return
    case 'Set':
      throw refusal('SETTINGS is not allowed')
    case 'Function':
      refuseFunction(node)
      return
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

function refuseFunction(node: AstNode): void {
  const name = node.name
  if (node.parent?.kind === 'TableExpression') {
    if (!isAllowedTableFunction(name)) throw refusal(`the table function ${name} is not allowed`)
    // A list of columns as text may hold expressions.
    const [structure] = node.children[0]?.children ?? []
    if (name === 'values' && /\b(DEFAULT|MATERIALIZED|ALIAS|EPHEMERAL|CODEC|TTL)\b/i.test(structure?.rest ?? '')) {
      throw refusal('columns of values() are a name and a type')
    }
    return
  }
  if (!isAllowedFunction(name)) throw refusal(`the function ${name} is not allowed`)
  const set = node.children[0]?.children[1]
  if (SET_FUNCTIONS.test(name) && set?.kind === 'Identifier') refuseTable(set.name)
}

/** A plain name: one of our tables or of the query's own WITH. Nothing else has such a name there. */
function refuseTable(name: string): void {
  if (!/^\w+$/.test(name)) throw refusal(`the table ${name} is not allowed: there are events, runs and tasks`)
}

function refusal(problem: string): ApiError {
  return new ApiError('VALIDATION_ERROR', `query: ${problem}`)
}
