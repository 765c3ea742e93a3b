import { invalid, invalidAll, messageOf, PROBLEMS_MAX, type Problem } from '../../base/errors.ts'
import { jsonError, readString, SHOWN_BYTES_MAX, shownText } from '../../base/http/json-reader.ts'
import {
  afterItem,
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  JsonSyntaxError,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  type SkipText,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
} from '../../base/http/json-scan.ts'
import { isUuid } from '../../base/ids.ts'
import type { Limits } from '../../base/limits.ts'
import { CANONICAL_BYTES, parseCanonicalBytes, parseTimestamp } from '../../base/timestamp.ts'
import { putUuid } from '../../stores/clickhouse/bytes.ts'
import { LEVELS } from '../../stores/journal/levels.ts'
import { isReserved, knownNameAt, levelAt, mayBeReserved } from './event-words.ts'
import { NO_MEMORY, ScanMemory } from './scan-memory.ts'
import { RESERVED_TYPE_PREFIXES } from './schema.ts'

const EVENT_ID_LENGTH_MAX = 64
const INFO = LEVELS.indexOf('info') + 1

/**
 * Validates the body of an `events` call in one pass over its bytes (docs/events.md), and records the byte offsets of
 * each event's fields. It builds nothing that the journal does not need, because this is the hottest code of the
 * service. A scan serves one call; only its memory is used again (see {@link ScanPool}).
 */
export class EventScan {
  /** The body, then a zero byte; later bytes are undefined. */
  bytes: Uint8Array = NO_MEMORY
  text: Buffer = NO_MEMORY
  /** The body as it was received, which belongs to the call. */
  body: Uint8Array = NO_MEMORY
  /** Lower case; empty until seen. */
  runId = ''
  /** Number of valid events; the arrays below have an entry for each. */
  count = 0
  hasIds = false
  readonly rejected: Rejected[] = []

  typeStart: Int32Array = NO_MEMORY
  typeEnd: Int32Array = NO_MEMORY
  /** 1-based index in {@link LEVELS}: the value of ClickHouse's enum. */
  level: Int8Array = NO_MEMORY
  /** -1: no payload given. */
  payloadStart: Int32Array = NO_MEMORY
  payloadEnd: Int32Array = NO_MEMORY
  /** Unix milliseconds; NaN: none given. */
  occurredAt: Float64Array = NO_MEMORY
  /** -1: no id given. Includes the quotes. */
  idStart: Int32Array = NO_MEMORY
  idEnd: Int32Array = NO_MEMORY
  /** The task id of each event as four words (see `putUuid`), all zero for none; undefined until an event has one. */
  taskIds: Uint32Array | undefined
  /** Decoded types of the events whose type contains escapes. */
  readonly decodedTypes = new Map<number, Buffer>()

  private skipText: SkipText | undefined
  private seenIndex = -1
  /** The first problem of the current event. */
  private problem: Problem | undefined
  /** Those of a call that is not `partial`, one for each invalid event. */
  private readonly problems: Problem[] = []
  private partial = false
  private limits!: Limits

  constructor(private readonly memory = new ScanMemory()) {}

  /**
   * @param body valid UTF-8, as checked by `base/http/body.ts`
   * @param partial omit invalid events and list them in `rejected` instead of refusing the call
   * @throws ApiError VALIDATION_ERROR with the path of the invalid field
   */
  scan(body: Uint8Array, limits: Limits, partial: boolean): void {
    this.begin(body, limits, partial)
    try {
      this.readBody(body.length)
    } catch (error) {
      // What was wrong first is told first.
      throw this.problems.length > 0 ? invalidAll(this.problems) : jsonError(error, body)
    }
    if (this.problems.length > 0) throw invalidAll(this.problems)
    if (this.runId === '') throw invalid('run_id', 'required')
    if (this.seenIndex < 0) throw invalid('events', 'required')
    if (this.seenIndex === 0) throw invalid('events', 'expected at least one event')
  }

  /** The caller's id of event `index`; undefined when it gave none. */
  idOf(index: number): string | undefined {
    return this.idStart[index] < 0 ? undefined : readString(this.text, this.idStart[index], this.idEnd[index])
  }

  /** Whether its memory may already serve another call. */
  get isReleased(): boolean {
    return this.text === NO_MEMORY
  }

  /** Gives the memory up. Every later access to what it contained throws. */
  release(): ScanMemory {
    this.bytes = this.text = this.body = this.level = this.occurredAt = NO_MEMORY
    this.typeStart = this.typeEnd = this.payloadStart = this.payloadEnd = this.idStart = this.idEnd = NO_MEMORY
    this.taskIds = NO_MEMORY
    return this.memory
  }

