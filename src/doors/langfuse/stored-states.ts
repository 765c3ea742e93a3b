import { type LoadedDeps, queryLoaded } from '../../activity/runs/events.ts'
import { findRuns } from '../../activity/runs/rows.ts'
import { isTerminal, type RunStatus } from '../../activity/runs/state.ts'
import type { Slice } from '../../base/http/shared-slice.ts'
import { type RunRef, runKey } from '../../base/ids.ts'
import { type Batcher, createBatcher } from '../../stores/postgres/batcher.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { PartitionRef } from '../../tenants/partitions/partition.ts'
import { EVENT_TYPES } from '../traces/conventions.ts'
import { INPUT, OUTPUT } from './fields.ts'
import type { Merged } from './merged.ts'
import { OBSERVATION_UPDATED } from './observation.ts'
import { restore } from './payload.ts'
import { TRACE_UPDATED } from './run-details.ts'
import { type ObservationState, phaseOf } from './states.ts'

/** Runs that one query is about. */
const RUNS_PER_QUERY_MAX = 64
const UUID_BYTES = 40
/** Observations of a run that has ended that are completed with it, if they were not ended. */
const UNFINISHED_MAX = 1_000

/** The state of a trace up to this length is read with the sizes. */
const INLINE_BYTES_MAX = 16 * 1024

/** The events that have the state of an observation: its own, and later ones, of which those with late usage are model calls. */
const OF_OBSERVATIONS = `(type in ('${OBSERVATION_UPDATED}', '${EVENT_TYPES.model}') or event_id = toString(task_id))`

/** What is stored of a run: sizes first, so that what is read is in a budget before it is read. */
interface StoredRun {
  /** Null if nothing is stored of the trace, or if it is large. */
  readonly trace: Merged | null
  /** What {@link StoredStates.trace} would read; 0 if nothing. */
  readonly traceBytes: number
  /** The bytes of those observations that are stored, of the ones that were asked for. */
  readonly sizes: ReadonlyMap<string, number>
}

interface Wanted {
  readonly run: RunRef
  readonly taskIds: readonly string[]
}

/**
 * Reads the states of runs that are not in memory from what is stored of them: the events of their observations, and input
 * and output from the tasks.
 */
export class StoredStates {
  private readonly batchers = new Map<string, Batcher<Wanted, StoredRun>>()

  constructor(private readonly deps: LoadedDeps & { readonly sql: Sql }) {}

  /** Calls of a workspace share queries, because a batch may be about thousands of runs. @throws ApiError UNAVAILABLE */
  async find(caller: PartitionRef, run: RunRef, taskIds: readonly string[]): Promise<StoredRun> {
    const { workspaceId } = run
    let batcher = this.batchers.get(workspaceId)
    if (batcher === undefined) {
      batcher = createBatcher<Wanted, StoredRun>({
        run: (wanted) => this.findAll(caller, wanted),
        keyOf: (wanted) => wanted.run.runId,
        bytesOf: (wanted) => (1 + wanted.taskIds.length) * UUID_BYTES,
        limits: { itemsPerBatch: RUNS_PER_QUERY_MAX },
      })
      this.batchers.set(workspaceId, batcher)
    }
    try {
      return await batcher.submit({ run, taskIds })
    } finally {
      if (this.batchers.size > 1_000) this.batchers.delete(workspaceId)
    }
  }

  private async findAll(caller: PartitionRef, wanted: readonly Wanted[]): Promise<StoredRun[]> {
    const params = {
      workspace: wanted[0].run.workspaceId,
      agents: [...new Set(wanted.map(({ run }) => run.agentId))],
      runs: wanted.map(({ run }) => run.runId),
      tasks: [...new Set(wanted.flatMap(({ taskIds }) => taskIds))],
    }
    const [traces, observations] = await Promise.all([
      this.select<{ run_id: string; small: string; bytes: number; sent_ms: number }>(
        caller,
        `select run_id, argMax(if(length(payload) <= ${INLINE_BYTES_MAX}, payload, ''), seq) as small,
           argMax(toUInt32(length(payload)), seq) as bytes, argMax(toUnixTimestamp64Milli(occurred_at), seq) as sent_ms
         from events
         where workspace_id = {workspace:UUID} and agent_id in {agents:Array(UUID)} and run_id in {runs:Array(UUID)}
           and type = '${TRACE_UPDATED}'
         group by run_id`,
        params,
      ),
      params.tasks.length === 0 ? [] : this.sizes(caller, params),
    ])
    const traceOf = new Map(traces.map((row) => [row.run_id, row]))
    const sizesOf = new Map<string, Map<string, number>>(wanted.map(({ run }) => [run.runId, new Map()]))
    for (const { run_id, task_id, bytes } of observations) sizesOf.get(run_id)?.set(task_id, bytes)
    return wanted.map(({ run: { runId } }) => {
      const { small = '', bytes = 0, sent_ms = 0 } = traceOf.get(runId) ?? {}
      const sizes = sizesOf.get(runId) ?? new Map<string, number>()
      return small === ''
        ? { trace: null, traceBytes: bytes, sizes }
        : { trace: restore(small, sent_ms).owned(), traceBytes: 0, sizes }
    })
  }

