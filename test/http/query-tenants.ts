import { encodeJson } from '../../src/base/raw-json.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import type { Caller } from '../../src/tenants/keys/schema.ts'
import type { Partitions } from '../../src/tenants/partitions/partition.ts'
import { partitionWith } from '../support/partitions.ts'

/** Two tenants in one database, with their rows next to each other. */

export const OURS = 'a0000000-0000-7000-8000-000000000001'
/** The rows of this tenant contain the word SECRET. */
export const THEIRS = 'b0000000-0000-7000-8000-000000000002'
/** A workspace without rows. */
export const NEW = 'c0000000-0000-7000-8000-000000000003'

export function caller(workspaceId: string): Caller {
  return { keyId: 'k', type: 'workspace', workspaceId, partition: 0, agentId: null }
}

/** A partition of which ClickHouse has everything up to this position. */
export function loadedThrough(loaded: number): Partitions {
  const waitFor = async (seq: number) => seq <= loaded
  return partitionWith({ sink: { epoch: 'epoch-1', loadedSeq: () => loaded, waitFor } })
}

/** Twenty events, one run in two states and one task in two states. */
export async function fill(target: ColumnarClient, workspace: string, word: string): Promise<void> {
  const params = { workspace, word, id: word === 'SECRET' ? 'SECRET' : 'e' }
  await target.command(
    `insert into events (workspace_id, agent_id, run_id, seq, event_id, type, level, payload, occurred_at, received_at, epoch)
     select {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, number, {id:String} || toString(number), 'llm.call', 'info',
            '{"a":{"b":' || toString(number) || '},"s":"' || {word:String} || '","x.y":1,"dup":1,"dup":2}',
            toDateTime64('2026-01-31 09:30:00.123', 3, 'UTC'), now64(3), 'epoch-1'
     from numbers(20)`,
    { params },
  )
  for (const [seq, status, output] of [
    [1, 'running', null],
    [2, 'completed', '{"text":"done"}'],
  ] as const) {
    await target.command(
      `insert into runs (workspace_id, agent_id, run_id, agent_name, status, trigger_type, tags, input, output, created_at, seq)
       select {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, {word:String}, {status:String}, 'sdk', ['t'], '{"q":1}',
              {output:Nullable(String)}, now64(3), {seq:UInt64}`,
      { params: { ...params, seq, status, output } },
    )
    await target.command(
      `insert into tasks (workspace_id, agent_id, run_id, task_id, name, status, created_at, updated_at, seq)
       select {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, {word:String}, {status:String}, now64(3), now64(3), {seq:UInt64}`,
      { params: { ...params, seq, status } },
    )
  }
}

/** Why it failed; an error that says so when it did not. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => new Error(`did not fail: ${encodeJson(value).slice(0, 200)}`),
    (error) => error,
  )
}