  private begin(body: Uint8Array, limits: Limits, partial: boolean): void {
    const { bytes, text, skipText } = this.memory.placeFor(body.length)
    const rows = this.memory.rowsFor(limits.events_per_call)
    bytes.set(body)
    bytes[body.length] = 0
    this.bytes = bytes
    this.text = text
    this.skipText = skipText
    this.body = body
    this.typeStart = rows.typeStart
    this.typeEnd = rows.typeEnd
    this.level = rows.level
    this.payloadStart = rows.payloadStart
    this.payloadEnd = rows.payloadEnd
    this.occurredAt = rows.occurredAt
    this.idStart = rows.idStart
    this.idEnd = rows.idEnd
    this.limits = limits
    this.partial = partial
  }

  private readBody(length: number): void {
    const bytes = this.bytes
    let at = skipSpace(bytes, 0)
    if (bytes[at] !== OPEN_BRACE) {
      skipValue(bytes, at, this.limits.json_depth)
      throw invalid('body', 'expected a JSON object')
    }
    at = skipSpace(bytes, at + 1)
    while (bytes[at] !== CLOSE_BRACE) {
      if (bytes[at] !== QUOTE) throw new JsonSyntaxError(at, "a member name or '}'")
      const name = at
      const nameEnd = skipString(bytes, at)
      const end = this.readMember(readString(this.text, name, nameEnd), skipColon(bytes, nameEnd))
      at = afterItem(bytes, end, CLOSE_BRACE)
    }
    at = skipSpace(bytes, at + 1)
    if (at !== length) throw new JsonSyntaxError(at, 'the end of the body')
  }

  private readMember(name: string, at: number): number {
    if (name === 'events') return this.readEvents(at)
    const end = skipValue(this.bytes, at, this.limits.json_depth - 1)
    if (name !== 'run_id') throw invalid(name, 'unknown field; expected run_id, events')
    const value = this.bytes[at] === QUOTE ? readString(this.text, at, end) : ''
    if (!isUuid(value)) throw invalid('run_id', `expected a UUID; got ${this.shown(at, end)}`)
    this.runId = value.toLowerCase()
    return end
  }

  private readEvents(at: number): number {
    const bytes = this.bytes
    if (bytes[at] !== OPEN_BRACKET) {
      throw invalid(
        'events',
        `expected an array of events; got ${this.shown(at, skipValue(bytes, at, this.limits.json_depth - 1))}`,
      )
    }
    this.count = 0
    this.rejected.length = 0
    this.seenIndex = 0
    at = skipSpace(bytes, at + 1)
    while (bytes[at] !== CLOSE_BRACKET) {
      if (this.seenIndex === this.limits.events_per_call) {
        throw invalid(
          'events',
          `expected at most ${this.limits.events_per_call} events per call; split them into several calls`,
        )
      }
      at = afterItem(bytes, this.readEvent(at), CLOSE_BRACKET)
      this.seenIndex++
    }
    return at + 1
  }

  private readEvent(at: number): number {
    const bytes = this.bytes
    const row = this.count
    this.problem = undefined
    this.typeStart[row] = -1
    this.level[row] = INFO
    this.payloadStart[row] = -1
    this.occurredAt[row] = Number.NaN
    this.idStart[row] = -1
    this.taskIds?.fill(0, row * 4, row * 4 + 4)
    if (bytes[at] !== OPEN_BRACE) {
      at = skipValue(bytes, at, this.limits.json_depth - 2)
      this.fail('', 'expected an event object')
    } else {
      at = skipSpace(bytes, at + 1)
      while (bytes[at] !== CLOSE_BRACE) {
        if (bytes[at] !== QUOTE) throw new JsonSyntaxError(at, "a member name or '}'")
        const known = knownNameAt(bytes, at + 1)
        const nameEnd = known === undefined ? skipString(bytes, at) : at + 1 + known.word.length
        const field = known === undefined ? this.unusualName(at, nameEnd) : known.field
        at = afterItem(bytes, this.readField(row, field, at, skipColon(bytes, nameEnd)), CLOSE_BRACE)
      }
      at++
      if (this.typeStart[row] < 0) this.fail('.type', 'required')
    }
    if (this.problem === undefined) this.count++
    else if (this.partial) this.rejected.push({ index: this.seenIndex, message: messageOf(this.problem) })
    else if (this.problems.push(this.problem) === PROBLEMS_MAX) throw invalidAll(this.problems)
    return at
  }

  /** @param name where the field's name begins, for the error if it is unknown */
  private readField(row: number, field: string, name: number, at: number): number {
    const bytes = this.bytes
    const end = skipValue(bytes, at, this.limits.json_depth - 3, this.skipText)
    switch (field) {
      case 'type':
        this.readType(row, at, end)
        break
      case 'payload':
        if (bytes[at] !== OPEN_BRACE) this.fail('.payload', `expected a JSON object; got ${this.shown(at, end)}`)
        else if (end - at > this.limits.event_payload_bytes) {
          this.fail('.payload', `expected at most ${this.limits.event_payload_bytes} bytes; got ${end - at}`)
        }
        this.payloadStart[row] = at
        this.payloadEnd[row] = end
        break
      case 'level': {
        const level = levelAt(bytes, at, end) || this.escapedLevel(at, end)
        if (level === 0) this.fail('.level', `expected one of ${LEVELS.join(', ')}; got ${this.shown(at, end)}`)
        this.level[row] = level
        break
      }
      case 'occurred_at':
        this.readTime(row, at, end)
        break
      case 'id':
        this.readId(row, at, end)
        break
      case 'task_id':
        this.readTaskId(row, at, end)
        break
      default:
        if (this.problem === undefined) this.failUnknown(name, skipString(bytes, name))
    }
    return end
  }

