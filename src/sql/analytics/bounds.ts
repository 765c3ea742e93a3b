import { type AstNode, literalText } from './ast.ts'

/**
 * Functions whose run time grows with the product of their argument sizes. The engine checks its time limit only between
 * blocks of rows, so one such call on long arrays can take hours that only a restart of the engine ends. They are allowed
 * if one argument is known to be short. For queries that exceed their limit anyway, see `stores/clickhouse/engine/statements.ts`.
 */

const ELEMENTS_MAX = 1_000

/** Array columns that are known to be short. */
const SHORT_COLUMNS = new Set(['tags'])

/**
 * @param aliases all aliases in the query
 * @returns what is wrong with a call whose run time may be unbounded; undefined if it is bounded
 */
export function unboundedCall(node: AstNode, aliases: ReadonlySet<string>): string | undefined {
  const [args, parameters] = node.children.map(({ children }) => children)
  if (/^(hasAll|hasAny)$/.test(node.name)) {
    if (args?.some((each) => isShort(each, aliases))) return undefined
    return `${node.name} compares every pair of elements: write one of its arrays as a literal with at most ${ELEMENTS_MAX} elements`
  }
  if (/^kolmogorovSmirnovTest/i.test(node.name)) {
    const method = parameters?.[1]
    if (method === undefined || /^(auto|asymp|asymptotic)$/.test(literalText(method) ?? '')) return undefined
    return `${node.name} is allowed with the computation methods 'auto' and 'asymp' only`
  }
  if (/^JSON_(VALUE|QUERY|EXISTS)$/.test(node.name)) {
    const path = literalText(args?.[1])
    if (path !== undefined && !/\[[^\]]*[^\]\d\s]|\.\s*\*/.test(path)) return undefined
    return `the path of ${node.name} must be a string literal without * and ranges; for whole arrays use JSONExtract(…, 'Array(…)')`
  }
  return undefined
}

function isShort(node: AstNode, aliases: ReadonlySet<string>): boolean {
  const { kind, name, rest, children } = node
  // Placeholders were replaced by numbers.
  if (kind === 'Literal') return rest.split(', ').length <= ELEMENTS_MAX
  if (kind === 'Identifier') {
    const column = name.split('.').at(-1) ?? ''
    return SHORT_COLUMNS.has(column) && !aliases.has(column)
  }
  if (kind !== 'Function') return false
  const args = children[0]?.children ?? []
  if (name === 'array') return args.length <= ELEMENTS_MAX
  return /^_?cast$/i.test(name) && args[0] !== undefined && isShort(args[0], aliases)
}
