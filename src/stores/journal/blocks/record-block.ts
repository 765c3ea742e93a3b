import { NIL_UUID } from '../../../base/ids.ts'
import { Bytes } from '../../clickhouse/bytes.ts'
import {
  addConstantInt64,
  addRisingUInt64,
  blockHead,
  columnHead,
  constantLowCardinality,
} from '../../clickhouse/native.ts'
import type { RunRows } from '../journal.ts'
import type { DeliveryRow, RunRow, TaskToAppend, Utf8Range } from '../rows.ts'
import { addRun } from './ids.ts'

const FIXED_BYTES_PER_ROW = 400
const COLUMN_BYTES = 4 * 1024

/** Column types. `Nullable` columns are preceded by a null map. */
type ColumnType = keyof typeof WRITERS

/** The columns of a table that come from a record: name and type, in the table's order. */
export type Columns<Row> = readonly (readonly [name: keyof Row & string, type: ColumnType, nullable?: 'null'])[]

const RUN_COLUMNS: Columns<RunRow> = [
  ['workspace_id', 'UUID'],
  ['agent_id', 'UUID'],
  ['run_id', 'UUID'],
  ['agent_name', 'String'],
  ['agent_version', 'Int64'],
  ['runtime_type', 'String'],
  ['status', 'String'],
  ['trigger_type', 'String'],
  ['external_run_id', 'String', 'null'],
  ['parent_run_id', 'UUID', 'null'],
  ['session_id', 'String', 'null'],
  ['external_user_id', 'String', 'null'],
  ['tags', 'Array(String)'],
  ['metadata', 'String'],
  ['input', 'String'],
  ['output', 'String', 'null'],
  ['error_message', 'String', 'null'],
  ['error_detail', 'String', 'null'],
  ['created_at', "DateTime64(3, 'UTC')"],
  ['started_at', "DateTime64(3, 'UTC')", 'null'],
  ['completed_at', "DateTime64(3, 'UTC')", 'null'],
  ['duration_ms', 'Int64', 'null'],
  ['waiting_ms', 'Int64'],
  ['waiting_since', "DateTime64(3, 'UTC')", 'null'],
  ['input_tokens', 'Int64'],
  ['output_tokens', 'Int64'],
  ['cache_read_tokens', 'Int64'],
  ['cache_write_tokens', 'Int64'],
  ['reasoning_tokens', 'Int64'],
  ['cost_usd', 'Float64'],
  ['event_count', 'Int64'],
  ['last_event_at', "DateTime64(3, 'UTC')", 'null'],
  ['pending', 'String', 'null'],
  ['is_recount', 'Bool'],
]

const TASK_COLUMNS: Columns<TaskToAppend> = [
  ['workspace_id', 'UUID'],
  ['agent_id', 'UUID'],
  ['run_id', 'UUID'],
  ['task_id', 'UUID'],
  ['parent_task_id', 'UUID', 'null'],
  ['name', 'String'],
  ['status', 'String'],
  ['input', 'String', 'null'],
  ['output', 'String', 'null'],
  ['error_message', 'String', 'null'],
  ['created_at', "DateTime64(3, 'UTC')"],
  ['updated_at', "DateTime64(3, 'UTC')"],
  ['started_at', "DateTime64(3, 'UTC')", 'null'],
  ['completed_at', "DateTime64(3, 'UTC')", 'null'],
]

const DELIVERY_COLUMNS: Columns<DeliveryRow> = [
  ['workspace_id', 'UUID'],
  ['webhook_id', 'UUID'],
  ['delivery_id', 'String'],
  ['type', 'String'],
  ['run_id', 'UUID', 'null'],
  ['activity_seq', 'UInt64'],
  ['attempt', 'Int64'],
  ['status', 'String'],
  ['http_status', 'Int64', 'null'],
  ['duration_ms', 'Int64'],
  ['response', 'String', 'null'],
  ['at', "DateTime64(3, 'UTC')"],
]

type Records = readonly Readonly<Record<string, unknown>>[]

/** Each writes a whole column. Nulls are written as the type's default, as `Nullable` requires. */
const WRITERS = {
  UUID: (column: Bytes, records: Records, name: string) => {
    for (const record of records) column.uuid((record[name] ?? NIL_UUID) as string)
  },
  String: (column: Bytes, records: Records, name: string) => {
    for (const record of records) {
      const value = (record[name] ?? '') as string | Utf8Range
      if (typeof value === 'string') column.string(value)
      else column.slice(value.text, value.start, value.end)
    }
  },
  Int64: writeInt64,
  UInt64: writeInt64,
  Float64: (column: Bytes, records: Records, name: string) => {
    for (const record of records) column.float64((record[name] ?? 0) as number)
  },
  Bool: (column: Bytes, records: Records, name: string) => {
    for (const record of records) column.byte(record[name] === true ? 1 : 0)
  },
  "DateTime64(3, 'UTC')": writeInt64,
  'Array(String)': (column: Bytes, records: Records, name: string) => {
    let end = 0
    for (const record of records) {
      end += (record[name] as string[]).length
      column.int64(end)
    }
    for (const record of records) for (const item of record[name] as string[]) column.string(item)
  },
}