  private sizes(caller: PartitionRef, params: Record<string, unknown>) {
    return this.select<{ run_id: string; task_id: string; bytes: number }>(
      caller,
      `select run_id, task_id, toUInt32(sum(length)) as bytes from (
         select run_id, task_id, max(ifNull(length(input), 0) + ifNull(length(output), 0)) as length from tasks
         where workspace_id = {workspace:UUID} and run_id in {runs:Array(UUID)} and task_id in {tasks:Array(UUID)}
         group by run_id, task_id
         union all
         select run_id, assumeNotNull(events.task_id) as task_id, argMax(length(payload), seq) as length from events
         where workspace_id = {workspace:UUID} and agent_id in {agents:Array(UUID)} and run_id in {runs:Array(UUID)}
           and task_id in {tasks:Array(UUID)} and ${OF_OBSERVATIONS}
         group by run_id, task_id
       ) group by run_id, task_id`,
      params,
    )
  }

  /** The state of the trace of a run; null if there is none. @throws ApiError UNAVAILABLE */
  async trace(caller: PartitionRef, run: RunRef): Promise<Merged | null> {
    const [row] = await this.select<{ payload: string; sent_ms: number }>(
      caller,
      `select payload, toUnixTimestamp64Milli(occurred_at) as sent_ms from events
       where workspace_id = {workspace:UUID} and agent_id = {agent:UUID} and run_id = {run:UUID}
         and type = '${TRACE_UPDATED}'
       order by seq desc limit 1`,
      { workspace: run.workspaceId, agent: run.agentId, run: run.runId },
    )
    return row === undefined ? null : restore(row.payload, row.sent_ms).owned()
  }

  /** The states of observations, with their values, {@link StoredRun.sizes} bytes. @throws ApiError UNAVAILABLE */
  async load(caller: PartitionRef, { run, taskIds }: Wanted, slice: Slice): Promise<Map<string, ObservationState>> {
    const params = { workspace: run.workspaceId, agent: run.agentId, run: run.runId, tasks: taskIds }
    const events = await this.select<EventState>(
      caller,
      `select task_id, argMax(payload, seq) as payload, argMax(toUnixTimestamp64Milli(occurred_at), seq) as sent_ms,
         max(event_id = toString(task_id)) as is_final
       from events
       where workspace_id = {workspace:UUID} and agent_id = {agent:UUID} and run_id = {run:UUID}
         and task_id in {tasks:Array(UUID)} and ${OF_OBSERVATIONS}
       group by task_id`,
      params,
    )
    const tasks = await this.select<TaskContent>(
      caller,
      `select task_id, input, output from tasks final
       where workspace_id = {workspace:UUID} and run_id = {run:UUID} and task_id in {tasks:Array(UUID)}`,
      params,
    )
    const contentOf = new Map(tasks.map((row) => [row.task_id, row]))
    const states = new Map<string, ObservationState>()
    for (const event of events) {
      if (slice.isOver) await slice.yield()
      states.set(event.task_id, stateOf(event, contentOf.get(event.task_id)))
    }
    return states
  }

  /** Whether the run has ended. */
  async hasEnded(run: RunRef): Promise<boolean> {
    const found = await findRuns<{ status: RunStatus }>(this.deps.sql, [run], 'r.status')
    const status = found.get(runKey(run.workspaceId, run.runId))?.status
    return status !== undefined && isTerminal(status)
  }

  /** The tasks of observations that have not ended. @throws ApiError UNAVAILABLE */
  async unfinished(caller: PartitionRef, run: RunRef): Promise<string[]> {
    const rows = await this.select<{ task_id: string }>(
      caller,
      `select task_id from tasks final
       where workspace_id = {workspace:UUID} and run_id = {run:UUID} and status = 'running' limit ${UNFINISHED_MAX}`,
      { workspace: run.workspaceId, run: run.runId },
    )
    return rows.map(({ task_id }) => task_id)
  }

  private select<Row>(caller: PartitionRef, sql: string, params: Record<string, unknown>): Promise<Row[]> {
    return queryLoaded<Row>(this.deps, caller, 'the state of a trace', sql, params)
  }
}

interface EventState {
  readonly task_id: string
  readonly payload: string
  readonly sent_ms: number
  readonly is_final: number
}

interface TaskContent {
  readonly task_id: string
  readonly input: string | null
  readonly output: string | null
}

function stateOf(event: EventState, task: TaskContent | undefined): ObservationState {
  const merged = withContent(restore(event.payload, event.sent_ms), task, event.sent_ms)
  return {
    observationId: observationIdOf(event.payload) ?? event.task_id,
    merged,
    phase: phaseOf(merged, event.is_final ? 'complete' : undefined),
  }
}

/** The input and output of the task, as it has them: objects, which are stored as they are. */
function withContent(merged: Merged, task: TaskContent | undefined, sentAt: number): Merged {
  return merged.withTexts(
    [
      [INPUT, task?.input ?? null],
      [OUTPUT, task?.output ?? null],
    ],
    sentAt,
  )
}

function observationIdOf(payload: string): string | undefined {
  const id = /"observation_id":("(?:[^"\\]|\\.)*")/.exec(payload.slice(0, 4_096))?.[1]
  return id === undefined ? undefined : (JSON.parse(id) as string)
}
