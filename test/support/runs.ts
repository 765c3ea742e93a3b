import { RunDirectory } from '../../src/activity/runs/directory.ts'
import { RunStore } from '../../src/activity/runs/store.ts'
import { TaskStore } from '../../src/activity/tasks/store.ts'
import { RawJson } from '../../src/base/raw-json.ts'
import type { Journal } from '../../src/stores/journal/journal.ts'
import type { RunRow, TaskRow } from '../../src/stores/journal/rows.ts'
import type { Sql } from '../../src/stores/postgres/connect.ts'
import type { Caller } from '../../src/tenants/keys/schema.ts'
import { LIMITS } from './events.ts'

/** A workspace with one external agent, and the caller of its key. */
export async function newCaller(sql: Sql): Promise<Caller & { agentId: string }> {
  const workspaceId = crypto.randomUUID()
  const agentId = crypto.randomUUID()
  await sql`
    insert into workspaces (workspace_id, name, created_at, updated_at) values (${workspaceId}, 'w', now(), now())`
  await sql`
    insert into agents (agent_id, workspace_id, name, runtime_type, metadata, created_at, updated_at)
    values (${agentId}, ${workspaceId}, 'an agent', 'external', ${new RawJson('{}')}, now(), now())`
  return { keyId: crypto.randomUUID(), type: 'agent', workspaceId, partition: 0, agentId }
}

/** The stores of runs and tasks, as in one process. */
export function storesOn(sql: Sql, onChange: () => void = () => {}) {
  const directory = new RunDirectory(sql)
  const deps = {
    sql,
    clock: { now: () => Date.now() },
    limits: LIMITS,
    directory,
    cancelHosted: async () => false,
    onChange,
  }
  return { directory, runs: new RunStore(deps), tasks: new TaskStore({ ...deps, telemetry: NONE }) }
}

/** No run here is reported by OpenTelemetry. */
const NONE = { list: () => Promise.reject(new Error('no such tasks')) }

/** A row that the journal got from the outbox. */
export type Change = { readonly kind: 'run'; readonly row: RunRow } | { readonly kind: 'task'; readonly row: TaskRow }

/** A journal that records in `changes` each row it has made durable; `afterAppend` runs before the caller gets the result. */
export function recordingJournal(
  journal: Journal,
  changes: Change[],
  afterAppend: () => Promise<void> = async () => {},
): Journal {
  return new Proxy(journal, {
    get(target, name) {
      if (name !== 'appendRuns' && name !== 'appendTasks') {
        const value = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      }
      return async (rows: readonly (RunRow | TaskRow)[], outboxIds: readonly string[]) => {
        const kind = name === 'appendRuns' ? 'run' : 'task'
        const appended = await target[name](rows as never, outboxIds)
        changes.push(...rows.map((row) => ({ kind, row }) as Change))
        await afterAppend()
        return appended
      }
    },
  })
}
