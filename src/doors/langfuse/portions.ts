import type { BatchScan } from './batch-scan.ts'
import type { TraceItem } from './validate.ts'

/** What is read again for one write. */
const PORTION_BYTES_MAX = 2 * 1024 * 1024
const PORTION_MAX = 500
const STATE_BYTES = 4_096
/** What the service adds to the values of an event. */
const ADDED_BYTES = 400

/** Observations that are written at once, and what of them is read again. */
export interface Portion {
  readonly taskIds: readonly string[]
  readonly bytes: number
}

/** Parts of a trace that are written at once. */
export function* portionsOf(all: readonly string[], sizes: ReadonlyMap<string, number>): Generator<Portion> {
  let taskIds: string[] = []
  let bytes = 0
  for (const taskId of all) {
    const size = sizes.has(taskId) ? (sizes.get(taskId) ?? 0) + STATE_BYTES : 0
    if (taskIds.length > 0 && (taskIds.length >= PORTION_MAX || bytes + size > PORTION_BYTES_MAX)) {
      yield { taskIds, bytes }
      taskIds = []
      bytes = 0
    }
    taskIds.push(taskId)
    bytes += size
  }
  if (taskIds.length > 0) yield { taskIds, bytes }
}

/** About what is written for the events. */
export function writtenBytes(scan: BatchScan, items: readonly TraceItem[]): number {
  let bytes = 0
  for (const { index } of items) bytes += scan.end(scan.body(index)) - scan.start(scan.body(index)) + ADDED_BYTES
  return bytes
}