function writeInt64(column: Bytes, records: Records, name: string): void {
  for (const record of records) column.int64((record[name] ?? 0) as number)
}

function lengthOf(text: string | Utf8Range | null): number {
  return text === null ? 0 : typeof text === 'string' ? text.length : text.end - text.start
}

/**
 * Encodes columns of records as pieces of a `Native` block.
 * @param buffers an empty one for each column; the pieces are views of them
 */
export function recordColumns<Row>(
  columns: Columns<Row>,
  records: readonly Row[],
  buffers: readonly Bytes[],
): Buffer[] {
  const rows = records as unknown as Records
  return columns.flatMap(([name, type, nullable], index) => {
    const column = buffers[index]
    if (nullable !== undefined) for (const row of rows) column.byte(row[name] === null ? 1 : 0)
    WRITERS[type](column, rows, name)
    return [columnHead(name, nullable === undefined ? type : `Nullable(${type})`), column.view()]
  })
}

type JournalRecord = RunRow | TaskToAppend | DeliveryRow

/** What a block must know about its records. */
interface Shape<Row> {
  readonly columns: Columns<Row>
  /** The run that a record belongs to. */
  readonly runOf: (record: Row) => Omit<RunRows, 'rows'>
  /** The length of its free-form texts. */
  readonly lengthOf: (record: Row) => number
}

const RUNS: Shape<RunRow> = { columns: RUN_COLUMNS, runOf: ownRun, lengthOf: inputAndOutput }
const TASKS: Shape<TaskToAppend> = { columns: TASK_COLUMNS, runOf: ownRun, lengthOf: inputAndOutput }
const DELIVERIES: Shape<DeliveryRow> = {
  columns: DELIVERY_COLUMNS,
  // Consumers need no more than the workspace.
  runOf: (row) => ({ workspaceId: row.workspace_id, agentId: NIL_UUID, runId: NIL_UUID }),
  lengthOf: ({ response }) => lengthOf(response),
}

function ownRun(row: RunRow | TaskToAppend): Omit<RunRows, 'rows'> {
  return { workspaceId: row.workspace_id, agentId: row.agent_id, runId: row.run_id }
}

function inputAndOutput({ input, output }: RunRow | TaskToAppend): number {
  return lengthOf(input) + lengthOf(output)
}

/**
 * Collects changes of runs or tasks, or deliveries, for one block in ClickHouse's `Native` format. They are rarer than events
 * or have many columns, so this class is simple where {@link EventBlock} is optimized.
 */
export class RecordBlock<Row extends JournalRecord> {
  readonly records: Row[] = []
  /** Outbox ids of the records: they go into the frame, for recovery. */
  readonly outboxIds: string[] = []
  bytes = 0
  /** The memory of each column and of those that every block has, used again for the next block. */
  private readonly buffers: Bytes[]

  constructor(private readonly shape: Shape<Row>) {
    this.buffers = Array.from({ length: shape.columns.length + 2 }, () => new Bytes(COLUMN_BYTES))
  }

  static ofRuns(): RecordBlock<RunRow> {
    return new RecordBlock(RUNS)
  }

  static ofTasks(): RecordBlock<TaskToAppend> {
    return new RecordBlock(TASKS)
  }

  static ofDeliveries(): RecordBlock<DeliveryRow> {
    return new RecordBlock(DELIVERIES)
  }

  get rows(): number {
    return this.records.length
  }

  get runs(): RunRows[] {
    const runs: RunRows[] = []
    for (const record of this.records) addRun(runs, this.shape.runOf(record), 1)
    return runs
  }

  add(records: readonly Row[], outboxIds: readonly string[]): void {
    for (const record of records) {
      this.records.push(record)
      this.bytes += FIXED_BYTES_PER_ROW + this.shape.lengthOf(record)
    }
    this.outboxIds.push(...outboxIds)
  }

  /** The block, as pieces to be concatenated. They are views: use them before the next block is built. */
  build(firstSeq: number, receivedAt: number, epoch: string): Buffer[] {
    for (const buffer of this.buffers) buffer.clear()
    const [seq, received, ...columns] = this.buffers
    const { columns: ofRecords } = this.shape
    const pieces = [blockHead(ofRecords.length + 3, this.rows)]
    pieces.push(...recordColumns(ofRecords, this.records, columns))
    addRisingUInt64(seq, firstSeq, this.rows)
    pieces.push(columnHead('seq', 'UInt64'), seq.view())
    addConstantInt64(received, receivedAt, this.rows)
    pieces.push(columnHead('received_at', "DateTime64(3, 'UTC')"), received.view())
    pieces.push(columnHead('epoch', 'LowCardinality(String)'), constantLowCardinality(epoch, this.rows))
    return pieces
  }

  clear(): void {
    this.records.length = 0
    this.outboxIds.length = 0
    this.bytes = 0
  }
}
