import type { RunRef } from '../../base/ids.ts'

/**
 * Records as they enter the journal: the complete state after a change, so that a consumer never needs an earlier one.
 * Free-form members are JSON text. Times are Unix milliseconds.
 */

export interface RunRow {
  readonly workspace_id: string
  readonly agent_id: string
  readonly run_id: string
  readonly agent_name: string
  readonly agent_version: number
  readonly runtime_type: string
  readonly status: string
  readonly trigger_type: string
  readonly external_run_id: string | null
  readonly parent_run_id: string | null
  readonly session_id: string | null
  readonly external_user_id: string | null
  readonly tags: readonly string[]
  readonly metadata: string
  readonly input: string
  readonly output: string | null
  readonly error_message: string | null
  readonly error_detail: string | null
  readonly created_at: number
  readonly started_at: number | null
  readonly completed_at: number | null
  readonly duration_ms: number | null
  /** Milliseconds waited for people, without the wait that began at `waiting_since`. */
  readonly waiting_ms: number
  readonly waiting_since: number | null
  readonly input_tokens: number
  readonly output_tokens: number
  /** Parts of the input, and of the output. */
  readonly cache_read_tokens: number
  readonly cache_write_tokens: number
  readonly reasoning_tokens: number
  readonly cost_usd: number
  /** Events counted at the time of the change. */
  readonly event_count: number
  readonly last_event_at: number | null
  /** What a paused run waits for, JSON text. */
  readonly pending: string | null
  /** Whether the row only repeats a state that an earlier row has, with newer counts. */
  readonly is_recount: boolean
}

/** An event as the journal and ClickHouse hold it. Times are Unix milliseconds, `payload` is the JSON text of an object. */
export interface EventRow {
  readonly agent_id: string
  readonly run_id: string
  readonly event_id: string
  readonly type: string
  /** 1-based index in `LEVELS`. */
  readonly level: number
  readonly payload: string
  readonly occurred_at: number
  /** The task that the event is part of. */
  readonly task_id: string | null
}

/**
 * A system event: one that the service itself reports, as the outbox carries it. A workspace event has `NIL_UUID` as
 * `agent_id` and `run_id`.
 */
export interface SystemEventRow extends Omit<EventRow, 'task_id'> {
  readonly workspace_id: string
}

export interface TaskRow {
  readonly workspace_id: string
  readonly agent_id: string
  readonly run_id: string
  readonly task_id: string
  readonly parent_task_id: string | null
  readonly name: string
  readonly status: string
  readonly input: string | null
  readonly output: string | null
  readonly error_message: string | null
  readonly created_at: number
  readonly updated_at: number
  readonly started_at: number | null
  readonly completed_at: number | null
}

/** A task for the journal, whose `input` and `output` may be UTF-8. */
export interface TaskToAppend extends Omit<TaskRow, 'input' | 'output'> {
  readonly input: string | Utf8Range | null
  readonly output: string | Utf8Range | null
}

/** An attempt to deliver an activity to a webhook. */
export interface DeliveryRow {
  readonly workspace_id: string
  readonly webhook_id: string
  /** The same for all attempts. */
  readonly delivery_id: string
  /** The type of the message, such as `run.completed`. */
  readonly type: string
  /** Null for a workspace event. */
  readonly run_id: string | null
  /** The position of the activity; SQL shows it as `seq`. */
  readonly activity_seq: number
  /** From 1. */
  readonly attempt: number
  readonly status: 'pending' | 'succeeded' | 'failed'
  /** Null if there was no answer. */
  readonly http_status: number | null
  readonly duration_ms: number
  /** The beginning of the answer, or why there was none. */
  readonly response: string | null
  readonly at: number
}

