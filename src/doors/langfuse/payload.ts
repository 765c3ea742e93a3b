import { CLOSE_BRACE, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../base/http/json-scan.ts'
import { isObject } from '../../base/json-object.ts'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import type { Range } from '../traces/telemetry.ts'
import { startOf } from './content.ts'
import { kindOfBody } from './event-types.ts'
import { FIELD_COUNT, FIELDS, INPUT, OUTPUT, STORED_MEMBERS, STORED_NAMES, USAGE } from './fields.ts'
import { visitMembers } from './json-objects.ts'
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
 * Writes the payload of an event: the values of a state as they were sent, and `merged_at`, which says when each was sent:
 * for each time the fields, as a number with a bit for each. So {@link restore} can read the state again. Values that do not
 * fit are cut, and `truncated` names them.
 */
export function writePayload(out: Bytes, merged: Merged, { bytesMax, hasContent, head }: PayloadOptions): Range {
  const start = out.length
  out.byte(OPEN_BRACE)
  out.text(head)
  const limit = start + bytesMax - RESERVED_BYTES
  const truncated: number[] = []
  for (let field = 0; field < FIELD_COUNT; field++) {
    if (!merged.has(field) || (!hasContent && (field === INPUT || field === OUTPUT))) continue
    const name = STORED_MEMBERS[field]
    const text = merged.textOf(field)
    const from = merged.start(field)
    const end = merged.end(field)
    const room = limit - out.length - name.length
    if (end - from > room) {
      truncated.push(field)
      if (room < CUT_BYTES) continue
    }
    out.copy(name, 0, name.length)
    if (end - from > room) out.text(startOf({ text, start: from, end }, CUT_BYTES))
    else out.copy(text, from, end)
  }
  if (truncated.length > 0) {
    const names = truncated.map((field) =>
      STORED_MEMBERS[field].toString('latin1', 1, STORED_MEMBERS[field].length - 1),
    )
    out.text(`,"truncated":[${names.join(',')}]`)
  }
  writeTimes(out, merged)
  out.byte(CLOSE_BRACE)
  return { start, end: out.length }
}

function writeTimes(out: Bytes, { sentAt, isCreated }: Merged): void {
  out.text(isCreated ? ',"merged_at":{' : ',"is_created":false,"merged_at":{')
  let done = 0
  for (let field = 0; field < FIELD_COUNT; field++) {
    const at = sentAt[field]
    if (at === 0 || (done & (1 << field)) !== 0) continue
    let fields = 0
    for (let other = field; other < FIELD_COUNT; other++) if (sentAt[other] === at) fields |= 1 << other
    out.text(`${done === 0 ? '' : ','}"${at}":${fields}`)
    done |= fields
  }
  out.byte(CLOSE_BRACE)
}

/** Anybody may have written the payload: a value of another type would not be read. */
function canBe(field: number, first: number): boolean {
  const { kind } = FIELDS[field]
  if (kind === 'text' || kind === 'time' || kind === 'level') return first === QUOTE
  return kind === 'object' ? first === OPEN_BRACE : kind === 'list' ? first === OPEN_BRACKET : true
}

/**
 * The state that a payload was written from, without input and output.
 * @param sentAt for a payload without `merged_at`, which another door has written
 */
export function restore(payload: string, sentAt: number): Merged {
  const text = Buffer.from(`${payload}\0`)
  const merged = new Merged(text)
  merged.isCreated = true
  let times: string | undefined
  let hasUsage = false
  const found: [field: number, start: number, end: number][] = []
  visitMembers(text, 0, (name, nameEnd, value, valueEnd) => {
    const field = STORED_NAMES.find(text, name + 1, nameEnd - 1)
    if (field >= 0) {
      if (canBe(field, text[value])) found.push([field, value, valueEnd])
    } else {
      const other = text.toString('latin1', name + 1, nameEnd - 1)
      if (other === 'merged_at') times = text.toString('latin1', value, valueEnd)
      else if (other === 'is_created') merged.isCreated = false
      else if (other === 'observation_type')
        merged.kind = kindOfBody(text.toString('latin1', value + 1, valueEnd - 1)) ?? null
      else if (other.startsWith('gen_ai.usage.')) hasUsage = true
    }
  })
  if (times === undefined) {
    for (const [field, start, end] of found) merged.restore(field, start, end, sentAt)
    // That of a call which another door has reported is counted already.
    if (hasUsage) merged.sentAt[USAGE] = sentAt
  } else {
    const sent: unknown = JSON.parse(times)
    for (const [at, fields] of Object.entries(isObject(sent) ? sent : {})) {
      if (typeof fields !== 'number') continue
      for (let field = 0; field < FIELD_COUNT; field++) {
        if ((fields & (1 << field)) === 0) continue
        merged.sentAt[field] = Number(at)
        const [, start, end] = found.find(([each]) => each === field) ?? [field, 0, 0]
        merged.restore(field, start, end, Number(at))
      }
    }
  }
  return merged
}
