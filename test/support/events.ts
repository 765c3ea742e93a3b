import { EventScan } from '../../src/activity/events/scan.ts'
import type { RunRef } from '../../src/base/ids.ts'
import { parseConfig } from '../../src/service/config/config.ts'
import type { EventBatch } from '../../src/stores/journal/rows.ts'

/** The default limits, for code that is tested below the HTTP layer. */
export const { limits: LIMITS } = parseConfig({}, '/')

export function runRef(): RunRef {
  return {
    runId: Bun.randomUUIDv7(),
    workspaceId: Bun.randomUUIDv7(),
    agentId: Bun.randomUUIDv7(),
    runtimeType: 'external',
  }
}

/** A batch as the events route creates it: the events have really been scanned. */
export function batchOf(run: RunRef, events: readonly object[]): EventBatch {
  const scan = new EventScan()
  scan.scan(new TextEncoder().encode(JSON.stringify({ run_id: run.runId, events })), LIMITS, false)
  return { run, scan, rows: undefined, ids: undefined }
}
