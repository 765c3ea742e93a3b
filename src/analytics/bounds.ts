import { type AstNode, textOf } from './ast.ts'

/**
 * Functions whose time grows with the product of the sizes of their arguments. The engine looks for its time limit between
 * blocks of rows only, so one call of them on long arrays takes it hours that nothing but its end can stop. They are
 * allowed where one side is known to be short. What takes too long all the same ends with the engine's restart: see
 * `columnar/engine/statements.ts`.
 */

const ELEMENTS_MAX = 1_000

/** Columns of ours that are arrays, and short. */
const SHORT_COLUMNS = new Set(['tags'])

/**
 * What is wrong with a call, if it may have no bound.
 * @param aliases all names that the query gives to something
 */
export function unboundedCall(node: AstNode, aliases: ReadonlySet<string>): string | undefined {
  const [args, parameters] = node.children.map(({ children }) => children)
  if (/^(hasAll|hasAny)$/.test(node.name)) {
    if (args?.some((each) => isShort(each, aliases))) return undefined
    return `${node.name} compares each element with each: write one of its arrays out, with at most ${ELEMENTS_MAX} elements`
  }
  if (/^kolmogorovSmirnovTest/i.test(node.name)) {
    const method = parameters?.[1]
    if (method === undefined || /^(auto|asymp|asymptotic)$/.test(textOf(method) ?? '')) return undefined
    return `${node.name} is allowed with the computation methods 'auto' and 'asymp' only`
  }
  if (/^JSON_(VALUE|QUERY|EXISTS)$/.test(node.name)) {
    const path = textOf(args?.[1])
    if (path !== undefined && !/\[[^\]]*[^\]\d\s]|\.\s*\*/.test(path)) return undefined
    return `the path of ${node.name} is a text without * and ranges: for whole arrays there is JSONExtract(…, 'Array(…)')`
  }
  return undefined
}

function isShort(node: AstNode, aliases: ReadonlySet<string>): boolean {
  const { kind, name, rest, children } = node
  // A placeholder stands as a number here.
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
