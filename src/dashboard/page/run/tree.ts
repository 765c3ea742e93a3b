/** A node of a tree, which names its parent. */
interface TreeNode {
  readonly id: string
  readonly parentId: string | null
  readonly startMs: number
}

/**
 * Nodes in the order of reading, each below its parent, siblings by their start. Callers choose the parents, so a parent may
 * be missing (its nodes are at the top level), and parents may form a cycle (which is cut).
 */
export function treeOrder<T extends TreeNode>(nodes: readonly T[]): (T & { readonly depth: number })[] {
  const ordered = nodes.toSorted((a, b) => a.startMs - b.startMs)
  const ids = new Set(ordered.map(({ id }) => id))
  const children = Map.groupBy(ordered, ({ parentId }) => (parentId !== null && ids.has(parentId) ? parentId : null))
  const placed = new Map<string, T & { readonly depth: number }>()
  const place = (root: T) => {
    const stack = [{ ...root, depth: 0 }]
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      if (placed.has(next.id)) continue
      placed.set(next.id, next)
      for (const node of (children.get(next.id) ?? []).toReversed()) stack.push({ ...node, depth: next.depth + 1 })
    }
  }
  for (const root of children.get(null) ?? []) place(root)
  for (const node of ordered) place(node)
  return [...placed.values()]
}

/** A row of a tree in the order of reading. */
interface TreeRow {
  readonly id: string
  readonly depth: number
}

/** The rows that remain when some are folded: all but those below them. `isParent`: the row has others below it. */
export function unfolded<T extends TreeRow>(
  rows: readonly T[],
  folded: ReadonlySet<string>,
): (T & { readonly isParent: boolean })[] {
  let hiddenBelow = Number.POSITIVE_INFINITY
  return rows.flatMap((row, index) => {
    if (row.depth > hiddenBelow) return []
    hiddenBelow = folded.has(row.id) ? row.depth : Number.POSITIVE_INFINITY
    return [{ ...row, isParent: (rows[index + 1]?.depth ?? 0) > row.depth }]
  })
}

/** What a row says about itself and all rows below it. */
export interface Below {
  /** Tokens of model calls, its own included. */
  readonly tokens: number
  /** Whether something below it has failed. */
  readonly hasFailed: boolean
}

type Counted = TreeRow & {
  readonly status: string
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number }
}

/** Adds the sums over the rows below to each row. @param rows in the order of reading */
export function withBelow<T extends Counted>(rows: readonly T[]): (T & Below)[] {
  const sums: { tokens: number; hasFailed: boolean }[] = []
  const next: (T & Below)[] = new Array(rows.length)
  for (let index = rows.length - 1; index >= 0; index--) {
    const row = rows[index] as T
    const below = sums[row.depth + 1] ?? { tokens: 0, hasFailed: false }
    sums.length = row.depth + 1
    const tokens = (row.usage?.inputTokens ?? 0) + (row.usage?.outputTokens ?? 0) + below.tokens
    next[index] = { ...row, tokens, hasFailed: below.hasFailed }
    const before = sums[row.depth] ?? { tokens: 0, hasFailed: false }
    const hasFailed = before.hasFailed || below.hasFailed || isFailed(row)
    sums[row.depth] = { tokens: before.tokens + tokens, hasFailed }
  }
  return next
}

export function isFailed({ status }: { readonly status: string }): boolean {
  return status === 'failed' || status === 'timed_out'
}

/** The rows above one in the tree, from the root on. */
export function ancestorsOf<T extends TreeRow>(rows: readonly T[], id: string): T[] {
  const found: T[] = []
  const index = rows.findIndex((row) => row.id === id)
  for (let at = index, depth = rows[index]?.depth ?? 0; at >= 0 && depth > 0; at--) {
    const row = rows[at] as T
    if (row.depth >= depth) continue
    found.unshift(row)
    depth = row.depth
  }
  return found
}

/** The rows that match, and those above them. */
export function matching<T extends TreeRow>(rows: readonly T[], matches: (row: T) => boolean): T[] {
  const path: T[] = []
  const kept = new Set<T>()
  for (const row of rows) {
    path.length = row.depth
    path[row.depth] = row
    if (matches(row)) for (const each of path) kept.add(each)
  }
  return rows.filter((row) => kept.has(row))
}
