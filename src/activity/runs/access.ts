import { ApiError, notFound } from '../../base/errors.ts'
import type { RunRef } from '../../base/ids.ts'
import type { Caller } from '../../tenants/keys/schema.ts'

/**
 * The run, if the caller may read it. A workspace key may read any run, an agent key only its own agent's.
 * @param run as found in the caller's workspace
 * @throws ApiError NOT_FOUND for no run, FORBIDDEN for another agent's (docs/keys.md#key-scope)
 */
export function readable(caller: Caller, run: RunRef | null): RunRef {
  if (run === null) throw notFound('run')
  if (caller.agentId !== null && caller.agentId !== run.agentId) {
    throw new ApiError('FORBIDDEN', 'this run belongs to another agent', { reason: 'wrong_agent' })
  }
  return run
}

/**
 * The run, if the caller may report for it: {@link readable}, and its agent is not hosted.
 * @throws ApiError also CONFLICT for a run of a hosted agent (docs/runs.md#run-states)
 */
export function reportable(caller: Caller, run: RunRef | null): RunRef {
  return notHosted(readable(caller, run))
}

/** The run, if it is not one that the service itself reports. @throws ApiError CONFLICT */
export function notHosted(run: RunRef): RunRef {
  if (run.runtimeType === 'hosted') {
    throw new ApiError('CONFLICT', 'run_id: hosted runs are reported by the service itself', {
      reason: 'hosted_run',
      param: 'run_id',
    })
  }
  return run
}

/** Refuses a new run with the id of a deleted one. */
export function runErased(): ApiError {
  return new ApiError('CONFLICT', 'run_id: a run with this id was deleted; use another id', {
    reason: 'id_taken',
    param: 'run_id',
  })
}

/** Refuses to start the run of a request again. With an effect, so that its key stays used: a further repeat is refused, too. */
export function runOfKeyErased(): ApiError {
  const message = 'the run that this Idempotency-Key began was deleted; use another key for a new run'
  return new ApiError('CONFLICT', message, { reason: 'id_taken', hasEffect: true })
}
