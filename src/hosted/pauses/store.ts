import { checkSize } from '../../activity/runs/limits.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import { hasMoreValues, JSON_VALUES_MAX } from '../../base/http/json-scan.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf } from '../../base/http/page.ts'
import { Uuid } from '../../base/http/schema.ts'
import type { RunIdentity } from '../../base/ids.ts'
import { RawJson } from '../../base/raw-json.ts'
import { inexactIn } from '../../outbound/model/exact-json.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import { pageOfLong } from '../../stores/postgres/long-rows.ts'
import { actorOf, agentToRead, type Caller } from '../../tenants/keys/schema.ts'
import { personName } from '../../tenants/people/names.ts'
import { failure } from '../executor/tool-calls.ts'
import type { HostedContext } from '../run/context.ts'
import type { RunPlan } from '../run/plan.ts'
import { pendingOf } from '../run/run.ts'
import { type CallStatus, NEXT_CALL_STATUSES, NEXT_PAUSE_STATUSES, statesBefore } from '../run/state.ts'
import { systemEvent } from '../store/events.ts'
import { insertOutbox } from '../store/fragments.ts'
import { loadPauses } from '../store/load.ts'
import { lockAncestors, lockRun, showNext, wake } from '../store/pausing.ts'
import { knownParameters } from '../tools/toolbox.ts'
import type { ListPauses, PauseContext, PauseRow } from './schema.ts'
import { listSummaries, readContext } from './summaries.ts'
import type { ListPauseSummaries, PauseSummary } from './summary-schema.ts'

/** A person's decision about a pause. */
export type Decision =
  | { readonly status: 'approved'; readonly comment: string | null; readonly editedInput: RawJson | null }
  | { readonly status: 'rejected'; readonly comment: string | null }
  | { readonly status: 'answered'; readonly answer: string }

const CURSOR = cursorCodec(Uuid)

/** What runs wait for (docs/hosted-agents.md#pauses): a person's approval of one call, or the answer to a question. */
export class Pauses {
  constructor(private readonly context: HostedContext) {}

  /** Newest first; an agent key sees its own agent's. @throws ApiError FORBIDDEN, VALIDATION_ERROR */
  async list<T>(
    caller: Caller,
    type: PauseRow['type'],
    query: ListPauses,
    toRecord: (row: PauseRow) => T,
  ): Promise<PageOf<T>> {
    const { sql } = this.context
    const { status, run_id, limit = PAGE_LIMIT_DEFAULT, cursor } = query
    const agentId = agentToRead(caller, query.agent_id, 'pauses')
    return pageOfLong<string, PauseRow, T>(sql, {
      keys: sql`
        select p.pause_id from pauses p where p.workspace_id = ${caller.workspaceId} and p.type = ${type}
          ${status === undefined ? sql`` : sql`and p.status = ${status}`}
          ${agentId === null ? sql`` : sql`and p.agent_id = ${agentId}`}
          ${run_id === undefined ? sql`` : sql`and p.run_id = ${run_id}`}
          ${cursor === undefined ? sql`` : sql`and p.pause_id < ${CURSOR.decode(cursor)}`}
        order by p.pause_id desc limit ${limit + 1}`,
      limit,
      long: ['input', 'edited_input', 'question', 'options', 'answer', 'comment'],
      row: (key) => sql`from pauses where pause_id = ${key}`,
      read: (keys) => sql`
        ${selected(sql)} where p.workspace_id = ${caller.workspaceId} and p.pause_id = any(${keys}::uuid[])
        order by p.pause_id desc`,
      cursorOf: CURSOR.encode,
      toItem: toRecord,
    })
  }

  /** Approvals and input requests of the workspace in one list. @throws ApiError FORBIDDEN, VALIDATION_ERROR */
  listSummaries(caller: Caller, query: ListPauseSummaries): Promise<PageOf<PauseSummary>> {
    return listSummaries(this.context.sql, caller, query)
  }

  /** One pause with its context: who asked, and what was said before. @throws ApiError NOT_FOUND, FORBIDDEN */
  async details<T extends object>(
    caller: Caller,
    type: PauseRow['type'],
    pauseId: string,
    toRecord: (row: PauseRow) => T,
  ): Promise<T & { context: PauseContext }> {
    const row = await this.get(caller, type, pauseId)
    return { ...toRecord(row), context: await readContext(this.context.sql, caller, row) }
  }

