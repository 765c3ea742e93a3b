import type { Caller } from '../keys/schema.ts'
import { type ExportResult, ExportTally } from './export-tally.ts'
import { addTo, inBatches } from './groups.ts'
import { type LogRun, mapLog, runOfLog, timeOf } from './log-mapping.ts'
import { cleanText, isTraceId, type MappingContext } from './mapping.ts'
import { detailsOfLogs, nameOf } from './run-details.ts'
import type { LogRecord } from './telemetry.ts'
import { BATCH_ITEMS_MAX, type OtlpIngestDeps } from './trace-ingest.ts'

/** Stores log records as events of the run of their trace, session or day (docs/opentelemetry.md). */
export class LogIngest {
  constructor(private readonly deps: Omit<OtlpIngestDeps, 'tasks'>) {}

  /** @throws ApiError RATE_LIMITED, UNAVAILABLE: nothing is lost if the export is sent again */
  async store(caller: Caller, records: readonly LogRecord[]): Promise<ExportResult> {
    const { limits, clock, takeBudget } = this.deps
    takeBudget(caller, records.length)
    const tally = new ExportTally('log record')
    const context = { workspaceId: caller.workspaceId, limits, now: clock.now() }
    const runs = new Map<string, LogRun>()
    const byRun = new Map<string, LogRecord[]>()
    const byTrace = new Map<string, LogRun>()
    for (const record of records) {
      const run =
        byTrace.get(record.traceId) ?? runOfLog(record, caller.agentId ?? nameOf(null, record.resource), context)
      if (isTraceId(record.traceId)) byTrace.set(record.traceId, run)
      runs.set(run.runId, run)
      addTo(byRun, run.runId, record)
    }
    const copies = new Map<string, number>()
    const store = async (run: LogRun, own: readonly LogRecord[]) => {
      for (const group of inBatches(own, BATCH_ITEMS_MAX)) {
        await this.storeRun(caller, run, { records: group, context, copies, tally })
      }
    }
    for (const group of inBatches([...runs.values()], BATCH_ITEMS_MAX)) {
      await Promise.all(
        group.map((run) => {
          const own = byRun.get(run.runId) ?? []
          return tally.attempt(
            own,
            () => store(run, own),
            ({ eventName }) => eventName,
          )
        }),
      )
    }
    return tally.result()
  }

  private async storeRun(caller: Caller, { runId, externalRunId }: LogRun, stored: StoredRecords): Promise<void> {
    const { runs, writeEvents, limits } = this.deps
    const { records, context, copies, tally } = stored
    const named = { runId, externalRunId: cleanText(externalRunId, limits.external_id_length), parentRunId: null }
    const startedAt = records.reduce((least, record) => Math.min(least, timeOf(record, context.now)), context.now)
    const run = await runs.report(caller, named, detailsOfLogs(records, startedAt, limits))
    const events = records.map((record) => mapLog(record, context, copies))
    tally.stored(await writeEvents(caller, run, events))
  }
}

interface StoredRecords {
  readonly records: readonly LogRecord[]
  readonly context: MappingContext
  readonly copies: Map<string, number>
  readonly tally: ExportTally
}
