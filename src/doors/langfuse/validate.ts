import { notANumber } from '../../base/conventions/langfuse-usage.ts'
import { readString } from '../../base/http/json-reader.ts'
import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../base/http/json-scan.ts'
import { shown } from '../../base/http/validation-message.ts'
import type { BatchScan } from './batch-scan.ts'
import { EVENT_TYPE_NAMES, type EventType, eventTypeOf, type Kind, kindOfBody } from './event-types.ts'
import { BODY_TYPE, FIELD_COUNT, FIELDS, ID, TRACE_ID } from './fields.ts'
import { traceIdOf } from './ids.ts'
import { timeIn } from './json-objects.ts'

/** An event of a batch that can be stored. */
interface IngestionEvent {
  /** Its place in the batch. */
  readonly index: number
  /** Unix milliseconds; a time far in the future counts as that of its arrival. */
  readonly sentAt: number
  readonly isInFuture: boolean
}

interface TraceEvent extends IngestionEvent {
  readonly of: 'trace'
  readonly traceId: string
}

export interface ObservationEvent extends IngestionEvent {
  readonly of: 'observation'
  readonly traceId: string
  readonly observationId: string
  /** Null if neither the type nor the body says it. */
  readonly kind: Kind | null
  readonly isCreate: boolean
}

export interface ScoreEvent extends IngestionEvent {
  readonly of: 'score'
}

interface LogEvent extends IngestionEvent {
  readonly of: 'log'
}

/** An event that belongs to a trace. */
export type TraceItem = TraceEvent | ObservationEvent

type ValidEvent = TraceEvent | ObservationEvent | ScoreEvent | LogEvent

interface ValidationOptions {
  readonly idLengthMax: number
  /** Unix milliseconds. */
  readonly now: number
}

const SHOWN_BYTES = 80
/** How far the clock of a client may be ahead, so that of its own timestamps the later one counts. */
const AHEAD_MAX_MS = 5 * 60_000
const LEVELS = new Set(['DEBUG', 'DEFAULT', 'WARNING', 'ERROR'])

/** The id of an event, for its result; empty if it has none. */
export function eventIdOf(scan: BatchScan, event: number): string {
  return stringAt(scan, scan.id(event)) ?? ''
}

/** Checks an event. Returns what is wrong with it, naming the member, if anything is. */
export function validate(scan: BatchScan, index: number, options: ValidationOptions): ValidEvent | string {
  const { now } = options
  const id = stringAt(scan, scan.id(index))
  if (id === undefined || id === '') return `id: expected a non-empty string${got(scan, scan.id(index))}`
  const typeName = stringAt(scan, scan.type(index))
  const type = typeName === undefined ? undefined : eventTypeOf(typeName)
  if (type === undefined) return `type: expected one of ${EVENT_TYPE_NAMES}${got(scan, scan.type(index))}`
  const time = timeAt(scan, scan.time(index))
  if (time === null) return `timestamp: expected an ISO 8601 date-time${got(scan, scan.time(index))}`
  const body = scan.body(index)
  if (scan.text[scan.start(body)] !== OPEN_BRACE || scan.start(body) === 0)
    return `body: expected an object${got(scan, body)}`
  const isInFuture = time > now + AHEAD_MAX_MS
  const event = { index, sentAt: Math.max(1, isInFuture ? now : time), isInFuture }
  if (type.of === 'log' || type.of === 'score') return { of: type.of, ...event }
  return problemOfFields(scan, index) ?? identify(scan, { event, type, id }, options)
}

