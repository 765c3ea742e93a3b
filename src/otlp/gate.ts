/** Runs work once there is room for it. */
export type Gate = <T>(bytes: number, work: () => Promise<T>) => Promise<T>

/**
 * Bounds the writes in flight by number and bytes, so that a large export waits for the queue of the database instead of
 * being refused by it. Work larger than `bytesMax` runs alone.
 */
export function createGate({ itemsMax, bytesMax }: { itemsMax: number; bytesMax: number }): Gate {
  let items = 0
  let inFlight = 0
  let waiting: (() => void)[] = []
  const isFull = (bytes: number) => items > 0 && (items >= itemsMax || inFlight + bytes > bytesMax)

  return async (bytes, work) => {
    while (isFull(bytes)) await new Promise<void>((resolve) => waiting.push(resolve))
    items++
    inFlight += bytes
    try {
      return await work()
    } finally {
      items--
      inFlight -= bytes
      const woken = waiting
      waiting = []
      for (const wake of woken) wake()
    }
  }
}
