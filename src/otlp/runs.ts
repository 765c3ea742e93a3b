import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { RunRef } from '../events/schema.ts'
import { ApiError } from '../http/errors.ts'
import { runKey } from '../ids.ts'
import type { Caller } from '../keys/schema.ts'
import type { Batcher } from '../postgres/batcher.ts'
import type { RunDirectory } from '../runs/directory.ts'
import type { RunEnded } from '../runs/schema.ts'
import type { RunTransition } from '../runs/transitions.ts'
import type { AgentNames } from './agents.ts'
import { partRunId } from './ids.ts'
import type { RunEnd, RunFacts } from './run-reports.ts'
import type { RunReport, RunUpserted } from './run-upserts.ts'

export interface OtlpRunsDeps {
  readonly directory: RunDirectory
  readonly upserts: Batcher<RunReport, RunUpserted>
  readonly transitions: Batcher<RunTransition, RunEnded>
  readonly agents: AgentNames
  readonly clock: Clock
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
}

/** Which run an export reports for. */
export interface NamedRun {
  readonly runId: string
  readonly externalRunId: string
  readonly parentRunId: string | null
}

export type OtlpRuns = ReturnType<typeof createOtlpRuns>

const RUNS_REMEMBERED = 20_000

/** The runs of traces, sessions and days: found or started on first sight, ended with their root span. */
export function createOtlpRuns({ directory, upserts, transitions, agents, clock, onChange }: OtlpRunsDeps) {
  /** What was last written of a run, so that an export that says nothing new needs no statement. */
  const written = new LRUCache<string, { startedAt: number; said: string }>({ max: RUNS_REMEMBERED })

  /**
   * The run, with what the export says of it stored.
   * @throws ApiError FORBIDDEN, NOT_FOUND or CONFLICT for a run that cannot be reported; UNAVAILABLE
   */
  async function report(caller: Caller, run: NamedRun, facts: RunFacts): Promise<RunRef> {
    const known = (await directory.find(caller.workspaceId, run.runId)) ?? (await start(caller, run, facts))
    if (known.runtimeType === 'hosted') throw new ApiError('CONFLICT', 'the run of this trace is hosted')
    if (caller.agentId === null || caller.agentId === known.agentId) return write(caller, run, known.agentId, facts)
    // Two agents share a trace, each with its own key: the second one gets a run below that of the first.
    const part = {
      ...run,
      runId: partRunId(caller.workspaceId, run.externalRunId, caller.agentId),
      parentRunId: known.runId,
    }
    return write(caller, part, caller.agentId, facts)
  }

  /** The run after its start, which another agent may have preceded. */
  async function start(caller: Caller, run: NamedRun, facts: RunFacts): Promise<RunRef> {
    return write(caller, run, caller.agentId ?? (await agents.find(caller.workspaceId, facts.agentName)), facts)
  }

  async function write({ workspaceId }: Caller, run: NamedRun, agentId: string, facts: RunFacts): Promise<RunRef> {
    const { runId } = run
    const ref: RunRef = { runId, workspaceId, agentId, runtimeType: 'external' }
    const key = runKey(workspaceId, runId)
    const { startedAt, externalUserId, sessionId, tags, metadata, input } = facts
    const said = `${externalUserId !== null} ${sessionId !== null} ${tags.length > 0} ${input !== null}`
    const before = written.get(key)
    if (before !== undefined && before.startedAt <= startedAt && before.said === said) return ref
    const { agentName: _, ...columns } = facts
    const outcome = await upserts.submit({ ...run, ...columns, metadata, workspaceId, agentId, at: clock.now() })
    if (outcome === 'missing') {
      throw new ApiError('NOT_FOUND', `agent ${agentId} cannot report: it is archived, or hosted by the service`)
    }
    if (outcome === 'created') directory.started(ref)
    if (outcome !== 'unchanged') onChange()
    written.set(key, { startedAt: Math.min(startedAt, before?.startedAt ?? startedAt), said })
    const stored = outcome === 'unchanged' ? await directory.find(workspaceId, runId) : ref
    return stored ?? ref
  }

  /** Ends the run, unless it has ended. @throws ApiError UNAVAILABLE */
  async function end({ runId, workspaceId }: RunRef, how: RunEnd): Promise<void> {
    try {
      const { already } = await transitions.submit({ runId, workspaceId, ...how, usage: null })
      if (!already) onChange()
    } catch (error) {
      // It ended otherwise before, for example by `cancel`; that stands.
      if (!(error instanceof ApiError) || error.code !== 'CONFLICT') throw error
    }
  }

  return { report, end }
}
