import type { RunDirectory } from '../../activity/runs/directory.ts'
import type { LoadedDeps } from '../../activity/runs/events.ts'
import type { Scores } from '../../activity/scores/scores.ts'
import type { Clock } from '../../base/clock.ts'
import type { BodyReader } from '../../base/http/body.ts'
import type { KeyedMutex } from '../../base/keyed-mutex.ts'
import type { Limits } from '../../base/limits.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { TraceRuns } from '../traces/runs.ts'
import { LangfuseIngest } from './ingest.ts'
import { createScoreWriter } from './scores.ts'
import { StoredStates } from './stored-states.ts'
import { createTraceChanges } from './trace-changes.ts'
import { LangfuseTraces } from './traces.ts'

interface LangfuseDeps extends LoadedDeps {
  readonly sql: Sql
  readonly directory: RunDirectory
  readonly runs: TraceRuns
  readonly scores: Pick<Scores, 'add'>
  readonly limits: Limits
  readonly clock: Clock
  readonly withRunLock: KeyedMutex
  readonly reader: BodyReader
  readonly takeBudget: (caller: Caller, events: number) => void
  readonly onChange: () => void
  readonly onAccepted: (accepted: number, duplicates: number) => void
}

/** The limit of Langfuse, which its SDKs know. */
const BATCH_BYTES_MAX = 4.5 * 1024 * 1024

/** What the routes for the SDKs of Langfuse need (docs/langfuse.md). */
export function createLangfuse(deps: LangfuseDeps) {
  const { sql, columnar, partitions, scores, limits, clock, takeBudget, reader } = deps
  const changes = createTraceChanges(sql)
  const traces = new LangfuseTraces({ ...deps, changes, stored: new StoredStates({ sql, columnar, partitions }) })
  const writer = createScoreWriter({ scores, traces })
  return {
    reader: reader.withLimit(BATCH_BYTES_MAX),
    ingest: new LangfuseIngest({ traces, scores: writer, limits, clock, takeBudget }),
  }
}
