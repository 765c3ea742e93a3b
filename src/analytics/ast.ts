/** A node of the tree that ClickHouse prints for `EXPLAIN AST`. */
export interface AstNode {
  readonly kind: string
  /** What it is called: a function, a table, a column; empty for most kinds. */
  readonly name: string
  /** The name that the query gives it; empty for none. */
  readonly alias: string
  /** What follows the kind, as it was printed. */
  readonly rest: string
  readonly children: readonly AstNode[]
  readonly parent: AstNode | undefined
}

/**
 * Reads the tree: a node a line, children one space further in, as tab-separated text.
 * @returns all nodes, parents first; null for lines that are no nodes
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
 * The text of a literal without an alias, control characters still escaped; undefined for anything else, even if it
 * would become text.
 */
export function textOf(node: AstNode | undefined): string | undefined {
  const text = node?.kind === 'Literal' ? /^'((?:[^'\\]|\\.)*)'$/.exec(node.rest)?.[1] : undefined
  return text?.replace(/\\(['"\\])/g, '$1')
}

/** What `x IN t` looks into, when that is a name: the name of a table, then. */
export function setTableOf({ kind, name, children }: AstNode): AstNode | undefined {
  const second = kind === 'Function' && SET_FUNCTIONS.test(name) ? children[0]?.children[1] : undefined
  return second?.kind === 'Identifier' ? second : undefined
}

const SET_FUNCTIONS = /^(global)?(not)?(null)?in$/i

/** `Function sum (alias x) (children 1)`: what follows the name begins with a bracket. */
function namesOf(rest: string): { rest: string; name: string; alias: string } {
  const withoutCount = rest.replace(/ ?\(children \d+\)$/, '')
  const match = /^(.*?) ?\(alias (.*)\)$/.exec(withoutCount)
  return match === null ? { rest, name: withoutCount, alias: '' } : { rest, name: match[1], alias: match[2] }
}
