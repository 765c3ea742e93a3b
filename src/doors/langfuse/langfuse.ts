import type { Activity } from '../../activity/activity.ts'
import type { FeatureContext } from '../../tenants/feature.ts'
import type { WorkspaceStore } from '../../tenants/workspaces/store.ts'
import type { Traces } from '../traces/traces.ts'
import { LangfuseIngest } from './ingest.ts'
import { langfuseRoutes } from './routes.ts'
import { createScoreWriter } from './scores.ts'
import { StoredStates } from './stored-states.ts'
import { createTraceChanges } from './trace-changes.ts'
import { LangfuseTraces } from './traces.ts'

interface LangfuseDeps {
  readonly traces: Traces
  readonly activity: Pick<Activity, 'directory' | 'scores'>
  readonly workspaces: Pick<WorkspaceStore, 'own'>
}

/** The limit of Langfuse, which its SDKs know. */
const BATCH_BYTES_MAX = 4.5 * 1024 * 1024

/** Reports by the SDKs of Langfuse (docs/langfuse.md). */
export function createLangfuse(context: FeatureContext, { traces: shared, activity, workspaces }: LangfuseDeps) {
  const { sql, columnar, partitions, guards, forwarder, reader, slice, limits, clock, metrics, onChange } = context
  const { directory, scores } = activity
  const { runs, withRunLock, takeBudget } = shared
  const traces = new LangfuseTraces({
    directory,
    partitions,
    runs,
    limits,
    clock,
    withRunLock,
    takeBudget,
    onChange,
    onAccepted: metrics.eventsTaken,
    changes: createTraceChanges(sql),
    stored: new StoredStates({ sql, columnar, partitions }),
  })
  const writer = createScoreWriter({ scores, traces })
  const routes = langfuseRoutes({
    guards,
    forwarder,
    slice,
    reader: reader.withLimit(BATCH_BYTES_MAX),
    ingest: new LangfuseIngest({ traces, scores: writer, limits, clock, takeBudget }),
    workspaceName: async (caller) => (await workspaces.own(caller, undefined)).name,
  })
  return { routes }
}
