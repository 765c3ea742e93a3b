import { activeMs, usageRecord } from '../../activity/runs/rows.ts'
import { isTerminal, type RunStatus } from '../../activity/runs/state.ts'
import { NIL_UUID } from '../../base/ids.ts'
import { encodeJson, RawJson } from '../../base/raw-json.ts'
import { encodeCursor } from '../../stores/journal/cursor.ts'
import type { ActivityKind } from '../../stores/journal/kinds.ts'
import { LEVELS } from '../../stores/journal/levels.ts'
import type { EventRow, RunRow, ScoreRow, TaskRow } from '../../stores/journal/rows.ts'
import { DATA_TYPES, SCORE_SOURCES } from '../../stores/journal/scores.ts'

/** One activity of a feed, encoded for sending (docs/feeds.md#activity). */
export interface Activity {
  readonly seq: number
  readonly kind: ActivityKind
  /** The JSON object that clients receive. Contains no line break, so that it fits one `data:` line of an event stream. */
  readonly text: string
  /** Whether this ends a run: a feed of that run alone then ends too. */
  readonly endsRun: boolean
  /** Whether it only repeats the state of a run, with newer counts. */
  readonly isRecount: boolean
}

/** A row's position in its journal, and when it was accepted (Unix milliseconds). */
export interface RowPosition {
  readonly epoch: string
  readonly seq: number
  readonly receivedAt: number
}

const LINE_BREAK = /[\r\n]/
const LINE_BREAKS = /[\r\n]+/g
const REPLACED_LENGTH_MAX = 64 * 1024

export function eventActivity(position: RowPosition, row: EventRow): Activity {
  const event =
    `{"id":${JSON.stringify(row.event_id)},"seq":${position.seq},${row.task_id === null ? '' : `"task_id":"${row.task_id}",`}` +
    `"type":${JSON.stringify(row.type)},"level":"${LEVELS[row.level - 1] ?? 'info'}","payload":${row.payload},"occurred_at":"${iso(row.occurred_at)}"}`
  return activity('event', position, row, event)
}

/** The task record of `GET /api/v1/runs/:run_id/tasks`. */
export function taskActivity(position: RowPosition, row: TaskRow): Activity {
  const task = {
    id: row.task_id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    parent_task_id: row.parent_task_id,
    name: row.name,
    status: row.status,
    input: rawOrNull(row.input),
    output: rawOrNull(row.output),
    error_message: row.error_message,
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
    started_at: isoOrNull(row.started_at),
    completed_at: isoOrNull(row.completed_at),
  }
  return activity('task', position, row, encodeJson(task))
}

/** The score of `GET /api/v1/runs/:run_id/scores`, without the ids that every activity has. */
export function scoreActivity(position: RowPosition, row: ScoreRow): Activity {
  const score = {
    id: row.score_id,
    task_id: row.task_id,
    event_id: row.event_id,
    session_id: row.session_id,
    name: row.name,
    value: DATA_TYPES[row.data_type - 1] === 'boolean' ? row.value === 1 : row.value,
    label: row.label,
    text: row.text,
    comment: row.comment,
    source: SCORE_SOURCES[row.source - 1],
    metadata: new RawJson(row.metadata),
    created_at: iso(row.created_at),
  }
  return activity('score', position, row, encodeJson(score))
}

/** The run record of `GET /api/v1/runs/:run_id`, without `input` and `output`, which may be megabytes. */
export function runActivity(position: RowPosition, row: Omit<RunRow, 'input' | 'output'>): Activity {
  const run = {
    run_id: row.run_id,
    agent_id: row.agent_id,
    agent_version: row.agent_version,
    status: row.status,
    trigger_type: row.trigger_type,
    external_run_id: row.external_run_id,
    parent_run_id: row.parent_run_id,
    session_id: row.session_id,
    external_user_id: row.external_user_id,
    tags: row.tags,
    metadata: new RawJson(row.metadata),
    error_message: row.error_message,
    error_detail: rawOrNull(row.error_detail),
    created_at: iso(row.created_at),
    started_at: isoOrNull(row.started_at),
    completed_at: isoOrNull(row.completed_at),
    duration_ms: row.duration_ms,
    active_ms: activeMs(row.duration_ms, row.waiting_ms),
    waiting_ms: row.waiting_ms,
    waiting_since: isoOrNull(row.waiting_since),
    usage: usageRecord(row),
    cost_usd: row.cost_usd,
    event_count: row.event_count,
    last_event_at: isoOrNull(row.last_event_at),
    pending: rawOrNull(row.pending),
  }
  const endsRun = isTerminal(row.status as RunStatus)
  return activity('run', position, row, encodeJson(run), endsRun, row.is_recount)
}

function activity(
  kind: ActivityKind,
  { epoch, seq, receivedAt }: RowPosition,
  { agent_id, run_id }: { readonly agent_id: string; readonly run_id: string },
  record: string,
  endsRun = false,
  isRecount = false,
): Activity {
  const ids = run_id === NIL_UUID ? '"agent_id":null,"run_id":null' : `"agent_id":"${agent_id}","run_id":"${run_id}"`
  const text =
    `{"cursor":"${encodeCursor(epoch, seq)}","kind":"${kind}",${ids},` +
    `"received_at":"${iso(receivedAt)}","${kind}":${record}}`
  return { seq, kind, text: oneLine(text), endsRun, isRecount }
}

/** Raw line breaks in JSON occur only between tokens, never inside strings, so a space is equivalent. */
function oneLine(text: string): string {
  if (!LINE_BREAK.test(text)) return text
  if (text.length <= REPLACED_LENGTH_MAX) return text.replace(LINE_BREAKS, ' ')
  // Replacing millions of line breaks in a string takes ten times as long.
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === 0x0a || bytes[at] === 0x0d) bytes[at] = 0x20
  return bytes.toString()
}

/** Cached, because consecutive rows usually have the same time of acceptance. */
let lastMs = Number.NaN
let lastIso = ''

function iso(ms: number): string {
  if (ms !== lastMs) {
    lastIso = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastIso
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms)
}

function rawOrNull(text: string | null): RawJson | null {
  return text === null ? null : new RawJson(text)
}
