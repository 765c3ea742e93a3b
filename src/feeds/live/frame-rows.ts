import { NativeBlock } from '../../stores/clickhouse/native-reader.ts'
import { type Frame, lastSeqOf, type RunRows } from '../../stores/journal/journal.ts'
import type { RunRow, ScoreRow, TaskRow } from '../../stores/journal/rows.ts'
import { type Activity, eventActivity, type RowPosition, runActivity, scoreActivity, taskActivity } from './activity.ts'

type FeedRun = Omit<RunRow, 'input' | 'output'>
/** Of the columns that may be null, a block of scores lacks those in which all are. */
const NO_VALUES = {
  task_id: null,
  event_id: null,
  session_id: null,
  value: null,
  label: null,
  text: null,
  comment: null,
}
const NOT_IN_FEEDS: ReadonlySet<string> = new Set(['input', 'output'])

/**
 * The rows of one frame as activities, decoded on demand. The frame's memory is reused once the reader yields, unless
 * {@link detach} was called before.
 */
export class FrameRows {
  private bytes: Uint8Array
  private isDetached = false
  private block: NativeBlock | undefined
  private eventColumns: EventColumns | undefined
  /** The row decoded last: matching and encoding need the same values. */
  private lastRow = -1
  private lastType = ''
  private lastRun: FeedRun | undefined

  constructor(
    readonly frame: Frame,
    private readonly epoch: string,
  ) {
    this.bytes = frame.block
  }

  get lastSeq(): number {
    return lastSeqOf(this.frame)
  }

  /** Copies the frame's memory, so that the reader may yield. */
  detach(): void {
    if (this.isDetached) return
    this.isDetached = true
    this.bytes = this.bytes.slice()
    this.block = undefined
    this.eventColumns = undefined
  }

  /** The level of an event: its index in `LEVELS`, from 1. */
  level(row: number): number {
    return this.events.level.at(row)
  }

  /** The type of an event. */
  type(row: number): string {
    if (row !== this.lastRow) {
      this.lastType = this.events.type.at(row)
      this.lastRow = row
    }
    return this.lastType
  }

  /** The task of an event, score or task record; null for an event or score that names none. */
  taskId(row: number): string | null {
    return this.frame.kind === 'event' ? this.events.taskId.at(row) : this.columns.uuids('task_id').at(row)
  }

  /** The status of a task or run. */
  status(row: number): string {
    return this.columns.strings('status').at(row)
  }

  run(row: number): FeedRun {
    if (row !== this.lastRow || this.lastRun === undefined) {
      this.lastRun = this.columns.row(row, NOT_IN_FEEDS) as unknown as FeedRun
      this.lastRow = row
    }
    return this.lastRun
  }

  activity(row: number, run: RunRows): Activity {
    const { kind, firstSeq, receivedAt } = this.frame
    const position = { epoch: this.epoch, seq: firstSeq + row, receivedAt }
    switch (kind) {
      case 'run':
        return runActivity(position, this.run(row))
      case 'task':
        return taskActivity(position, this.columns.row(row) as unknown as TaskRow)
      case 'score':
        return scoreActivity(position, { ...NO_VALUES, ...this.columns.row(row) } as unknown as ScoreRow)
      case 'event':
        return this.event(row, run, position)
      case 'delivery':
        throw new Error('a delivery is no activity')
    }
  }

  private event(row: number, run: RunRows, position: RowPosition): Activity {
    const { id, level, payload, occurredAt, taskId } = this.events
    return eventActivity(position, {
      agent_id: run.agentId,
      run_id: run.runId,
      event_id: id.at(row),
      type: this.type(row),
      level: level.at(row),
      payload: payload.at(row),
      occurred_at: occurredAt.at(row),
      task_id: taskId.at(row),
    })
  }

  private get columns(): NativeBlock {
    const { buffer, byteOffset, byteLength } = this.bytes
    this.block ??= new NativeBlock(Buffer.from(buffer, byteOffset, byteLength))
    return this.block
  }

  private get events(): EventColumns {
    this.eventColumns ??= eventColumns(this.columns)
    return this.eventColumns
  }
}

type EventColumns = ReturnType<typeof eventColumns>

function eventColumns(block: NativeBlock) {
  return {
    id: block.strings('event_id'),
    type: block.strings('type'),
    level: block.numbers('level'),
    payload: block.strings('payload'),
    occurredAt: block.numbers('occurred_at'),
    taskId: block.uuids('task_id'),
  }
}
