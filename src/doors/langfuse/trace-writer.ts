import type { Clock } from '../../base/clock.ts'
import type { Slice } from '../../base/http/shared-slice.ts'
import type { RunRef } from '../../base/ids.ts'
import type { Limits } from '../../base/limits.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { type Partitions, writerOf } from '../../tenants/partitions/partition.ts'
import { BYTES_PER_EVENT } from '../kit.ts'
import { columnsOf } from '../traces/event-columns.ts'
import { appendReported, taskRow } from '../traces/event-writer.ts'
import { WriteBatch } from '../traces/groups.ts'
import type { MappedEvent } from '../traces/mapping.ts'
import type { BatchScan } from './batch-scan.ts'
import { Merged } from './merged.ts'
import { isModelCall, type MappedObservation, mapObservation, usageOfObservation } from './observation.ts'
import { writePayload } from './payload.ts'
import { TRACE_UPDATED } from './run-details.ts'
import { type ObservationState, phaseOf, type RunState } from './states.ts'
import type { ObservationEvent } from './validate.ts'

const WRITE_BYTES_MIN = 8 * 1024

export interface TraceWriterDeps {
  readonly partitions: Partitions
  readonly limits: Limits
  readonly clock: Clock
  /** Called with the number of events of each append, for the metrics. */
  readonly onAccepted: (accepted: number, duplicates: number) => void
  /** Deducts events from the key's budget. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
}

interface TraceContext {
  readonly caller: Caller
  readonly run: RunRef
  readonly state: RunState
  readonly traceId: string
  readonly taskIdOf: (observationId: string) => string
  readonly scan: BatchScan
  readonly slice: Slice
}

/** What is written for an observation or a trace. */
interface Written {
  readonly task: MappedObservation | null
  readonly event: MappedEvent
}

/** Merges the events of one trace into its observations, and writes what has changed. */
export class TraceWriter {
  private batch: WriteBatch<Written>
  /** Of the events that are not written yet, with what is added to each. */
  private bytesLeft: number
  /** States to remember once they are stored. */
  private pending: [taskId: string, state: ObservationState][] = []

  constructor(
    private readonly deps: TraceWriterDeps,
    private readonly context: TraceContext,
    /** About what is written. */
    bytes: number,
  ) {
    this.bytesLeft = bytes
    this.batch = new WriteBatch(1, bytes)
  }

  addTrace(trace: Merged): void {
    const { json } = this.batch
    const now = this.deps.clock.now()
    const payload = writePayload(json, trace, {
      bytesMax: this.deps.limits.event_payload_bytes,
      hasContent: true,
      head: `"trace_id":${JSON.stringify(this.context.traceId)}`,
    })
    const event: MappedEvent = { id: '', type: TRACE_UPDATED, level: 'info', payload, occurredAt: now, taskId: null }
    this.batch.add({ task: null, event }, 1)
  }

  /** Returns what the observation is now; null if that is known in memory, and the events change nothing. */
  async merge(
    taskId: string,
    before: ObservationState | undefined,
    events: readonly ObservationEvent[],
  ): Promise<Merged | null> {
    const { scan, slice } = this.context
    if (slice.isOver) await slice.yield()
    // Without values, and no event is later than what is stored: a repeat.
    if (before?.merged.isReleased === true) return null
    const merged = before === undefined ? new Merged(null, scan.text) : before.merged.draft(scan.text)
    const wasCreated = merged.isCreated
    for (const { index, sentAt, kind, isCreate } of events) {
      merged.merge(scan, index, sentAt)
      if (kind !== null && (isCreate || merged.kind === null)) merged.kind = kind
      merged.isCreated ||= isCreate
      if (slice.isOver) await slice.yield()
    }
    merged.settle()
    // Returned all the same: a process that was killed may have stored the end of the root, but not that of its run.
    if (before !== undefined && !merged.isChanged && wasCreated === merged.isCreated) return merged
    const phase = phaseOf(merged, before?.phase)
    const wasComplete = before?.phase === 'complete'
    await this.write(taskId, { observationId: events[0].observationId, merged, phase }, null, {
      isFinal: phase === 'complete' && !wasComplete,
      isLateUsage: wasComplete && isModelCall(merged) && merged.hasUsage && !before.merged.hasUsage,
    })
    return merged
  }

  /** Completes a generation that has usage but no end. */
  async finish(taskId: string, state: ObservationState, endedAt: number): Promise<void> {
    const { inputTokens, outputTokens, costUsd } = usageOfObservation(state.merged)
    if (inputTokens === undefined && outputTokens === undefined && costUsd === undefined) return
    await this.write(taskId, { ...state, phase: 'complete' }, endedAt, { isFinal: true, isLateUsage: false })
  }

  private async write(
    taskId: string,
    { observationId, merged, phase }: ObservationState,
    endedAt: number | null,
    kindOfEvent: { readonly isFinal: boolean; readonly isLateUsage: boolean },
  ): Promise<void> {
    const { traceId, taskIdOf, slice } = this.context
    const task = mapObservation(merged, {
      out: this.batch.json,
      limits: this.deps.limits,
      traceId,
      observationId,
      taskId,
      taskIdOf,
      endedAt,
      ...kindOfEvent,
      now: this.deps.clock.now(),
    })
    this.batch.add({ task, event: task.event }, 1)
    const kept = phase === 'complete' ? merged.released() : merged.owned()
    this.pending.push([taskId, { observationId, merged: kept, phase }])
    if (this.batch.isFull) {
      if (slice.isOver) await slice.yield()
      await this.flush()
    }
  }

  /** Resolves once everything so far is on stable storage. @throws ApiError UNAVAILABLE */
  async flush(): Promise<void> {
    const { batch, pending } = this
    if (batch.items.length === 0) return
    this.bytesLeft = Math.max(WRITE_BYTES_MIN, this.bytesLeft - batch.json.length)
    this.batch = new WriteBatch(1, this.bytesLeft)
    this.pending = []
    const { caller, run, state } = this.context
    const { items, json } = batch
    const { journal } = writerOf(this.deps.partitions, caller)
    const now = this.deps.clock.now()
    const tasks = items.flatMap(({ task }) => (task === null ? [] : taskRow(run, task, json, now)))
    const events = items.map(({ event }) => event)
    const ids = events.map(({ id }) => (id === '' ? undefined : id))
    await appendReported(journal, tasks, { run, scan: columnsOf(events, json), rows: undefined, ids })
    this.deps.onAccepted(events.length, 0)
    for (const [taskId, observation] of pending) state.set(taskId, observation)
  }
}

/** A small update reads a whole state, and stores it again. @throws ApiError RATE_LIMITED */
export function chargeBytes({ takeBudget }: Pick<TraceWriterDeps, 'takeBudget'>, caller: Caller, bytes: number): void {
  const events = Math.floor(bytes / BYTES_PER_EVENT)
  if (events > 0) takeBudget(caller, events)
}