/** A score as the journal and ClickHouse hold it: the latest row of an id within a run is the score. */
export interface ScoreRow {
  readonly agent_id: string
  readonly run_id: string
  readonly score_id: string
  readonly name: string
  readonly task_id: string | null
  readonly event_id: string | null
  readonly session_id: string | null
  /** 1 and 0 for booleans. */
  readonly value: number | null
  /** 1-based index in `DATA_TYPES`. */
  readonly data_type: number
  readonly label: string | null
  readonly text: string | null
  readonly comment: string | null
  /** 1-based index in `SCORE_SOURCES`. */
  readonly source: number
  readonly metadata: string
  readonly created_at: number
}

/** A text in memory that nobody writes to again. */
export interface Utf8Range {
  readonly text: Buffer
  readonly start: number
  readonly end: number
}

/** Validated events as columns; texts are ranges of `text`. */
export interface EventColumns {
  readonly text: Buffer
  /**
   * The same bytes in memory that nobody writes to again, so that a block may refer to it until the events are durable;
   * undefined if there is none.
   */
  readonly body: Uint8Array | undefined
  /** Number of events; the arrays have an entry for each. */
  readonly count: number
  readonly typeStart: Int32Array
  readonly typeEnd: Int32Array
  /** Level numbers, as in `levels.ts`. */
  readonly level: Int8Array
  /** -1 for an event without a payload. */
  readonly payloadStart: Int32Array
  readonly payloadEnd: Int32Array
  /** Unix milliseconds; NaN for an event without a time. */
  readonly occurredAt: Float64Array
  /** The task id of each event as four words (see `putUuid`), all zero for none; undefined if no event has one. */
  readonly taskIds: Uint32Array | undefined
  /** Decoded types of the events whose type contains escapes. */
  readonly decodedTypes: ReadonlyMap<number, Buffer>
}

/** The validated events of one call, for the journal: which rows of a scan to store, and their ids. */
export interface EventBatch {
  readonly run: RunRef
  readonly scan: EventColumns
  /** The rows to store, in order; undefined: all of the scan. */
  readonly rows: readonly number[] | undefined
  /** Event ids by row; undefined where the journal mints one. */
  readonly ids: readonly (string | undefined)[] | undefined
}

/** Validated scores as columns; texts are ranges of `text`. */
export interface ScoreColumns {
  readonly text: Buffer
  /** For each score the cells of {@link SCORE_CELLS}. */
  readonly cells: Int32Array
  /** 1 and 0 for booleans. */
  readonly value: Float64Array
  /** Unix milliseconds; NaN for a score without a time. */
  readonly createdAt: Float64Array
}

/** The cells of a score. A range has two: where it starts, or -1 if there is none, and where it ends. */
export const SCORE_CELLS = {
  /** Index of its run in the batch. */
  run: 0,
  /** Index in `DATA_TYPES`, from 1. */
  dataType: 1,
  /** Index in `SCORE_SOURCES`, from 1; 0 if it has none. */
  source: 2,
  id: 4,
  name: 6,
  /** Of a UUID in its text form. */
  taskId: 8,
  eventId: 10,
  sessionId: 12,
  label: 14,
  text: 16,
  comment: 18,
  metadata: 20,
  /** Number of cells. */
  count: 22,
} as const

/** The validated scores of one call, for the journal: which rows to store, and their ids. */
export interface ScoreBatch {
  readonly runs: readonly RunRef[]
  readonly scores: ScoreColumns
  /** The rows to store, in order. */
  readonly rows: readonly number[]
  /** Ids by row, for scores without a range of an id; undefined where the journal mints one. */
  readonly ids: readonly (string | undefined)[] | undefined
  /** Hashes of their content by row; undefined if none has an id of the caller. */
  readonly hashes: Float64Array | undefined
  /** The source of scores that name none: its index in `SCORE_SOURCES`, from 1. */
  readonly defaultSource: number
}

/** The id of a score; undefined where the journal mints one. */
export function scoreIdOf({ scores: { text, cells }, ids }: Pick<ScoreBatch, 'scores' | 'ids'>, row: number) {
  const at = row * SCORE_CELLS.count + SCORE_CELLS.id
  return cells[at]! < 0 ? ids?.[row] : text.toString('utf8', cells[at], cells[at + 1])
}
