import { ApiError, notFound } from '../../base/errors.ts'
import type { RunRef } from '../../base/ids.ts'
import { runKey, uuidOrNull } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import { type Batcher, createBatcher } from '../../stores/postgres/batcher.ts'
import { jsonArray, type Sql } from '../../stores/postgres/connect.ts'
import { runErased, runOfKeyErased } from './access.ts'
import { arrayLiteral, findRuns, isErased, RUN_ROW_COLUMNS, runsToOutbox } from './rows.ts'

/** A run to be created, all defaults filled in. */
interface NewRun {
  readonly runId: string
  /** The caller has chosen the id; otherwise it derives from the Idempotency-Key, if there is one. */
  readonly hasChosenId: boolean
  readonly workspaceId: string
  readonly agentId: string
  readonly triggerType: string
  readonly externalRunId: string | null
  readonly parentRunId: string | null
  readonly sessionId: string | null
  readonly externalUserId: string | null
  readonly tags: readonly string[]
  readonly metadata: RawJson
  readonly input: RawJson
  /** Unix milliseconds. */
  readonly at: number
}

/** The run after the request; `created` is false if the same start was processed before. */
interface StartedRun {
  readonly ref: RunRef
  readonly created: boolean
}

/** Creates runs of external agents in batches: one statement writes the rows and their outbox rows. */
export function createRunStarts(sql: Sql): Batcher<NewRun, StartedRun> {
  return createBatcher<NewRun, StartedRun>({
    run: async (runs) => {
      const outcomes = await insert(sql, runs)
      const repeats = runs.filter((_, index) => isRepeat(outcomes[index]))
      const existing = await findRuns<ExistingRun>(sql, repeats, `encode(r.start_hash, 'hex') as start_hash`)
      return runs.map((run, index) => toResult(run, outcomes[index], existing))
    },
    keyOf: ({ workspaceId, runId }) => runKey(workspaceId, runId),
    ownerOf: ({ workspaceId }) => workspaceId,
    bytesOf: (run) => run.input.text.length + run.metadata.text.length + 500,
  })
}

interface InsertOutcome {
  /** Null when the agent does not exist, is of another workspace, or archived. */
  readonly runtime_type: RunRef['runtimeType'] | null
  readonly parent_found: boolean | null
  /** Whether the service itself runs the session. */
  readonly session_hosted: boolean | null
  /** Whether the id belonged to a run that was deleted. */
  readonly erased: boolean | null
  readonly inserted: boolean
}