function identify(
  scan: BatchScan,
  { event, type, id }: { event: IngestionEvent; type: EventType; id: string },
  { idLengthMax }: ValidationOptions,
): ValidEvent | string {
  const at = (member: number) => scan.member(event.index, member)
  for (const [member, name] of [
    [ID, 'id'],
    [TRACE_ID, 'traceId'],
  ] as const) {
    if (scan.start(at(member)) === 0) continue
    const problem = problemOfId(stringAt(scan, at(member)), idLengthMax)
    if (problem !== null) return `body.${name}: ${problem}${got(scan, at(member))}`
  }
  const bodyId = stringAt(scan, at(ID))
  if (type.of === 'trace') {
    // As the SDKs expect: a trace without an id is new. Derived, so that a repeat is the same one.
    return { of: 'trace', ...event, traceId: traceIdOf(bodyId ?? id) }
  }
  if (type.of !== 'observation') return 'type: not supported'
  const traceId = stringAt(scan, at(TRACE_ID))
  if (traceId === undefined) return 'body.traceId: required'
  if (bodyId === undefined && !type.isCreate) return 'body.id: required'
  const named = stringAt(scan, at(BODY_TYPE))
  const kind = type.kind ?? (named === undefined ? null : kindOfBody(named))
  if (kind === undefined || (kind === null && type.isCreate)) {
    return `body.type: expected a type of observation, such as SPAN or GENERATION${got(scan, at(BODY_TYPE))}`
  }
  const { isCreate } = type
  return { of: 'observation', ...event, traceId: traceIdOf(traceId), observationId: bodyId ?? id, kind, isCreate }
}

function problemOfId(id: string | undefined, lengthMax: number): string | null {
  return id === undefined || id === '' || id.length > lengthMax || id.includes('\0') || !id.isWellFormed()
    ? `expected a string of 1 to ${lengthMax} characters without NUL and lone surrogates`
    : null
}

function problemOfFields(scan: BatchScan, index: number): string | null {
  for (let field = 0; field < FIELD_COUNT; field++) {
    const place = scan.member(index, field)
    const start = scan.start(place)
    if (start === 0) continue
    const { name, kind } = FIELDS[field]
    const first = scan.text[start]
    let expected: string | null = null
    if (kind === 'text' && first !== QUOTE) expected = 'a string'
    else if (kind === 'object' && first !== OPEN_BRACE) expected = 'an object'
    else if (kind === 'list' && first !== OPEN_BRACKET) expected = 'an array of strings'
    else if (kind === 'time' && timeAt(scan, place) === null) expected = 'an ISO 8601 date-time'
    else if (kind === 'level' && !LEVELS.has(stringAt(scan, place) ?? '')) expected = `one of ${[...LEVELS].join(', ')}`
    else if (kind === 'number' && (first === QUOTE || Number.isNaN(Number(rawAt(scan, place))))) expected = 'a number'
    else if (kind === 'boolean' && first !== 0x74 && first !== 0x66) expected = 'true or false'
    if (expected !== null) return `body.${name}: expected ${expected}${got(scan, place)}`
    if (name === 'usage' || name === 'usageDetails' || name === 'costDetails') {
      const member = notANumber(name, scan.text.toString('utf8', start, scan.end(place)))
      if (member !== undefined) return `body.${name}: expected a number as ${shown(member)}${got(scan, place)}`
    }
  }
  return null
}

function rawAt(scan: BatchScan, place: number): string {
  return scan.text.toString('latin1', scan.start(place), Math.min(scan.end(place), scan.start(place) + SHOWN_BYTES))
}

/** The string at a place; undefined for anything else. */
function stringAt(scan: BatchScan, place: number): string | undefined {
  const start = scan.start(place)
  return start !== 0 && scan.text[start] === QUOTE ? readString(scan.text, start, scan.end(place)) : undefined
}

function timeAt(scan: BatchScan, place: number): number | null {
  const value = scan.range(place)
  return value && timeIn(value)
}

function got(scan: BatchScan, place: number): string {
  const start = scan.start(place)
  if (start === 0) return ''
  const end = scan.end(place)
  const shown = scan.text.toString('utf8', start, Math.min(end, start + SHOWN_BYTES)).replace(/\ufffd+$/, '')
  return `; got ${shown}${end - start > SHOWN_BYTES ? '…' : ''}`
}
