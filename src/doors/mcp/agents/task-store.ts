import { isTerminal, type RunStatus } from '../../../activity/runs/state.ts'
import type { RunIdentity } from '../../../base/ids.ts'
import type { RawJson } from '../../../base/raw-json.ts'
import type { HostedPhase } from '../../../hosted/run/state.ts'
import { pauseIs } from '../../../hosted/store/fragments.ts'
import type { Sql } from '../../../stores/postgres/connect.ts'
import type { Caller } from '../../../tenants/keys/schema.ts'
import type { PauseForm } from './forms.ts'

/** A run that was invoked, as a task shows it. */
export interface TaskRow {
  readonly runId: string
  readonly agentId: string
  readonly status: RunStatus
  readonly phase: HostedPhase
  readonly output: RawJson | null
  readonly errorMessage: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
  /** The output is the validated object of an `output_schema`. Only of completed runs. */
  readonly isStructured: boolean
}

/** A pause of a run or of its child runs. */
export interface TaskPause extends PauseForm {
  readonly agentId: string
  readonly rootRunId: string
  readonly rootAgentId: string
  readonly isPending: boolean
  readonly status: string
  readonly editedInput: RawJson | null
  readonly answer: string | null
  readonly comment: string | null
}

type PauseRow = Omit<TaskPause, 'options'> & { readonly options: RawJson | null }

/** Pauses of a task that are shown at once. */
const PAUSES_MAX = 50

/** Reads tasks: they have no rows of their own, but are hosted runs that a caller has invoked. */
export class TaskStore {
  constructor(private readonly sql: Sql) {}

  /** Null for what is no task of the caller: also for child runs, and for an agent key for runs of other agents. */
  async find({ workspaceId, agentId }: Caller, runId: string): Promise<TaskRow | null> {
    const { sql } = this
    const [row] = await sql<TaskRow[]>`
      select r.run_id as "runId", r.agent_id as "agentId", r.status, h.phase, r.output, r.error_message as "errorMessage",
        r.created_at as "createdAt",
        greatest(r.created_at, r.started_at, r.waiting_since, r.last_event_at, r.completed_at) as "updatedAt",
        case when r.status = 'completed' then json_typeof(h.plan #> '{agent,outputSchema}') = 'object' else false end
          as "isStructured"
      from runs r join hosted_runs h on h.workspace_id = r.workspace_id and h.run_id = r.run_id
      where r.workspace_id = ${workspaceId} and r.run_id = ${runId} and h.parent_call_id is null
        ${agentId === null ? sql`` : sql`and r.agent_id = ${agentId}`}`
    return row ?? null
  }

  /** What a paused task waits for that the caller may decide, in the order of the requests. */
  async pending({ workspaceId, agentId }: Caller, task: TaskRow): Promise<TaskPause[]> {
    const { sql } = this
    if (isTerminal(task.status) || task.phase !== 'paused') return []
    const rows = await sql<PauseRow[]>`
      with recursive tree as (
        select run_id from runs where workspace_id = ${workspaceId} and run_id = ${task.runId}
        union all
        select c.run_id from tree t join runs c on c.parent_run_id = t.run_id and c.workspace_id = ${workspaceId}
          join hosted_runs h on h.run_id = c.run_id and h.workspace_id = c.workspace_id
        where h.root_run_id = ${task.runId} and h.phase = 'paused'
      )
      select ${this.columns()} from tree join pauses p on p.run_id = tree.run_id
        join hosted_runs h on h.run_id = p.run_id and h.workspace_id = p.workspace_id
      where p.workspace_id = ${workspaceId} and p.${pauseIs(sql, 'pending')}
        ${agentId === null ? sql`` : sql`and p.agent_id = ${agentId}`}
      order by p.created_at, p.pause_id limit ${PAUSES_MAX}`
    return rows.map(toPause)
  }

  /** Pauses by their ids, decided or not; those that do not exist in the workspace are left out. */
  async pauses({ workspaceId }: Caller, pauseIds: readonly string[]): Promise<TaskPause[]> {
    const { sql } = this
    if (pauseIds.length === 0) return []
    const rows = await sql<PauseRow[]>`
      select ${this.columns()} from pauses p
        join hosted_runs h on h.run_id = p.run_id and h.workspace_id = p.workspace_id
      where p.workspace_id = ${workspaceId} and p.pause_id in ${sql(pauseIds)}`
    return rows.map(toPause)
  }

  private columns() {
    const { sql } = this
    return sql`
      p.pause_id as "pauseId", p.type, p.tool, p.input, p.question, p.options, p.agent_id as "agentId", p.status,
      p.status = 'pending' as "isPending", p.edited_input as "editedInput", p.answer, p.comment,
      h.root_run_id as "rootRunId", (
        select agent_id from hosted_runs where run_id = h.root_run_id and workspace_id = p.workspace_id
      ) as "rootAgentId"`
  }
}

function toPause({ options, ...row }: PauseRow): TaskPause {
  return { ...row, options: (options?.parse() ?? null) as string[] | null }
}

/** The run of a task. */
export function runOf({ workspaceId }: Caller, { runId }: Pick<TaskRow, 'runId'>): RunIdentity {
  return { workspaceId, runId }
}