  /** @throws ApiError NOT_FOUND, FORBIDDEN */
  async get(caller: Caller, type: PauseRow['type'], pauseId: string): Promise<PauseRow> {
    const [row] = await this.context.sql<PauseRow[]>`
      ${selected(this.context.sql)}
      where p.workspace_id = ${caller.workspaceId} and p.pause_id = ${pauseId} and p.type = ${type}`
    if (row === undefined)
      throw new ApiError('NOT_FOUND', `${type === 'approval' ? 'approval' : 'input request'} does not exist`)
    if (caller.agentId !== null && caller.agentId !== row.agent_id)
      throw new ApiError('FORBIDDEN', 'this belongs to a run of a different agent than this key', {
        reason: 'wrong_agent',
      })
    return row
  }

  /**
   * Stores a decision, which is final. If no other pause is pending, the run continues: in the process `owner` if it has no
   * ancestors, otherwise it is queued.
   * @param owner null: the run is queued in any case
   * @returns whether `owner` executes the run from now on
   * @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE; CONFLICT naming the first decision
   */
  async decide(caller: Caller, pause: PauseRow, decision: Decision, owner: string | null): Promise<boolean> {
    const { sql, clock, onChange } = this.context
    const { workspaceId } = caller
    const run = { workspaceId, runId: pause.run_id }
    if (decision.status === 'approved') await this.checkEdited(workspaceId, pause, decision.editedInput)
    const at = clock.now()
    const isRoot = pause.parent_call_id === null
    const isResumed = await inTransaction(sql, async (tx): Promise<boolean | 'decided before'> => {
      const locked = isRoot ? lockRun(tx, run) : await lockAncestors(tx, run)
      // Pipelined, but executed in order: what was committed before the lock was granted is seen.
      const [chain, isStored, [next]] = await Promise.all([
        locked,
        storeDecision(tx, caller, pause, decision, at),
        loadPauses(tx, run),
      ])
      if (!isStored) return 'decided before'
      if (next !== undefined) {
        await showNext(tx, chain, pause.pause_id, pendingOf(pause.run_id, next))
        return false
      }
      const newOwner = isRoot ? owner : null
      await wake(tx, chain, at, newOwner)
      return newOwner !== null && chain.runs.some(({ phase }) => phase === 'paused')
    })
    if (isResumed === 'decided before') throw alreadyDecided(await this.get(caller, pause.type, pause.pause_id), at)
    onChange()
    return isResumed
  }

  /** Arguments that a person has edited must match the parameters of the tool, where these are known. */
  private async checkEdited(workspaceId: string, pause: PauseRow, edited: RawJson | null): Promise<void> {
    if (edited === null) return
    const { sql, limits, schemas } = this.context
    checkSize('edited_input', edited, limits.run_input_bytes)
    if (hasMoreValues(edited.text, JSON_VALUES_MAX))
      throw invalid('edited_input', `expected at most ${JSON_VALUES_MAX} values`)
    const inexact = inexactIn(edited.text, 'edited_input')
    if (inexact !== undefined) throw invalid(inexact.path, inexact.problem)
    const [row] = await sql<{ plan: RawJson }[]>`
      select plan from hosted_runs where workspace_id = ${workspaceId} and run_id = ${pause.run_id}`
    const { agent } = (row?.plan.parse() ?? { agent: { tools: [] } }) as Pick<RunPlan, 'agent'>
    const tool = agent.tools.find(({ name }) => name === pause.tool)
    const parameters = tool && (await knownParameters(sql, workspaceId, tool))
    if (parameters === undefined) return
    const checked = schemas.checkArguments(parameters, edited.text)
    if ('problem' in checked) throw invalid('edited_input', checked.problem)
  }
}

/**
 * The run that the response to a decision is about: the one that was invoked. A key of a child run's agent must not
 * read that run, and gets the child run instead.
 */
export function answeredAbout(
  { workspaceId, agentId }: Caller,
  pause: PauseRow,
): RunIdentity & { sessionId: string | null } {
  if (agentId !== null && agentId !== pause.root_agent_id) return { workspaceId, runId: pause.run_id, sessionId: null }
  return { workspaceId, runId: pause.root_run_id, sessionId: pause.root_session_id }
}

