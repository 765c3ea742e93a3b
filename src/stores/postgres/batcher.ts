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
  /** The workspace of an item, and of every other item with its key: workspaces take turns. Undefined: there are none. */
  readonly ownerOf?: (item: Item) => string
  /** Bytes an item adds to a statement. */
  readonly bytesOf: (item: Item) => number
  readonly limits?: Partial<BatcherLimits>
}

export interface BatcherLimits {
  readonly itemsPerBatch: number
  /** A larger item is served by its own statement. */
  readonly bytesPerBatch: number
  readonly batchesInFlight: number
  /** Of one owner, like `bytesQueued`. All together have {@link OWNERS_FULL} times as much. */
  readonly itemsQueued: number
  readonly bytesQueued: number
}

/** While so many owners fill their queues, those of all others are full, too. */
const OWNERS_FULL = 2

export interface Batcher<Item, Result> {
  /**
   * @throws ApiError UNAVAILABLE when the queue is full
   * @throws whatever the statement that served the item threw
   */
  submit(item: Item): Promise<Result>
}

/**
 * Coalesces concurrent writes: items that arrive while a statement is in flight are served together by the next one, so
 * that one commit serves many callers. A single caller is not delayed. A statement takes one item of each owner in turn:
 * however much one queues, the others get their turns.
 */
export function createBatcher<Item, Result>(options: BatcherOptions<Item, Result>): Batcher<Item, Result> {
  const { ownerOf = () => '' } = options
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const busyKeys = new Set<string>()
  /** What waits, by owner; the owner that was served last is the last one. */
  const lines = new Map<string, Line<Item, Result>>()
  let queued = 0
  let queuedBytes = 0
  let inFlight = 0
  let scheduled = false

  function submit(item: Item): Promise<Result> {
    const bytes = options.bytesOf(item)
    const owner = ownerOf(item)
    const line = lines.get(owner) ?? new Line()
    const isFull =
      !hasRoom(line.length, line.bytes, bytes, limits, 1) || !hasRoom(queued, queuedBytes, bytes, limits, OWNERS_FULL)
    if (isFull) return Promise.reject(new ApiError('UNAVAILABLE', 'too many writes are waiting; try again'))
    return new Promise((resolve, reject) => {
      lines.set(owner, line)
      line.add({ item, key: options.keyOf(item), bytes, resolve, reject })
      queued++
      queuedBytes += bytes
      schedule()
    })
  }

  /** Dispatches after the requests that have already arrived are queued. */
  function schedule(): void {
    if (scheduled || inFlight >= limits.batchesInFlight || queued === 0) return
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

  /** Takes items from the front of each line in turn until the batch is full, skipping those whose key is being served. */
  function take(): Entry<Item, Result>[] {
    const batch: Entry<Item, Result>[] = []
    const all = [...lines]
    let bytes = 0
    for (let turns = all; turns.length > 0 && batch.length < limits.itemsPerBatch; ) {
      const served: typeof turns = []
      for (const [owner, line] of turns) {
        const entry = batch.length < limits.itemsPerBatch ? line.first(busyKeys) : undefined
        if (entry === undefined) continue
        // It does not fit, so this owner is the first one of the next batch.
        if (batch.length > 0 && bytes + entry.bytes > limits.bytesPerBatch) continue
        line.take(entry)
        busyKeys.add(entry.key)
        batch.push(entry)
        bytes += entry.bytes
        lines.delete(owner)
        lines.set(owner, line)
        served.push([owner, line])
      }
      turns = served
    }
    for (const [owner, line] of all) if (line.endTurn() === 0) lines.delete(owner)
    queued -= batch.length
    queuedBytes -= bytes
    return batch
  }

  return { submit }
}

/** Whether a queue takes another item; an item of any size, if it is empty. */
function hasRoom(items: number, bytes: number, more: number, limits: BatcherLimits, factor: number): boolean {
  return items < factor * limits.itemsQueued && (items === 0 || bytes + more <= factor * limits.bytesQueued)
}

/** The items of one owner that wait, in order of arrival. */
class Line<Item, Result> {
  bytes = 0
  private entries: Entry<Item, Result>[] = []
  /** Those that were skipped for this batch. */
  private skipped: Entry<Item, Result>[] = []
  private next = 0

  get length(): number {
    return this.entries.length
  }

  add(entry: Entry<Item, Result>): void {
    this.entries.push(entry)
    this.bytes += entry.bytes
  }

  /** The first one whose key is not being served. */
  first(busyKeys: ReadonlySet<string>): Entry<Item, Result> | undefined {
    for (; this.next < this.entries.length; this.next++) {
      const entry = this.entries[this.next]!
      if (!busyKeys.has(entry.key)) return entry
      this.skipped.push(entry)
    }
    return undefined
  }

  /** @param entry as {@link first} has returned it */
  take(entry: Entry<Item, Result>): void {
    this.next++
    this.bytes -= entry.bytes
  }

  /** Removes what was taken. @returns how many are left */
  endTurn(): number {
    if (this.next > 0) this.entries = [...this.skipped, ...this.entries.slice(this.next)]
    this.skipped = []
    this.next = 0
    return this.entries.length
  }
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
