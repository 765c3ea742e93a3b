import { type RunIdentity, runKey } from '../base/ids.ts'
import { visitPayloads } from '../clickhouse/native-reader.ts'
import type { Frame } from '../journal/journal.ts'
import { MODEL_CALL, mayReportUsage, type UsageReader, type UsageWithCost } from './usage-reader.ts'

/** What the events of a run add to its row. */
export interface Tally extends RunIdentity, UsageWithCost {
  readonly events: number
  /** When the last one was received, Unix milliseconds. */
  readonly lastAt: number
}

const MODEL_CALL_BYTES = new TextEncoder().encode(MODEL_CALL)

/** Sums up the events of a range of the journal for each run. */
export class Tallies {
  private readonly byRun = new Map<string, { -readonly [field in keyof Tally]: Tally[field] }>()

  constructor(private readonly reader: UsageReader) {}

  /** Number of runs. */
  get size(): number {
    return this.byRun.size
  }

  all(): readonly Tally[] {
    return [...this.byRun.values()]
  }

  add({ kind, runs, block, receivedAt }: Frame): void {
    if (kind !== 'event') return
    const tallies = runs.map(({ runId, workspaceId, rows }) => {
      const tally = this.of({ runId, workspaceId })
      tally.events += rows
      tally.lastAt = Math.max(tally.lastAt, receivedAt)
      return tally
    })
    let run = 0
    let runEnd = runs.length === 0 ? 0 : runs[0].rows
    const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength)
    if (!mayReportUsage(bytes)) return
    visitPayloads(bytes, MODEL_CALL_BYTES, (row, start) => {
      while (row >= runEnd) runEnd += runs[++run].rows
      const usage = this.reader.read(bytes, start)
      if (usage === null) return
      const tally = tallies[run]
      tally.inputTokens += usage.inputTokens
      tally.outputTokens += usage.outputTokens
      tally.costUsd += usage.costUsd
    })
  }

  private of({ runId, workspaceId }: RunIdentity) {
    const key = runKey(workspaceId, runId)
    let tally = this.byRun.get(key)
    if (tally === undefined) {
      tally = { workspaceId, runId, events: 0, lastAt: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 }
      this.byRun.set(key, tally)
    }
    return tally
  }
}
