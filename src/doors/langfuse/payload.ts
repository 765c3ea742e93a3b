import { CLOSE_BRACE, OPEN_BRACE, OPEN_BRACKET, QUOTE, visitMembers } from '../../base/http/json-scan.ts'
import { isObject } from '../../base/json-object.ts'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import type { Range } from '../traces/telemetry.ts'
import { startOf } from './content.ts'
import { kindOfBody } from './event-types.ts'
import { FIELD_COUNT, FIELDS, INPUT, OUTPUT, STORED_MEMBERS, STORED_NAMES, USAGE } from './fields.ts'
import { Merged } from './merged.ts'

/** Room for the members that are added to the values, and for the names of those that are cut. */
const RESERVED_BYTES = 4 * 1024
/** What is kept of a value that does not fit. */
const CUT_BYTES = 2 * 1024

interface PayloadOptions {
  readonly bytesMax: number
  /** Whether to store input and output; a task has its own. */
  readonly hasContent: boolean
  /** Members to begin with, JSON without braces. */
  readonly head: string
}

/**
 * Writes the payload of an event: the values of a state as they were sent, `sent_at`, when they were, Unix milliseconds, and
 * `sent_at_of` for fields that were not sent then, or whose values are not in the payload. So {@link restore} can read the
 * state again. Values that do not fit are cut, and `truncated` names them.
 */
export function writePayload(out: Bytes, merged: Merged, { bytesMax, hasContent, head }: PayloadOptions): Range {
  const start = out.length
  out.byte(OPEN_BRACE)
  out.text(head)
  const limit = start + bytesMax - RESERVED_BYTES
  const truncated: number[] = []
  const written = new Set<number>()
  for (let field = 0; field < FIELD_COUNT; field++) {
    if (!merged.has(field) || (!hasContent && (field === INPUT || field === OUTPUT))) continue
    const name = STORED_MEMBERS[field]
    const text = merged.bufferOf(field)
    const from = merged.start(field)
    const end = merged.end(field)
    const room = limit - out.length - name.length
    if (end - from > room) {
      truncated.push(field)
      if (room < CUT_BYTES) continue
    }
    written.add(field)
    out.copy(name, 0, name.length)
    if (end - from > room) out.text(startOf({ text, start: from, end }, CUT_BYTES))
    else out.copy(text, from, end)
  }
  if (truncated.length > 0) {
    out.text(`,"truncated":${JSON.stringify(truncated.map((field) => FIELDS[field].stored))}`)
  }
  writeTimes(out, merged, written)
  out.byte(CLOSE_BRACE)
  return { start, end: out.length }
}

function writeTimes(out: Bytes, { sentAt, isCreated }: Merged, written: ReadonlySet<number>): void {
  const [first = -1] = written
  const most = sentAt[first] ?? 0
  let others = ''
  for (let field = 0; field < FIELD_COUNT; field++) {
    const at = sentAt[field]
    if (at !== 0 && (at !== most || !written.has(field))) others += `,"${FIELDS[field].stored}":${at}`
  }
  if (!isCreated) out.text(',"is_created":false')
  out.text(`,"sent_at":${most}`)
  if (others !== '') out.text(`,"sent_at_of":{${others.slice(1)}}`)
}

/** Anybody may have written the payload: a value of another type would not be read. */
function canBe(field: number, first: number): boolean {
  const { kind } = FIELDS[field]
  if (kind === 'text' || kind === 'time' || kind === 'level') return first === QUOTE
  return kind === 'object' ? first === OPEN_BRACE : kind === 'list' ? first === OPEN_BRACKET : true
}

/**
 * The state that a payload was written from, without input and output.
 * @param storedAt stands in for `sent_at` in a payload that another door, or an earlier version, has written
 */
export function restore(payload: string, storedAt: number): Merged {
  const text = Buffer.from(`${payload}\0`)
  const merged = new Merged(text)
  merged.isCreated = true
  let sentAt = storedAt
  let others: unknown
  let hasUsage = false
  const found: [field: number, start: number, end: number][] = []
  visitMembers(text, 0, (name, nameEnd, value, valueEnd) => {
    const field = STORED_NAMES.find(text, name + 1, nameEnd - 1)
    if (field >= 0) {
      if (canBe(field, text[value])) found.push([field, value, valueEnd])
      return
    }
    const other = text.toString('latin1', name + 1, nameEnd - 1)
    const json = () => text.toString('latin1', value, valueEnd)
    if (other === 'sent_at') sentAt = Number(json()) || storedAt
    else if (other === 'sent_at_of') others = JSON.parse(json())
    else if (other === 'is_created') merged.isCreated = false
    else if (other === 'observation_type') merged.kind = kindOfBody(json().slice(1, -1)) ?? null
    else if (other.startsWith('gen_ai.usage.')) hasUsage = true
  })
  for (const [field, start, end] of found) merged.restore(field, start, end, sentAt)
  for (const [name, at] of Object.entries(isObject(others) ? others : {})) {
    const field = FIELDS.findIndex(({ stored }) => stored === name)
    if (field >= 0 && typeof at === 'number') merged.sentAt[field] = at
  }
  // That of a call which another door has reported is counted already.
  if (hasUsage && !merged.hasUsage) merged.sentAt[USAGE] = storedAt
  return merged
}
