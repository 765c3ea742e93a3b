/** Adds an item to the group with this key. */
export function addTo<T>(groups: Map<string, T[]>, key: string, item: T): void {
  const group = groups.get(key)
  if (group === undefined) groups.set(key, [item])
  else group.push(item)
}

/** Splits the items into batches of at most `size`. */
export function* inBatches<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}

/** Waits for all, so that nothing of a failed call goes on after it. @throws the first error */
export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const outcomes = await Promise.allSettled(items.map(work))
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}
