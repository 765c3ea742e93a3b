import { assert } from '../../../base/assert.ts'
import { Bytes } from '../../clickhouse/bytes.ts'
import {
  addConstantInt64,
  addRisingUInt64,
  blockHead,
  columnHead,
  constantLowCardinality,
} from '../../clickhouse/native.ts'
import type { RunRows } from '../journal.ts'
import { LEVELS } from '../levels.ts'
import type { EventBatch, SystemEventRow } from '../rows.ts'
import { addRun, fillRunIds, UlidWriter } from './ids.ts'
import { PayloadColumn } from './payload-column.ts'
import { TaskIdColumn } from './task-id-column.ts'

const FIXED_BYTES_PER_ROW = 80
const LEVEL_ENUM = `Enum8(${LEVELS.map((level, index) => `'${level}' = ${index + 1}`).join(', ')})`
const COLUMN_HEADS = [
  ['workspace_id', 'UUID'],
  ['agent_id', 'UUID'],
  ['run_id', 'UUID'],
  ['seq', 'UInt64'],
  ['event_id', 'String'],
  ['type', 'String'],
  ['level', LEVEL_ENUM],
  ['payload', 'String'],
  ['occurred_at', "DateTime64(3, 'UTC')"],
  ['received_at', "DateTime64(3, 'UTC')"],
].map(([name, type]) => columnHead(name, type))
const TASK_ID_HEAD = columnHead('task_id', 'Nullable(UUID)')
const EPOCH_HEAD = columnHead('epoch', 'LowCardinality(String)')

/**
 * Collects events, column by column, for one block of the `events` table in ClickHouse's `Native` format. Values are
 * copied directly from the request's bytes. Shared values (ids of the run, positions, time of acceptance) are written
 * when the block is built.
 */
export class EventBlock {
  rows = 0
  runs: RunRows[] = []
  /** Outbox ids of the rows from the outbox; the frame stores them for recovery. */
  readonly outboxIds: string[] = []
  private readonly eventId = new Bytes()
  private readonly type = new Bytes()
  private readonly level = new Bytes()
  private readonly payload = new PayloadColumn()
  private readonly occurredAt = new Bytes()
  private readonly taskIds = new TaskIdColumn()
  /** Workspace, agent and run of every row, then position and time of acceptance: filled when the block is built. */
  private readonly ids = [new Bytes(), new Bytes(), new Bytes()]
  private readonly seq = new Bytes()
  private readonly receivedAt = new Bytes()
  private readonly ulids = new UlidWriter()

  /** Approximate size of the collected rows. */
  get bytes(): number {
    return this.payload.length + this.type.length + this.eventId.length + this.rows * FIXED_BYTES_PER_ROW
  }

  /**
   * Adds the rows of a batch: all, or none if it throws.
   * @param now Unix milliseconds, for minted ids and for events without `occurred_at`
   * @throws RangeError for a level that the enum lacks
   */
  add(batch: EventBatch, now: number): void {
    this.allOrNothing(() => this.addRows(batch, now))
  }

  private addRows({ run, scan, rows, ids }: EventBatch, now: number): void {
    const count = rows?.length ?? scan.count
    this.ulids.tick(now)
    this.level.reserve(count)
    this.occurredAt.reserve(count * 8)
    for (let i = 0; i < count; i++) {
      const row = rows === undefined ? i : rows[i]
      const id = ids?.[row]
      if (id === undefined) this.ulids.write(this.eventId)
      else this.eventId.string(id)
      const decoded = scan.decodedTypes.size === 0 ? undefined : scan.decodedTypes.get(row)
      if (decoded === undefined) this.type.slice(scan.text, scan.typeStart[row], scan.typeEnd[row])
      else this.type.slice(decoded, 0, decoded.length)
      requireLevel(scan.level[row])
      this.level.buffer[this.level.length++] = scan.level[row]
      this.payload.add(scan, scan.payloadStart[row], scan.payloadEnd[row])
      const occurredAt = scan.occurredAt[row]
      this.occurredAt.int64(Number.isNaN(occurredAt) ? now : occurredAt)
    }
    if (scan.taskIds !== undefined) this.taskIds.add(scan.taskIds, rows, count, this.rows)
    this.rows += count
    addRun(this.runs, run, count)
  }

  /** Adds system events, which come from the outbox. They are few, so this need not be fast. */
  addSystemEvents(rows: readonly SystemEventRow[], outboxIds: readonly string[]): void {
    this.allOrNothing(() => {
      for (const row of rows) {
        this.eventId.string(row.event_id)
        this.type.string(row.type)
        requireLevel(row.level)
        this.level.byte(row.level)
        this.payload.string(row.payload)
        this.occurredAt.int64(row.occurred_at)
      }
    })
    for (const { workspace_id: workspaceId, agent_id: agentId, run_id: runId } of rows)
      addRun(this.runs, { workspaceId, agentId, runId }, 1)
    this.rows += rows.length
    this.outboxIds.push(...outboxIds)
  }

  /** The block, as pieces to be concatenated. They are views: use them before {@link clear}. */
  build(firstSeq: number, receivedAt: number, epoch: string): Uint8Array[] {
    const { rows } = this
    assert(this.level.length === rows && this.occurredAt.length === rows * 8, 'every event has a value in each column')
    fillRunIds(this.ids, this.runs, rows)
    this.seq.clear()
    addRisingUInt64(this.seq, firstSeq, rows)
    this.receivedAt.clear()
    addConstantInt64(this.receivedAt, receivedAt, rows)
    const columns: readonly (readonly Uint8Array[])[] = [
      ...this.ids.map((column) => [column.view()]),
      [this.seq.view()],
      [this.eventId.view()],
      [this.type.view()],
      [this.level.view()],
      this.payload.pieces(),
      [this.occurredAt.view()],
      [this.receivedAt.view()],
    ]
    const hasTasks = !this.taskIds.isEmpty
    const pieces: Uint8Array[] = [blockHead(columns.length + (hasTasks ? 2 : 1), rows)]
    columns.forEach((values, column) => {
      pieces.push(COLUMN_HEADS[column])
      for (const piece of values) pieces.push(piece)
    })
    if (hasTasks) pieces.push(TASK_ID_HEAD, ...this.taskIds.pieces(rows))
    pieces.push(EPOCH_HEAD, constantLowCardinality(epoch, rows))
    return pieces
  }

  clear(): void {
    this.rows = 0
    this.runs = []
    this.outboxIds.length = 0
    this.payload.clear()
    this.taskIds.clear()
    for (const column of [this.eventId, this.type, this.level, this.occurredAt]) column.clear()
  }

  /**
   * Removes what a failed `add` has written. Columns of different lengths would give every later row the values of
   * another one.
   */
  private allOrNothing(add: () => void): void {
    const [eventIds, types, payloads] = [this.eventId.length, this.type.length, this.payload.size]
    try {
      add()
    } catch (error) {
      this.eventId.length = eventIds
      this.type.length = types
      this.payload.truncate(payloads)
      this.level.length = this.rows
      this.occurredAt.length = this.rows * 8
      this.taskIds.truncate(this.rows)
      throw error
    }
  }
}

/** ClickHouse stores any byte as an enum, and then fails every query that reads the column. */
function requireLevel(level: number): void {
  if (!(level >= 1 && level <= LEVELS.length)) throw new RangeError(`an event has no level: ${level}`)
}