/** Looks up the run of each pause by its key: for a join, the planner may read the whole workspace instead. */
function selected(sql: Sql) {
  return sql`
    select p.pause_id, p.run_id, h.root_run_id, h.parent_call_id, root.agent_id as root_agent_id,
      root.session_id as root_session_id,
      p.agent_id, p.call_id, p.type, p.status, p.tool, p.input, p.edited_input, p.question, p.options, p.answer,
      p.comment, p.decided_by, p.decided_at, p.created_at, p.expires_at,
      ${personName(sql, 'p.decided_by', 'p.workspace_id')} as decided_by_person
    from pauses p cross join lateral (
      select root_run_id, parent_call_id from hosted_runs where run_id = p.run_id and workspace_id = p.workspace_id offset 0
    ) h left join lateral (
      select agent_id, session_id from hosted_runs where run_id = h.root_run_id and workspace_id = p.workspace_id offset 0
    ) root on true`
}

/** Stores a decision and applies it to the call. False if the pause has been decided before, or has expired. */
async function storeDecision(
  tx: TransactionSql,
  caller: Caller,
  pause: PauseRow,
  decision: Decision,
  at: number,
): Promise<boolean> {
  const call = decidedCall(pause, decision)
  const { count } = await tx`
    with decided as (
      update pauses set status = ${decision.status}, decided_by = ${actorOf(caller)}, decided_at = ${new Date(at)},
        comment = ${'comment' in decision ? decision.comment : null},
        edited_input = ${decision.status === 'approved' ? decision.editedInput : null}::json,
        answer = ${decision.status === 'answered' ? decision.answer : null}
      where pause_id = ${pause.pause_id} and status in ${tx(statesBefore(NEXT_PAUSE_STATUSES, decision.status))}
        and (expires_at is null or expires_at > ${new Date(at)})
      returning pause_id
    ), applied as (
      update tool_calls set ${tx(call)}
      where workspace_id = ${caller.workspaceId} and call_id = ${pause.call_id}
        and status in ${tx(statesBefore(NEXT_CALL_STATUSES, call.status))} and exists (select from decided)
    ), logged as (
      ${insertOutbox(tx, [decisionEvent(caller, pause, decision, at)], 'none', 'decided')}
    )
    select from decided`
  return count > 0
}

/** The call after a decision: it runs on exactly the arguments that were shown, or on those that the person edited. */
function decidedCall(
  pause: PauseRow,
  decision: Decision,
): { readonly status: CallStatus; readonly input?: RawJson | null; readonly output?: RawJson } {
  if (decision.status === 'approved') return { status: 'ready', input: decision.editedInput ?? pause.input }
  if (decision.status === 'answered') return { status: 'answered', output: RawJson.of(decision.answer) }
  const comment = decision.comment ? `: ${decision.comment}` : ''
  return { status: 'rejected', output: failure(`a person has rejected this call${comment}`) }
}

function decisionEvent(caller: Caller, pause: PauseRow, decision: Decision, at: number) {
  const owner = { runId: pause.run_id, workspaceId: caller.workspaceId, agentId: pause.agent_id }
  const { keyId: key_id, type, person } = caller
  const { personId: person_id, name, email } = person ?? {}
  const when = { requested_at: pause.created_at, expires_at: pause.expires_at }
  const decided_by = person === undefined ? { key_id, type } : { person_id, name, email, type: 'person' }
  if (decision.status === 'answered') {
    const { pause_id: request_id, question, options } = pause
    const payload = { request_id, ...when, decided_by, question, options, answer: decision.answer }
    return systemEvent(owner, at, 'input.answered', payload)
  }
  const edited_input = decision.status === 'approved' ? decision.editedInput : null
  const { pause_id: approval_id, tool, input } = pause
  const { status: decided, comment } = decision
  const payload = { approval_id, decision: decided, ...when, tool, decided_by, comment, input, edited_input }
  return systemEvent(owner, at, 'approval.decided', payload)
}

function alreadyDecided(pause: PauseRow, now: number): ApiError {
  const { status, decided_at, decided_by, decided_by_person: person, expires_at } = pause
  if (status === 'expired' || (status === 'pending' && expires_at !== null && expires_at.getTime() <= now))
    return new ApiError('CONFLICT', `this expired at ${expires_at?.toISOString()}: it was not decided in time`, {
      reason: 'pause_expired',
    })
  if (status === 'cancelled')
    return new ApiError('CONFLICT', 'this was cancelled: its run has ended', { reason: 'run_ended' })
  const when = decided_at === null ? '' : ` at ${decided_at.toISOString()}`
  const by = person === null ? `with key ${decided_by}` : `by ${person}`
  return new ApiError('CONFLICT', `this was already ${status}${when}, ${by}`, { reason: 'already_decided' })
}
