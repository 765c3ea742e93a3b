import { inSlices, type Slice } from '../../base/http/shared-slice.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { type ExportResult, ExportTally, placesOf } from '../traces/export-tally.ts'
import { addTo, inBatches, inParallel, WriteBatch } from '../traces/groups.ts'
import { spanTaskIds } from '../traces/ids.ts'
import { cleanText, isTraceId, type MappedEvent, type MappingContext } from '../traces/mapping.ts'
import { detailsOfLogs, runAgentName } from '../traces/run-details.ts'
import type { LogRecord, OpenedExport } from '../traces/telemetry.ts'
import { BATCH_ITEMS_MAX, type TraceStoreDeps } from '../traces/trace-store.ts'
import { type LogRun, mapLog, runOfLog, timeOf } from './log-mapping.ts'

/** Stores log records as events of the run of their trace, session or day (docs/opentelemetry.md). */
export class LogIngest {
  constructor(private readonly deps: Omit<TraceStoreDeps, 'tasks'>) {}

  /** @throws ApiError RATE_LIMITED, UNAVAILABLE: nothing is lost if the export is sent again */
  async store(caller: Caller, opened: OpenedExport<LogRecord>, slice: Slice): Promise<ExportResult> {
    const { limits, clock, takeBudget } = this.deps
    takeBudget(caller, opened.cost)
    const { items: records, refusals } = await inSlices(slice, opened.decode())
    const tally = new ExportTally(placesOf('log record'))
    tally.refuse(refusals)
    const context = { workspaceId: caller.workspaceId, limits, now: clock.now() }
    const runs = new Map<string, LogRun>()
    const byRun = new Map<string, LogRecord[]>()
    const byTrace = new Map<string, LogRun>()
    for (const record of records) {
      const run =
        byTrace.get(record.traceId) ?? runOfLog(record, caller.agentId ?? runAgentName(null, record.resource), context)
      if (isTraceId(record.traceId)) byTrace.set(record.traceId, run)
      runs.set(run.runId, run)
      addTo(byRun, run.runId, record)
      if (slice.isOver) await slice.yield()
    }
    const storing = { context, copies: new Map<string, number>(), tally, slice }
    for (const group of inBatches([...runs.values()], BATCH_ITEMS_MAX)) {
      await inParallel(group, (run) => {
        const own = byRun.get(run.runId) ?? []
        return tally.attempt(
          own.length,
          () => this.storeRun(caller, run, own, storing),
          () => own[0].eventName,
        )
      })
    }
    return tally.result()
  }

  private async storeRun(
    caller: Caller,
    { runId, externalRunId }: LogRun,
    records: readonly LogRecord[],
    { context, copies, tally, slice }: Storing,
  ): Promise<void> {
    const { runs, writeEvents, limits } = this.deps
    if (slice.isOver) await slice.yield()
    const named = { runId, externalRunId: cleanText(externalRunId, limits.external_id_length), parentRunId: null }
    const startedAt = records.reduce((least, record) => Math.min(least, timeOf(record, context.now)), context.now)
    const run = await runs.report(caller, named, await inSlices(slice, detailsOfLogs(records, startedAt, limits)))
    // A run has the records of one trace, or of none.
    const { traceId } = records[0]
    const taskIdOf = isTraceId(traceId) ? spanTaskIds(caller.workspaceId, traceId) : undefined
    let batch = new WriteBatch<MappedEvent>(records.length)
    for (const [index, record] of records.entries()) {
      if (slice.isOver) await slice.yield()
      batch.add(mapLog(record, { ...context, out: batch.json }, copies, taskIdOf), 1)
      if (!batch.isFull && index < records.length - 1) continue
      tally.stored(await writeEvents(caller, run, { events: batch.items, json: batch.json }))
      batch = new WriteBatch(records.length - index - 1)
    }
  }
}

interface Storing {
  readonly context: Omit<MappingContext, 'out'>
  readonly copies: Map<string, number>
  readonly tally: ExportTally
  readonly slice: Slice
}