  /** A name that is written with escapes, or unknown; after the first problem, unknown ones are not even read. */
  private unusualName(start: number, end: number): string {
    return this.problem === undefined || this.hasEscape(start, end) ? readString(this.text, start, end) : ''
  }

  /** A level written with escapes, which is rare but valid JSON. */
  private escapedLevel(at: number, end: number): number {
    return this.bytes[at] === QUOTE ? (LEVELS as readonly string[]).indexOf(readString(this.text, at, end)) + 1 : 0
  }

  private readType(row: number, at: number, end: number): void {
    this.typeStart[row] = at + 1
    this.typeEnd[row] = end - 1
    if (this.bytes[at] !== QUOTE || end - at === 2) {
      this.fail('.type', `expected a non-empty string; got ${this.shown(at, end)}`)
      return
    }
    const escaped = this.hasEscape(at, end)
    if (escaped || end - at - 2 > this.limits.type_length) {
      const type = readString(this.text, at, end)
      if (type.length > this.limits.type_length) {
        this.fail('.type', `expected at most ${this.limits.type_length} characters; got ${type.length}`)
      } else if (type.includes('\0') || !type.isWellFormed()) {
        this.fail('.type', 'expected text without NUL and lone surrogates')
      }
      if (isReserved(type)) this.failReserved(at, end)
      if (escaped) {
        this.decodedTypes.set(row, Buffer.from(type))
        return
      }
    } else if (mayBeReserved(this.bytes, at + 1)) {
      const type = readString(this.text, at, end)
      if (isReserved(type)) this.failReserved(at, end)
    }
    // An event that was rejected, or an earlier member of the same name, may have left one for this row.
    if (this.decodedTypes.size > 0) this.decodedTypes.delete(row)
  }

  private hasEscape(at: number, end: number): boolean {
    for (; at < end; at++) if (this.bytes[at] === BACKSLASH) return true
    return false
  }

  private readTime(row: number, at: number, end: number): void {
    let time: number | null = end - at === CANONICAL_BYTES + 2 ? parseCanonicalBytes(this.bytes, at + 1) : null
    if (time === null && this.bytes[at] === QUOTE) time = parseTimestamp(readString(this.text, at, end))
    if (time === null) {
      this.fail(
        '.occurred_at',
        `expected an RFC 3339 timestamp such as 2026-01-31T09:30:00.123Z; got ${this.shown(at, end)}`,
      )
    } else this.occurredAt[row] = time
  }

  private readId(row: number, at: number, end: number): void {
    const id = this.bytes[at] === QUOTE ? readString(this.text, at, end) : ''
    if (id.length < 1 || id.length > EVENT_ID_LENGTH_MAX || id.includes('\0') || !id.isWellFormed()) {
      this.fail('.id', `expected a string of 1 to ${EVENT_ID_LENGTH_MAX} characters; got ${this.shown(at, end)}`)
    }
    this.hasIds = true
    this.idStart[row] = at
    this.idEnd[row] = end
  }

  private readTaskId(row: number, at: number, end: number): void {
    const id = this.bytes[at] === QUOTE ? readString(this.text, at, end) : ''
    if (!isUuid(id)) {
      this.fail('.task_id', `expected a UUID; got ${this.shown(at, end)}`)
      return
    }
    if (this.taskIds === undefined) {
      this.taskIds = this.memory.rowsFor(this.limits.events_per_call).taskIds
      this.taskIds.fill(0, 0, row * 4)
    }
    putUuid(id, this.taskIds, row * 4)
  }

  private failUnknown(start: number, end: number): void {
    const name = readString(this.text, start, end)
    const shown = name.length > SHOWN_BYTES_MAX ? `${name.slice(0, SHOWN_BYTES_MAX).toWellFormed()}…` : name
    this.fail(`.${shown}`, 'unknown field; expected id, task_id, type, level, payload, occurred_at')
  }

  private failReserved(at: number, end: number): void {
    this.fail(
      '.type',
      `types that start with ${RESERVED_TYPE_PREFIXES.join(', ')} are reserved for system events; got ${this.shown(at, end)}`,
    )
  }

  /** Records the first problem of the current event. */
  private fail(field: string, message: string): void {
    this.problem ??= { param: `events[${this.seenIndex}]${field}`, message }
  }

  /** The text at these offsets, truncated for a message. */
  private shown(at: number, end: number): string {
    return shownText(this.text, at, end)
  }
}

/** What a `partial` call did not store: its index in the request and the problem. */
export interface Rejected {
  readonly index: number
  readonly message: string
}
