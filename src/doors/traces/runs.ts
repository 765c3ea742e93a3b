import { LRUCache } from 'lru-cache'
import { runErased } from '../../activity/runs/access.ts'
import type { RunDirectory } from '../../activity/runs/directory.ts'
import type { RunEnded } from '../../activity/runs/schema.ts'
import type { RunTransition } from '../../activity/runs/transitions.ts'
import type { Clock } from '../../base/clock.ts'
import { ApiError } from '../../base/errors.ts'
import type { RunRef } from '../../base/ids.ts'
import { runKey } from '../../base/ids.ts'
import type { Batcher } from '../../stores/postgres/batcher.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { AgentNames } from './agents.ts'
import { partRunId } from './ids.ts'
import type { RunDetails, RunEnd } from './run-details.ts'
import { BARE_METADATA, type RunReport, type RunUpserted } from './run-upserts.ts'

interface TraceRunsDeps {
  readonly directory: RunDirectory
  readonly upserts: Batcher<RunReport, RunUpserted>
  readonly transitions: Batcher<RunTransition, RunEnded>
  readonly agents: AgentNames
  readonly clock: Clock
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
}

/** Identifies the run that an export reports. */
interface NamedRun {
  readonly runId: string
  readonly externalRunId: string
  readonly parentRunId: string | null
}

export type TraceRuns = ReturnType<typeof createTraceRuns>

const RUNS_CACHED_MAX = 20_000

/** The runs of traces, sessions and days: started when first reported, ended by their root span. */
export function createTraceRuns({ directory, upserts, transitions, agents, clock, onChange }: TraceRunsDeps) {
  /** What was last written of each run, so that an export that adds nothing needs no statement. */
  const written = new LRUCache<string, { startedAt: number; reported: string }>({ max: RUNS_CACHED_MAX })

  /**
   * Stores what an export reports about a run, and returns the run.
   * @throws ApiError FORBIDDEN, NOT_FOUND or CONFLICT for a run that cannot be reported; UNAVAILABLE
   */
  async function report(caller: Caller, run: NamedRun, details: RunDetails): Promise<RunRef> {
    const known = (await directory.find(caller.workspaceId, run.runId)) ?? (await start(caller, run, details))
    if (known.runtimeType === 'hosted')
      throw new ApiError('CONFLICT', 'the run of this trace is hosted', { reason: 'hosted_run' })
    if (caller.agentId === null || caller.agentId === known.agentId) return write(caller, run, known.agentId, details)
    // Two agents share a trace, each with its own key: the second one gets a child run of the first one's run.
    const part = {
      ...run,
      runId: partRunId(caller.workspaceId, run.externalRunId, caller.agentId),
      parentRunId: known.runId,
    }
    const isKnown = (await directory.find(caller.workspaceId, part.runId)) !== null
    return isKnown ? write(caller, part, caller.agentId, details) : start(caller, part, details)
  }

  /** Starts the run. Returns another agent's run if that agent was faster. */
  async function start(caller: Caller, run: NamedRun, details: RunDetails): Promise<RunRef> {
    // It may have been deleted since.
    written.delete(runKey(caller.workspaceId, run.runId))
    return write(caller, run, caller.agentId ?? (await agents.find(caller.workspaceId, details.agentName)), details)
  }

  async function write(caller: Caller, run: NamedRun, agentId: string, details: RunDetails): Promise<RunRef> {
    const { workspaceId } = caller
    const { runId } = run
    const ref: RunRef = { runId, workspaceId, agentId, runtimeType: 'external' }
    const key = runKey(workspaceId, runId)
    const { startedAt, externalUserId, sessionId, tags, metadata, input } = details
    const hasMetadata = !BARE_METADATA.test(metadata.text)
    const reported = `${externalUserId !== null} ${sessionId !== null} ${tags.length > 0} ${input !== null} ${hasMetadata}`
    const before = written.get(key)
    if (before !== undefined && before.startedAt <= startedAt && before.reported === reported) return ref
    const { agentName: _, ...columns } = details
    const started = directory.starting()
    const outcome = await upserts.submit({ ...run, ...columns, metadata, workspaceId, agentId, at: clock.now() })
    if (outcome === 'missing') {
      throw new ApiError('NOT_FOUND', `agent ${agentId} cannot report: it is archived, or hosted by the service`)
    }
    if (outcome === 'erased') throw runErased()
    if (outcome === 'created') started(caller, ref)
    if (outcome !== 'unchanged') onChange()
    const stored = (outcome === 'unchanged' && (await directory.find(workspaceId, runId))) || ref
    // Of another agent's run nothing was written.
    if (stored.agentId === agentId)
      written.set(key, { startedAt: Math.min(startedAt, before?.startedAt ?? startedAt), reported })
    return stored
  }

  /** Ends the run, unless it has ended. @throws ApiError UNAVAILABLE */
  async function end({ runId, workspaceId }: RunRef, how: RunEnd): Promise<void> {
    try {
      const { already } = await transitions.submit({ runId, workspaceId, ...how, usage: null })
      if (!already) onChange()
    } catch (error) {
      // It has already ended in another way, for example by `cancel`, and stays so.
      if (!(error instanceof ApiError) || error.code !== 'CONFLICT') throw error
    }
  }

  return { report, end }
}
