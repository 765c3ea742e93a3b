import { type AstNode, literalText, readAst } from './ast.ts'
import { JSON_COLUMNS } from './json-paths.ts'
import { type SqlToken, sqlTokens } from './sql-tokens.ts'
import { TABLES } from './tables.ts'
import { type ExpectedType, TypedContexts } from './typed-contexts.ts'

/** Prints the tree of a query in the engine's normal form: see {@link readAst}. */
type PrintTree = (text: string) => Promise<string>

/** A query whose paths have types where the query expects them. */
interface TypedQuery {
  readonly text: string
  /** The paths, as `payload.tokens.in`, that it uses only as `Float64`, or to ask whether they are null. */
  readonly numberPaths: readonly string[]
}

const NO_NUMBERS = new Map<AstNode, ExpectedType>()

const ALL_COLUMNS = [...TABLES.values()].flatMap(({ columns }) => columns)
const NUMERIC_COLUMNS = new Set(
  ALL_COLUMNS.filter(({ type }) => /^(Nullable\()?(U?Int|Float)/.test(type)).map(({ name }) => name),
)

/**
 * Makes untyped paths into payloads work where numbers are expected: `sum(payload.tokens.in)` adds the numbers and treats
 * any other value as null. Likewise, paths compared with a string literal are read as text. Paths with a type, and paths
 * elsewhere, are unchanged.
 *
 * The engine's tree shows where numbers are expected, and the tokens of the text show where the paths are. To connect the
 * two, each path temporarily gets a unique name. Finally the trees before and after are compared node by node: only
 * these paths have changed, so everything that the guard checked still holds.
 *
 * @param text a query in the engine's normal form that has passed the guard
 * @param nodes its tree
 * @returns the text, unchanged if there is nothing to do
 */
export async function withTypedPaths(text: string, nodes: readonly AstNode[], print: PrintTree): Promise<TypedQuery> {
  if (redefinesJsonColumn(nodes)) return { text, numberPaths: [] }
  const aliases = pathAliases(nodes)
  const tokens = sqlTokens(text)
  const marked = tokens.map((token, i) => (isUntyped(tokens, i, aliases) ? markOf(token, i) : token.text)).join('')
  const unchanged = { text, numberPaths: numberPathsOf(text, nodes, tokens, NO_NUMBERS) }
  if (marked === text) return unchanged
  const tree = readAst(await print(marked))
  if (tree === null || tree.length !== nodes.length) return unchanged
  const wanted = new TypedContexts(tree, (node) => indexOf(node) !== undefined, NUMERIC_COLUMNS).found()
  if (wanted.size === 0) return unchanged
  const rewritten = rewrite(tokens, tree, wanted)
  const after = readAst(await print(rewritten))
  const isSame = after !== null && matches(tree[0], after[0], wanted, tokens)
  return isSame ? { text: rewritten, numberPaths: numberPathsOf(text, tree, tokens, wanted) } : unchanged
}

/** See {@link TypedQuery}. */
function numberPathsOf(
  text: string,
  tree: readonly AstNode[],
  tokens: readonly SqlToken[],
  wanted: ReadonlyMap<AstNode, ExpectedType>,
): readonly string[] {
  // The tree does not show everything that a window uses.
  if (/\b(OVER|WINDOW)\b/.test(text)) return []
  const areNumbers = new Map<string, boolean>()
  for (const node of tree) {
    if (node.kind !== 'Identifier') continue
    const index = indexOf(node)
    const parts = index === undefined ? node.name.split('.') : tokens[index].name
    if (!isPathName(parts)) continue
    const path = parts.slice(JSON_COLUMNS.includes(parts[0]) ? 0 : 1).join('.')
    const isNumber = wanted.get(node) === 'number' || isReadAsNumber(node)
    areNumbers.set(path, isNumber && areNumbers.get(path) !== false)
  }
  return [...areNumbers].flatMap(([path, isNumber]) => (isNumber ? [path] : []))
}

/** Whether a path is only converted to `Float64` or compared with null, so that a number's type does not matter. */
function isReadAsNumber(node: AstNode): boolean {
  const call = node.parent?.parent
  if (node.alias !== '' || call?.kind !== 'Function') return false
  if (/^is(Not)?Null$/.test(call.name)) return true
  const [value, type] = node.parent?.children ?? []
  return call.name === 'CAST' && value === node && /^(Float64|Nullable\(Float64\))$/.test(literalText(type) ?? '')
}

/** Reads a value as a number of any JSON kind, or as text; null for anything else. */
function typed(value: string, expected: ExpectedType): string {
  if (expected === 'text') return `dynamicElement(${value}, 'String')`
  const [float, int, uint] = ['Float64', 'Int64', 'UInt64'].map((type) => `dynamicElement(${value}, '${type}')`)
  return `coalesce(${float}, toFloat64(${int}), toFloat64(${uint}))`
}

/** Whether the query itself defines a name such as `payload`, so that only the engine can resolve paths. */
function redefinesJsonColumn(nodes: readonly AstNode[]): boolean {
  return nodes.some((node) => {
    const { kind, name, alias, children } = node
    if (JSON_COLUMNS.includes(alias)) return true
    if (kind === 'TableIdentifier' || kind === 'WithElement') return JSON_COLUMNS.includes(name)
    if (kind !== 'Function') return false
    const [first] = children[0]?.children ?? []
    if (name === 'values') return JSON_COLUMNS.some((column) => literalText(first)?.includes(column))
    const isArgument = ({ kind, name }: AstNode) => kind === 'Identifier' && JSON_COLUMNS.includes(name)
    return name === 'lambda' && (first?.children[0]?.children ?? []).some(isArgument)
  })
}

/** Aliases that stand for paths only: `payload.ms AS ms`. */
function pathAliases(nodes: readonly AstNode[]): ReadonlySet<string> {
  const others = new Set(ALL_COLUMNS.map(({ name }) => name))
  for (const node of nodes) {
    const isPath =
      node.kind === 'Identifier' && isPathName(node.name.split('.')) && node.parent?.parent?.kind !== 'ArrayJoin'
    if (node.alias !== '' && !isPath) others.add(node.alias)
    if (node.kind === 'TableIdentifier' || node.kind === 'WithElement') others.add(node.name)
    if (node.kind === 'Function' && node.name === 'lambda')
      for (const { name } of node.children[0]?.children[0]?.children[0]?.children ?? []) others.add(name)
  }
  return new Set(nodes.map(({ alias }) => alias).filter((alias) => /^[A-Za-z_]\w*$/.test(alias) && !others.has(alias)))
}

function isPathName(parts: readonly string[]): boolean {
  return (JSON_COLUMNS.includes(parts[0]) && parts.length > 1) || (JSON_COLUMNS.includes(parts[1]) && parts.length > 2)
}

function isUntyped(tokens: readonly SqlToken[], index: number, aliases: ReadonlySet<string>): boolean {
  const { name } = tokens[index]
  // Excludes ClickHouse's own path syntax, calls, and definitions of aliases.
  if (name.length === 0 || /^[.:([]$/.test(tokens[index + 1]?.text ?? '') || tokens[index - 2]?.text === 'AS')
    return false
  return isPathName(name) || (name.length <= 2 && aliases.has(name.at(-1) ?? ''))
}

/** A unique column name, qualified with the same table as the path. */
function markOf({ name }: SqlToken, index: number): string {
  const table = name.length > 1 && !JSON_COLUMNS.includes(name[0]) ? `\`${name[0]}\`.` : ''
  return `${table}\`#${index}\``
}

/** The token index of a marked node. */
function indexOf({ kind, name }: AstNode): number | undefined {
  const mark = kind === 'Identifier' ? /(?:^|\.)#(\d+)$/.exec(name)?.[1] : undefined
  return mark === undefined ? undefined : Number(mark)
}

function rewrite(
  tokens: readonly SqlToken[],
  tree: readonly AstNode[],
  wanted: ReadonlyMap<AstNode, ExpectedType>,
): string {
  const texts = tokens.map(({ text }) => text)
  const original = [...texts]
  for (const [node, expected] of wanted) {
    const index = indexOf(node) ?? 0
    texts[index] = typed(texts[index], expected)
  }
  for (const [element, node] of unnamedElements(tree, wanted)) {
    const place = tokens[indexOf(node) ?? 0].element
    if (place === undefined) continue
    const { from, to } = place
    const name = nameOf(element, tokens) ?? original.slice(from, to).join('').trim().replaceAll('`', '')
    if (!/[\\`\p{Cc}]/u.test(name)) texts[to - 1] += ` AS \`${name}\``
  }
  return texts.join('')
}

/** The name that the engine gives to an unnamed column; undefined if it uses the text as written. */
function nameOf(node: AstNode, tokens: readonly SqlToken[]): string | undefined {
  if (node.alias !== '') return node.alias
  switch (node.kind) {
    case 'Identifier': {
      const index = indexOf(node)
      return index === undefined ? node.name : tokens[index].name.join('.')
    }
    case 'Literal':
      return /^(?:U?Int\d+|Float64)_(-?[\d.e+-]+)$/.exec(node.rest)?.[1] ?? /^('[^'\\]*'|NULL)$/.exec(node.rest)?.[1]
    case 'Function': {
      if (node.name === 'lambda' || node.children.some(({ kind }) => kind !== 'ExpressionList')) return undefined
      const lists = node.children.map(({ children }) => children.map((each) => nameOf(each, tokens)))
      if (lists.flat().includes(undefined)) return undefined
      // The tree lists parameters, as in quantile(0.5)(x), after the arguments.
      return (
        node.name +
        lists
          .reverse()
          .map((names) => `(${names.join(', ')})`)
          .join('')
      )
    }
    default:
      return undefined
  }
}

/** Unnamed elements of SELECT lists, each with one of the paths in it. They must keep their column names. */
function unnamedElements(
  tree: readonly AstNode[],
  wanted: ReadonlyMap<AstNode, ExpectedType>,
): [element: AstNode, path: AstNode][] {
  const elements = new Set(tree.filter(({ parent, alias }) => isSelectList(parent) && alias === ''))
  const found = new Map<AstNode, AstNode>()
  for (const path of wanted.keys())
    for (const element of around(path)) if (elements.has(element) && !found.has(element)) found.set(element, path)
  return [...found]
}

/** In the tree, the list of a SELECT follows its WITH and precedes its tables. */
function isSelectList(node: AstNode | undefined): boolean {
  const select = node?.parent
  if (node === undefined || select?.kind !== 'SelectQuery') return false
  const tables = select.children.findIndex(({ kind }) => kind === 'TablesInSelectQuery')
  return select.children[tables < 0 ? 0 : tables - 1] === node
}

/** A node and its parents, up to a scalar subquery: its name does not depend on its contents. */
function* around(node: AstNode): Generator<AstNode> {
  for (let each: AstNode | undefined = node; each !== undefined && each.kind !== 'Subquery'; each = each.parent)
    yield each
}

/** Whether the second tree differs from the first only by the effects of {@link rewrite}. */
function matches(
  before: AstNode | undefined,
  after: AstNode | undefined,
  wanted: ReadonlyMap<AstNode, ExpectedType>,
  tokens: readonly SqlToken[],
): boolean {
  if (before === undefined || after === undefined) return before === after
  const index = indexOf(before)
  const name = index === undefined ? before.name : tokens[index].name.join('.')
  if (wanted.has(before)) return isTyped(after, name)
  if (after.kind !== before.kind || after.name !== name || after.children.length !== before.children.length)
    return false
  if (after.alias !== before.alias && (before.alias !== '' || !isSelectList(before.parent))) return false
  return before.children.every((child, i) => matches(child, after.children[i], wanted, tokens))
}

/** Whether a node has the form that {@link typed} produces. */
function isTyped(node: AstNode, name: string): boolean {
  const names = (each: AstNode): string[] => [
    ...(each.kind === 'Identifier' ? [each.name] : []),
    ...each.children.flatMap(names),
  ]
  return /^(coalesce|dynamicElement)$/.test(node.name) && names(node).every((each) => each === name)
}
