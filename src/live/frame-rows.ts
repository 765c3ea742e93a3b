import { NativeBlock, type NumberColumn, type StringColumn } from '../columnar/native-reader.ts'
import type { Frame, Span } from '../journal/journal.ts'
import type { RunRow, TaskRow } from '../journal/rows.ts'
import { type Activity, eventActivity, runActivity, taskActivity } from './activity.ts'
import { type Filter, matchesType } from './filter.ts'

/**
 * The rows of one frame as activities. Whatever somebody wants of it is decoded once, nothing else is. Lives only until
 * the reader yields, because the frame's memory is used again.
 */
export class FrameRows {
  private block: NativeBlock | undefined
  private eventColumns: EventColumns | undefined
  private readonly activities: (Activity | undefined)[]

  constructor(
    readonly frame: Frame,
    private readonly epoch: string,
  ) {
    this.activities = new Array(frame.rows)
  }

  /** Adds to `found` what matches among the rows `from` to `to` of a span after position `afterSeq`. */
  collect(filter: Filter, span: Span, from: number, to: number, afterSeq: number, found: Activity[]): void {
    const { kind, firstSeq } = this.frame
    if (!matchesSpan(filter, kind, span)) return
    const start = Math.max(from, afterSeq + 1 - firstSeq)
    for (let row = start; row < to; row++) if (this.matchesRow(filter, row)) found.push(this.activity(row, span))
  }

  /** All that matches after position `afterSeq`. */
  matches(workspaceId: string, filter: Filter, afterSeq: number, found: Activity[]): void {
    let row = 0
    for (const span of this.frame.spans) {
      if (span.workspaceId === workspaceId) this.collect(filter, span, row, row + span.rows, afterSeq, found)
      row += span.rows
    }
  }

  private matchesRow({ types, level, statuses, tags }: Filter, row: number): boolean {
    if (level !== undefined && this.events.level.at(row) < level) return false
    if (types !== undefined && !matchesType(types, this.events.type.at(row))) return false
    if (statuses !== undefined && !statuses.has(this.columns.strings('status').at(row))) return false
    return tags === undefined || this.run(row).tags.some((tag) => tags.has(tag))
  }

  private activity(row: number, span: Span): Activity {
    let activity = this.activities[row]
    if (activity === undefined) {
      activity = this.decode(row, span)
      this.activities[row] = activity
    }
    return activity
  }

  private decode(row: number, span: Span): Activity {
    const { kind, firstSeq, receivedAt } = this.frame
    const place = { epoch: this.epoch, seq: firstSeq + row, receivedAt }
    if (kind === 'run') return runActivity(place, this.run(row))
    if (kind === 'task') return taskActivity(place, this.columns.row(row) as unknown as TaskRow)
    const { id, type, level, payload, occurredAt } = this.events
    return eventActivity(place, {
      agent_id: span.agentId,
      run_id: span.runId,
      event_id: id.at(row),
      type: type.at(row),
      level: level.at(row),
      payload: payload.at(row),
      occurred_at: occurredAt.at(row),
    })
  }

  private run(row: number): RunRow {
    return this.columns.row(row) as unknown as RunRow
  }

  private get columns(): NativeBlock {
    const { buffer, byteOffset, byteLength } = this.frame.block
    this.block ??= new NativeBlock(Buffer.from(buffer, byteOffset, byteLength))
    return this.block
  }

  private get events(): EventColumns {
    this.eventColumns ??= {
      id: this.columns.strings('event_id'),
      type: this.columns.strings('type'),
      level: this.columns.numbers('level'),
      payload: this.columns.strings('payload'),
      occurredAt: this.columns.numbers('occurred_at'),
    }
    return this.eventColumns
  }
}

interface EventColumns {
  readonly id: StringColumn
  readonly type: StringColumn
  readonly level: NumberColumn
  readonly payload: StringColumn
  readonly occurredAt: NumberColumn
}

/** Whether rows of this kind and run can match at all. */
function matchesSpan({ kinds, agentIds, runIds }: Filter, kind: Frame['kind'], span: Span): boolean {
  return (
    kinds.has(kind) &&
    (agentIds === undefined || agentIds.has(span.agentId)) &&
    (runIds === undefined || runIds.has(span.runId))
  )
}
