import { NIL_UUID, type RunRef } from '../../src/base/ids.ts'
import type { DeliveryRow, RunRow, SystemEventRow, TaskRow } from '../../src/stores/journal/rows.ts'

/** A change of a run, as the outbox relays it to the journal. */
export function runRow({ workspaceId, agentId, runId }: RunRef, fields: Partial<RunRow> = {}): RunRow {
  return {
    workspace_id: workspaceId,
    agent_id: agentId,
    run_id: runId,
    agent_name: 'Ada',
    agent_version: 1,
    runtime_type: 'external',
    status: 'running',
    trigger_type: 'sdk',
    external_run_id: null,
    parent_run_id: null,
    session_id: null,
    external_user_id: null,
    tags: [],
    metadata: '{}',
    input: '{}',
    output: null,
    error_message: null,
    error_detail: null,
    created_at: 1_700_000_000_000,
    started_at: 1_700_000_000_000,
    completed_at: null,
    duration_ms: null,
    waiting_ms: 0,
    waiting_since: null,
    input_tokens: 0,
    output_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    cost_usd: 0,
    event_count: 0,
    last_event_at: null,
    pending: null,
    is_recount: false,
    ...fields,
  }
}

/** A transition of an alert, as the outbox relays it to the journal. */
export function alertRow(workspaceId: string, fields: Partial<SystemEventRow> = {}): SystemEventRow {
  return {
    workspace_id: workspaceId,
    agent_id: NIL_UUID,
    run_id: NIL_UUID,
    event_id: Bun.randomUUIDv7(),
    type: 'alert.fired',
    level: 4,
    payload: '{}',
    occurred_at: 1_700_000_000_000,
    ...fields,
  }
}

/** A delivery that succeeded at once. */
export function deliveryRow(workspaceId: string, fields: Partial<DeliveryRow> = {}): DeliveryRow {
  return {
    workspace_id: workspaceId,
    webhook_id: Bun.randomUUIDv7(),
    delivery_id: 'msg_1_e_1',
    type: 'run.completed',
    run_id: Bun.randomUUIDv7(),
    activity_seq: 1,
    attempt: 1,
    status: 'succeeded',
    http_status: 200,
    duration_ms: 12,
    response: 'ok',
    at: 1_700_000_000_000,
    ...fields,
  }
}

/** A change of a new task, as the outbox relays it to the journal. */
export function taskRow({ workspaceId, agentId, runId }: RunRef, fields: Partial<TaskRow> = {}): TaskRow {
  return {
    workspace_id: workspaceId,
    agent_id: agentId,
    run_id: runId,
    task_id: Bun.randomUUIDv7(),
    parent_task_id: null,
    name: 'look up',
    status: 'running',
    input: null,
    output: null,
    error_message: null,
    created_at: 1_700_000_000_000,
    updated_at: 1_700_000_000_000,
    started_at: 1_700_000_000_000,
    completed_at: null,
    ...fields,
  }
}
