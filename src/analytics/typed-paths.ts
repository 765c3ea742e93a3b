import { type AstNode, readAst, textOf } from './ast.ts'
import { JSON_COLUMNS } from './json-paths.ts'
import { type SqlToken, selectElement, sqlTokens } from './sql-tokens.ts'
import { type Meant, TypedContexts } from './typed-contexts.ts'
import { TABLES } from './views.ts'

/** Prints the tree of a query in the engine's normal form: see {@link readAst}. */
export type PrintTree = (text: string) => Promise<string>

/**
 * Makes untyped paths into payloads work where numbers are wanted: `sum(payload.tokens.in)` adds the numbers, and any
 * other value counts as null there. What is compared with a text counts as text in the same way. A path that has a type, or
 * stands anywhere else, stays what it is.
 *
 * The engine's tree says where numbers are wanted, and tokens of the text say where a path stands; each path is given a
 * name of its own for a moment, by which the two are brought together. What comes out is compared with what went in,
 * node by node: nothing but these paths has changed, so all that the guard found out still holds.
 *
 * @param text a query in the engine's normal form that has passed the guard
 * @param nodes its tree
 * @returns the text as it was where there is nothing to do
 */
export async function withTypedPaths(text: string, nodes: readonly AstNode[], print: PrintTree): Promise<string> {
  if (givesOwnMeaning(nodes)) return text
  const aliases = pathAliases(nodes)
  const tokens = sqlTokens(text)
  const marked = tokens.map((token, i) => (isUntyped(tokens, i, aliases) ? markOf(token, i) : token.text)).join('')
  if (marked === text) return text
  const tree = readAst(await print(marked))
  if (tree === null || tree.length !== nodes.length) return text
  const wanted = new TypedContexts(tree, (node) => indexOf(node) !== undefined, NUMERIC_COLUMNS).found()
  if (wanted.size === 0) return text
  const rewritten = rewrite(tokens, tree, wanted)
  const after = readAst(await print(rewritten))
  const isSame = after !== null && matches(tree[0], after[0], wanted, tokens)
  return isSame ? rewritten : text
}

/** Numbers of any kind that JSON has, or text; null for anything else. */
function typed(value: string, meant: Meant): string {
  if (meant === 'text') return `dynamicElement(${value}, 'String')`
  const [float, int, uint] = ['Float64', 'Int64', 'UInt64'].map((type) => `dynamicElement(${value}, '${type}')`)
  return `coalesce(${float}, toFloat64(${int}), toFloat64(${uint}))`
}

const ALL_COLUMNS = Object.values(TABLES).flatMap(({ columns }) => columns)
const NUMERIC_COLUMNS = new Set(
  ALL_COLUMNS.filter(({ type }) => /^(Nullable\()?(U?Int|Float)/.test(type)).map(({ name }) => name),
)

/** Whether the query itself calls something `payload`: what a path means is then for the engine to say. */
function givesOwnMeaning(nodes: readonly AstNode[]): boolean {
  return nodes.some((node) => {
    const { kind, name, alias, children } = node
    if (JSON_COLUMNS.includes(alias)) return true
    if (kind === 'TableIdentifier' || kind === 'WithElement') return JSON_COLUMNS.includes(name)
    if (kind !== 'Function') return false
    const [first] = children[0]?.children ?? []
    if (name === 'values') return JSON_COLUMNS.some((column) => textOf(first)?.includes(column))
    const isArgument = ({ kind, name }: AstNode) => kind === 'Identifier' && JSON_COLUMNS.includes(name)
    return name === 'lambda' && (first?.children[0]?.children ?? []).some(isArgument)
  })
}

/** Names that the query gives to paths, and to nothing else: `payload.ms AS ms`. */
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
  // ClickHouse's own syntax follows, a call, or the definition of the name.
  if (name.length === 0 || /^[.:([]$/.test(tokens[index + 1]?.text ?? '') || tokens[index - 2]?.text === 'AS')
    return false
  return isPathName(name) || (name.length <= 2 && aliases.has(name.at(-1) ?? ''))
}

/** A name of the same table, if one is named, that stands nowhere else. */
function markOf({ name }: SqlToken, index: number): string {
  const table = name.length > 1 && !JSON_COLUMNS.includes(name[0]) ? `\`${name[0]}\`.` : ''
  return `${table}\`#${index}\``
}

/** The token of a marked node. */
function indexOf({ kind, name }: AstNode): number | undefined {
  const mark = kind === 'Identifier' ? /(?:^|\.)#(\d+)$/.exec(name)?.[1] : undefined
  return mark === undefined ? undefined : Number(mark)
}

function rewrite(tokens: readonly SqlToken[], tree: readonly AstNode[], wanted: ReadonlyMap<AstNode, Meant>): string {
  const texts = tokens.map(({ text }) => text)
  const original = [...texts]
  for (const [node, meant] of wanted) {
    const index = indexOf(node) ?? 0
    texts[index] = typed(texts[index], meant)
  }
  for (const [element, node] of unnamedElements(tree, wanted)) {
    const place = selectElement(tokens, indexOf(node) ?? 0)
    if (place === undefined) continue
    const [from, to] = place
    const name = nameOf(element, tokens) ?? original.slice(from, to).join('').trim().replaceAll('`', '')
    if (!/[\\`\p{Cc}]/u.test(name)) texts[to - 1] += ` AS \`${name}\``
  }
  return texts.join('')
}

/** What the engine calls a column that the query gives no name; undefined for what it calls as it is written. */
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
      // Parameters, as in quantile(0.5)(x), come second in the tree.
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

/** Elements of SELECTs that have no name of their own, each with one of the paths in it: they keep the names that they had. */
function unnamedElements(
  tree: readonly AstNode[],
  wanted: ReadonlyMap<AstNode, Meant>,
): [element: AstNode, path: AstNode][] {
  const elements = tree.filter(({ parent, alias }) => isSelectList(parent) && alias === '')
  return elements.flatMap((element): [AstNode, AstNode][] => {
    const path = [...wanted.keys()].find((node) => isWithin(node, element))
    return path === undefined ? [] : [[element, path]]
  })
}

/** What a SELECT gives stands before the tables that it takes it from, behind a WITH. */
function isSelectList(node: AstNode | undefined): boolean {
  const select = node?.parent
  if (node === undefined || select?.kind !== 'SelectQuery') return false
  const tables = select.children.findIndex(({ kind }) => kind === 'TablesInSelectQuery')
  return select.children[tables < 0 ? 0 : tables - 1] === node
}

/** A scalar subquery has no name that depends on what is in it. */
function isWithin(node: AstNode, element: AstNode): boolean {
  for (let each: AstNode | undefined = node; each !== undefined && each.kind !== 'Subquery'; each = each.parent)
    if (each === element) return true
  return false
}

/** Whether the second tree is the first but for what {@link rewrite} does. */
function matches(
  before: AstNode | undefined,
  after: AstNode | undefined,
  wanted: ReadonlyMap<AstNode, Meant>,
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

/** Whether that is what {@link typed} makes of a value. */
function isTyped(node: AstNode, name: string): boolean {
  const names = (each: AstNode): string[] => [
    ...(each.kind === 'Identifier' ? [each.name] : []),
    ...each.children.flatMap(names),
  ]
  return /^(coalesce|dynamicElement)$/.test(node.name) && names(node).every((each) => each === name)
}
