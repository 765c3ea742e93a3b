import { assert } from '../../base/assert.ts'
import { ApiError } from '../../base/errors.ts'

/**
 * SQLSTATE classes of statements that were rolled back because of their items: invalid data, a violated constraint, a
 * conflict, a limit. Each item is then served alone, so that the others succeed. After any other error the outcome is
 * unknown.
 */
const REFUSALS = new Set(['22', '23', '40', '54'])

/**
 * Measured with 64 callers on 2 cores: one statement in flight gives the largest batches, and so the fewest commits and
 * the least work per row. A second one uses the time while the first commits.
 */
const DEFAULT_LIMITS: BatcherLimits = {
  itemsPerBatch: 256,
  bytesPerBatch: 4 << 20,
  batchesInFlight: 2,
  itemsQueued: 10_000,
  bytesQueued: 64 << 20,
}

interface BatcherOptions<Item, Result> {
  /** Serves many items with one statement. Returns results in order of the items, an `Error` for a failed item. */
  readonly run: (items: readonly Item[]) => Promise<readonly (Result | Error)[]>
  /** Items with equal keys are served in order of arrival, by separate statements. */
  readonly keyOf: (item: Item) => string
  /** Bytes an item adds to a statement. */
  readonly bytesOf: (item: Item) => number
  readonly limits?: Partial<BatcherLimits>
}

export interface BatcherLimits {
  readonly itemsPerBatch: number
  /** A larger item is served by its own statement. */
  readonly bytesPerBatch: number
  readonly batchesInFlight: number
  readonly itemsQueued: number
  readonly bytesQueued: number
}

export interface Batcher<Item, Result> {
  /**
   * @throws ApiError UNAVAILABLE when the queue is full
   * @throws whatever the statement that served the item threw
   */
  submit(item: Item): Promise<Result>
}

/**
 * Coalesces concurrent writes: items that arrive while a statement is in flight are served together by the next one, so
 * that one commit serves many callers. A single caller is not delayed.
 */
export function createBatcher<Item, Result>(options: BatcherOptions<Item, Result>): Batcher<Item, Result> {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const busyKeys = new Set<string>()
  let queue: Entry<Item, Result>[] = []
  let queuedBytes = 0
  let inFlight = 0
  let scheduled = false

  function submit(item: Item): Promise<Result> {
    const bytes = options.bytesOf(item)
    const full = queue.length >= limits.itemsQueued || (queue.length > 0 && queuedBytes + bytes > limits.bytesQueued)
    if (full) return Promise.reject(new ApiError('UNAVAILABLE', 'too many writes are waiting; try again'))
    return new Promise((resolve, reject) => {
      queue.push({ item, key: options.keyOf(item), bytes, resolve, reject })
      queuedBytes += bytes
      schedule()
    })
  }

  /** Dispatches after the requests that have already arrived are queued. */
  function schedule(): void {
    if (scheduled || inFlight >= limits.batchesInFlight || queue.length === 0) return
    scheduled = true
    setImmediate(dispatch)
  }

  function dispatch(): void {
    scheduled = false
    while (inFlight < limits.batchesInFlight) {
      const batch = take()
      if (batch.length === 0) return
      void serve(batch)
    }
  }

  async function serve(batch: readonly Entry<Item, Result>[]): Promise<void> {
    inFlight++
    await settle(batch, options.run)
    inFlight--
    for (const entry of batch) busyKeys.delete(entry.key)
    schedule()
  }

  /** Takes the longest possible batch from the front of the queue, skipping items whose key is being served. */
  function take(): Entry<Item, Result>[] {
    const batch: Entry<Item, Result>[] = []
    const left: Entry<Item, Result>[] = []
    let bytes = 0
    let next = 0
    for (; next < queue.length && batch.length < limits.itemsPerBatch; next++) {
      const entry = queue[next]
      if (busyKeys.has(entry.key)) {
        left.push(entry)
        continue
      }
      if (batch.length > 0 && bytes + entry.bytes > limits.bytesPerBatch) break
      busyKeys.add(entry.key)
      batch.push(entry)
      bytes += entry.bytes
    }
    queue = left.length === 0 ? queue.slice(next) : [...left, ...queue.slice(next)]
    queuedBytes -= bytes
    return batch
  }

  return { submit }
}

interface Entry<Item, Result> {
  readonly item: Item
  readonly key: string
  readonly bytes: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/** Runs the statement and settles each caller's promise. Never throws. */
async function settle<Item, Result>(
  batch: readonly Entry<Item, Result>[],
  run: BatcherOptions<Item, Result>['run'],
): Promise<void> {
  try {
    const results = await run(batch.map((entry) => entry.item))
    assert(results.length === batch.length, 'a statement has a result for each item')
    batch.forEach((entry, index) => {
      const result = results[index]
      if (result instanceof Error) entry.reject(result)
      else entry.resolve(result)
    })
  } catch (error) {
    if (batch.length === 1 || !isRefusal(error)) for (const entry of batch) entry.reject(error)
    else for (const entry of batch) await settle([entry], run)
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && REFUSALS.has(String(error.code).slice(0, 2))
}
