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
export function treeOrder<T extends TreeNode>(nodes: readonly T[]): { readonly node: T; readonly depth: number }[] {
  const ordered = nodes.toSorted((a, b) => a.startMs - b.startMs)
  const ids = new Set(ordered.map(({ id }) => id))
  const children = Map.groupBy(ordered, ({ parentId }) => (parentId !== null && ids.has(parentId) ? parentId : null))
  const placed = new Map<string, { readonly node: T; readonly depth: number }>()
  const place = (root: T) => {
    const stack = [{ node: root, depth: 0 }]
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      if (placed.has(next.node.id)) continue
      placed.set(next.node.id, next)
      const below = children.get(next.node.id) ?? []
      for (const node of below.toReversed()) stack.push({ node, depth: next.depth + 1 })
    }
  }
  for (const root of children.get(null) ?? []) place(root)
  for (const node of ordered) place(node)
  return [...placed.values()]
}
