/** Runs `task` on every item, a limited number concurrently. Rejects with the first failure. */
export async function inParallel<T>(
  items: readonly T[],
  task: (item: T) => Promise<unknown>,
  atOnce = 6,
): Promise<void> {
  const left = items.values()
  const worker = async () => {
    for (const item of left) await task(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}