/** Inserts in order of workspace and run_id, so that two processes that insert the same runs cannot deadlock. */
async function insert(sql: Sql, runs: readonly NewRun[]): Promise<readonly InsertOutcome[]> {
  return sql<InsertOutcome[]>`
    with item as (
      select * from unnest(
        ${runs.map((run) => run.runId)}::uuid[], ${runs.map((run) => run.workspaceId)}::uuid[],
        ${runs.map((run) => run.agentId)}::uuid[], ${runs.map((run) => run.triggerType)}::text[],
        ${runs.map((run) => run.externalRunId)}::text[], ${runs.map((run) => run.parentRunId)}::uuid[],
        ${runs.map((run) => run.sessionId)}::text[], ${runs.map((run) => uuidOrNull(run.sessionId))}::uuid[],
        ${runs.map((run) => run.externalUserId)}::text[],
        ${runs.map((run) => arrayLiteral(run.tags))}::text[], ${jsonArray(sql, runs, 'metadata')},
        ${jsonArray(sql, runs, 'input')}, ${runs.map(startHash)}::text[],
        ${runs.map((run) => new Date(run.at).toISOString())}::timestamptz[]
      ) with ordinality as i (run_id, workspace_id, agent_id, trigger_type, external_run_id, parent_run_id,
                              session_id, hosted_session_id, external_user_id, tags, metadata, input, start_hash, at, n)
    ), checked as (
      select i.n, a.version, a.runtime_type,
        i.parent_run_id is null or exists (
          select from runs p where p.workspace_id = i.workspace_id and p.run_id = i.parent_run_id
        ) as parent_found,
        exists (
          select from sessions s where s.session_id = i.hosted_session_id and s.workspace_id = i.workspace_id
        ) as session_hosted,
        ${sql.unsafe(isErased('i'))} as erased
      from item i
      join agents a on a.agent_id = i.agent_id and a.workspace_id = i.workspace_id and a.status <> 'archived'
    ), inserted as (
      insert into runs as r (
        run_id, workspace_id, agent_id, agent_version, runtime_type, status, trigger_type, external_run_id,
        parent_run_id, session_id, external_user_id, tags, metadata, input, start_hash, created_at, started_at
      )
      select i.run_id, i.workspace_id, i.agent_id, c.version, c.runtime_type, 'running', i.trigger_type,
        i.external_run_id, i.parent_run_id, i.session_id, i.external_user_id, i.tags::text[], i.metadata, i.input,
        decode(i.start_hash, 'hex'), i.at, i.at
      from item i join checked c on c.n = i.n
      where c.runtime_type = 'external' and c.parent_found and not c.session_hosted and not c.erased
      order by i.workspace_id, i.run_id
      on conflict (workspace_id, run_id) do nothing
      returning ${sql.unsafe(RUN_ROW_COLUMNS)}
    ), logged as (${sql.unsafe(runsToOutbox('inserted r'))})
    select c.runtime_type, c.parent_found, c.session_hosted, c.erased, r.run_id is not null as inserted
    from item i left join checked c on c.n = i.n
      left join inserted r on r.workspace_id = i.workspace_id and r.run_id = i.run_id
    order by i.n`
}

function isRepeat({ inserted, runtime_type, parent_found, session_hosted, erased }: InsertOutcome): boolean {
  return !inserted && !erased && runtime_type === 'external' && parent_found === true && session_hosted === false
}

interface ExistingRun {
  readonly start_hash: string | null
}

function toResult(run: NewRun, outcome: InsertOutcome, existing: Map<string, ExistingRun>): StartedRun | ApiError {
  if (outcome.runtime_type === null) return notFound('agent', { param: 'agent_id' })
  if (outcome.runtime_type === 'hosted') {
    return new ApiError('CONFLICT', 'this agent is hosted; only the service can start and report its runs', {
      reason: 'hosted_run',
      param: 'agent_id',
    })
  }
  if (outcome.parent_found === false) return notFound('parent run', { param: 'parent_run_id' })
  if (outcome.session_hosted === true)
    return new ApiError('CONFLICT', 'session_id: the service itself runs this session; choose another id', {
      reason: 'hosted_session',
      param: 'session_id',
    })
  if (outcome.erased === true) return run.hasChosenId ? runErased() : runOfKeyErased()
  const ref = {
    runId: run.runId,
    workspaceId: run.workspaceId,
    agentId: run.agentId,
    runtimeType: outcome.runtime_type,
  }
  if (outcome.inserted) return { ref, created: true }
  return existing.get(runKey(run.workspaceId, run.runId))?.start_hash === startHash(run)
    ? { ref, created: false }
    : new ApiError('CONFLICT', 'run_id is already used by a run that was started with other values', {
        reason: 'id_taken',
        param: 'run_id',
      })
}

/**
 * SHA-256 of what makes two starts the same: every field, defaults filled in, ids in lower case, free-form objects as
 * the text that was sent. An equal object with different formatting counts as different, because a retry sends the same text.
 */
function startHash(run: NewRun): string {
  const { agentId, triggerType, externalRunId, parentRunId, sessionId, externalUserId, tags, metadata, input } = run
  const ids = [agentId, triggerType, externalRunId, parentRunId, sessionId, externalUserId]
  return new Bun.CryptoHasher('sha256').update(JSON.stringify([...ids, tags, metadata.text, input.text])).digest('hex')
}
