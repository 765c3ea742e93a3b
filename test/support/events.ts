import type { RunRef } from '../../src/base/ids.ts'
import type { Limits } from '../../src/base/limits.ts'
import { EventScan } from '../../src/events/scan.ts'
import type { EventBatch } from '../../src/journal/rows.ts'

/** The default limits, for code that is tested below the HTTP layer. */
export const LIMITS: Limits = {
  body_bytes: 10 * 1024 * 1024,
  events_per_call: 5_000,
  event_payload_bytes: 512 * 1024,
  run_input_bytes: 3 * 1024 * 1024,
  run_output_bytes: 10 * 1024 * 1024,
  prompt_length: 1_000_000,
  type_length: 200,
  task_name_length: 200,
  external_id_length: 255,
  tags: 20,
  tag_length: 128,
  json_depth: 128,
  otlp_bytes: 64 * 1024 * 1024,
  otlp_agents: 1_000,
}

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
