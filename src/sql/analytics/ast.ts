/** A node of the tree printed by ClickHouse's `EXPLAIN AST`. */
export interface AstNode {
  readonly kind: string
  /** The name of a function, table or column; empty for most kinds. */
  readonly name: string
  /** Its alias in the query; empty for none. */
  readonly alias: string
  /** The text after the kind, as printed. */
  readonly rest: string
  readonly children: readonly AstNode[]
  readonly parent: AstNode | undefined
}

const ALIAS = '(alias '
const SET_FUNCTIONS = /^(global)?(not)?(null)?in$/i

/**
 * Parses the tree: one node per line, children indented by one more space, escaped as tab-separated text.
 * @returns all nodes, parents first; null if a line is not a node
 */
export function readAst(printed: string): AstNode[] | null {
  const nodes: AstNode[] = []
  const path: (AstNode & { children: AstNode[] })[] = []
  for (const line of printed.split('\n')) {
    const match = /^( *)([\w:]+)(?: (.*))?$/.exec(line.replace(/\\([\\'])/g, '$1'))
    if (match === null) {
      if (line === '') continue
      return null
    }
    const depth = match[1].length
    const parent = path[depth - 1]
    const node = { kind: match[2], ...namesOf(match[3] ?? ''), children: [] as AstNode[], parent }
    parent?.children.push(node)
    path.length = depth
    path.push(node)
    nodes.push(node)
  }
  return nodes
}

/**
 * The value of a string literal without an alias, with control characters still escaped; undefined for anything else,
 * even for expressions that evaluate to a string.
 */
export function literalText(node: AstNode | undefined): string | undefined {
  const text = node?.kind === 'Literal' ? /^'((?:[^'\\]|\\.)*)'$/.exec(node.rest)?.[1] : undefined
  return text?.replace(/\\(['"\\])/g, '$1')
}

/** The right side of `x IN t` if it is a name, which is then the name of a table. */
export function setTableOf({ kind, name, children }: AstNode): AstNode | undefined {
  const second = kind === 'Function' && SET_FUNCTIONS.test(name) ? children[0]?.children[1] : undefined
  return second?.kind === 'Identifier' ? second : undefined
}

/** Parses lines such as `Function sum (alias x) (children 1)`. */
function namesOf(rest: string): { rest: string; name: string; alias: string } {
  const withoutCount = rest.replace(/ ?\(children \d+\)$/, '')
  // No regular expression: a literal may contain thousands of these brackets.
  const at = withoutCount.endsWith(')') ? withoutCount.indexOf(ALIAS) : -1
  if (at < 0) return { rest, name: withoutCount, alias: '' }
  const name = withoutCount.slice(0, at).replace(/ $/, '')
  return { rest, name, alias: withoutCount.slice(at + ALIAS.length, -1) }
}
