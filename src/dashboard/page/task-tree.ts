/** The members of a task that determine its position in the tree. */
export interface TaskNode {
  readonly id: string
  readonly parent_task_id: string | null
  readonly created_at: string
  readonly started_at: string | null
}

/**
 * Tasks in the order of reading, each below its parent: siblings by the time they began, or were first reported. Callers choose
 * the parents, so a parent may be missing (its tasks are at the top level) or parents may form a cycle (which is cut).
 *
 * @param tasks newest first, as the API lists them
 */
export function taskTree<T extends TaskNode>(tasks: readonly T[]): { readonly task: T; readonly depth: number }[] {
  const ordered = tasks.toReversed().toSorted((a, b) => timeOf(a).localeCompare(timeOf(b)))
  const ids = new Set(ordered.map(({ id }) => id))
  const children = Map.groupBy(ordered, ({ parent_task_id }) =>
    parent_task_id !== null && ids.has(parent_task_id) ? parent_task_id : null,
  )
  const placed = new Map<string, { readonly task: T; readonly depth: number }>()
  const place = (task: T, depth: number): void => {
    if (placed.has(task.id)) return
    placed.set(task.id, { task, depth })
    for (const child of children.get(task.id) ?? []) place(child, depth + 1)
  }
  for (const root of children.get(null) ?? []) place(root, 0)
  for (const task of ordered) place(task, 0)
  return [...placed.values()]
}

function timeOf({ started_at, created_at }: TaskNode): string {
  return started_at ?? created_at
}
