import type { Activity } from '../../activity/activity.ts'
import { createRunTransitions } from '../../activity/runs/transitions.ts'
import { createKeyedMutex } from '../../base/keyed-mutex.ts'
import type { FeatureContext } from '../../tenants/feature.ts'
import type { DoorDeps } from '../kit.ts'
import { createAgentNames } from './agents.ts'
import { createEventWriter } from './event-writer.ts'
import { createRunUpserts } from './run-upserts.ts'
import { createTraceRuns } from './runs.ts'
import { decodeLimits } from './telemetry.ts'
import { TraceStore, type TraceStoreDeps } from './trace-store.ts'
import { JsonConverter } from './wire/json-converter.ts'

export type Traces = ReturnType<typeof createTraces>

/** What the routes of a door for traces need. */
export interface TraceRoutesDeps extends Pick<DoorDeps, 'guards' | 'forwarder'> {
  readonly traces: Traces
}

/** What the doors for traces share: how runs, tasks and events are stored, one at a time for each run. */
export function createTraces(context: FeatureContext, { directory, agents, telemetry }: Activity) {
  const { sql, partitions, clock, limits, reader, slice, metrics, onChange, takeBudget } = context
  const deps: TraceStoreDeps = {
    runs: createTraceRuns({
      directory,
      upserts: createRunUpserts(sql),
      transitions: createRunTransitions(sql),
      agents: createAgentNames({ agents, agentsMax: limits.otlp_agents }),
      clock,
      onChange,
    }),
    tasks: telemetry,
    writeEvents: createEventWriter({ partitions, onAccepted: metrics.eventsTaken }),
    withRunLock: createKeyedMutex(),
    limits,
    clock,
    takeBudget,
  }
  const traces = new TraceStore(deps)
  return {
    ...deps,
    traces,
    json: new JsonConverter(),
    reader: reader.withLimit(limits.otlp_bytes),
    decodeLimits: decodeLimits(limits),
    slice,
  }
}
