import { isUtf8 } from 'node:buffer'
import { invalid } from '../../../base/errors.ts'
import { isObject } from '../../../base/json-object.ts'
import { Bytes } from '../../../stores/clickhouse/bytes.ts'
import { VALUE_DEPTH_MAX } from '../telemetry.ts'

/**
 * Turns OTLP's JSON encoding into protobuf, so that one decoder reads both: names in lowerCamelCase, ids in hex, enums as
 * integers, 64-bit integers as strings or numbers. Unknown fields are left out. A field of the wrong type counts as absent,
 * so that one invalid span does not fail the export; only a value that is not an array where OTLP has one does.
 */

/** What a body has: an export of a signal, or a list `data` of any values. */
export type JsonShape = 'traces' | 'logs' | 'metrics' | 'values'

/**
 * The body in protobuf. The values of a list are spans of one scope, each as an `AnyValue`. Takes one step, so it is for
 * short bodies, and for threads.
 * @throws ApiError VALIDATION_ERROR
 */
export function toProtobuf(body: Uint8Array, shape: JsonShape): Uint8Array {
  // JSON is longer, apart from what has no content.
  const out = new Bytes(body.length + 64)
  // An empty body is an empty export, as it is in protobuf.
  if (body.length > 0) SHAPES[shape](out, parse(body))
  return out.view()
}

function parse(body: Uint8Array): Json {
  if (!isUtf8(body)) throw invalid('body', 'not valid JSON in UTF-8')
  let parsed: unknown
  try {
    parsed = JSON.parse(
      Buffer.from(body.buffer, body.byteOffset, body.length)
        .toString()
        .replace(/^\ufeff/, ''),
    )
  } catch (error) {
    const problem = error instanceof SyntaxError ? error.message.replace(/^JSON Parse error: /, '') : 'too large'
    throw invalid('body', `not valid JSON: ${problem.slice(0, PROBLEM_LENGTH_MAX)}`)
  }
  if (!isObject(parsed)) throw invalid('body', 'expected a JSON object')
  return parsed
}

const PROBLEM_LENGTH_MAX = 200

type Json = Record<string, unknown>

/** Writes a value as a field of this number. */
type Write = (out: Bytes, field: number, value: unknown) => void

/** The fields of a message. */
type Fields = readonly (readonly [name: string, field: number, write: Write])[]

const [VARINT, FIXED64, DELIMITED] = [0, 1, 2]

const text: Write = (out, field, value) => {
  if (typeof value !== 'string' || value === '') return
  tag(out, field, DELIMITED)
  out.string(value)
}

/** Bytes, as hex. Those of the wrong form become one byte, which no id has. */
const id: Write = (out, field, value) => {
  if (typeof value !== 'string' || value === '') return
  const bytes = Buffer.from(value, 'hex')
  const isHex = bytes.length * 2 === value.length
  tag(out, field, DELIMITED)
  out.slice(isHex ? bytes : NO_ID, 0, isHex ? bytes.length : 1)
}

const NO_ID = Buffer.alloc(1)

const enumeration: Write = (out, field, value) => {
  const number = numberOf(value)
  if (number <= 0 || number >= TWO_TO_32) return
  tag(out, field, VARINT)
  out.varint(Math.floor(number))
}

const TWO_TO_32 = 2 ** 32
const TWO_TO_64 = 2 ** 64

/** Unix nanoseconds. */
const time: Write = (out, field, value) => {
  const number = Math.max(0, Math.floor(numberOf(value)))
  if (number === 0) return
  tag(out, field, FIXED64)
  const isTooLarge = number >= TWO_TO_64
  out.reserve(8)
  out.buffer.writeUInt32LE(isTooLarge ? TWO_TO_32 - 1 : number % TWO_TO_32, out.length)
  out.buffer.writeUInt32LE(isTooLarge ? TWO_TO_32 - 1 : Math.floor(number / TWO_TO_32), out.length + 4)
  out.length += 8
}

/** A message of the wrong type is one without fields. */
function message(fields: Fields): Write {
  return (out, field, value) => {
    const end = begin(out, field)
    if (isObject(value)) {
      for (const [name, number, write] of fields) {
        const member = value[name]
        if (member !== undefined && member !== null) write(out, number, member)
      }
    }
    end()
  }
}

function list(name: string, write: Write): Write {
  return (out, field, value) => {
    for (const item of listOf(value, name)) write(out, field, item)
  }
}

function listOf(value: unknown, name: string): readonly unknown[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw invalid('body', `${name}: expected an array`)
  return value
}

const keyValue: Write = (out, field, value) => writeKeyValue(out, field, value, 0)
const anyValue: Write = (out, field, value) => writeValue(out, field, value, 0)

const ATTRIBUTES = list('attributes', keyValue)
const RESOURCE = message([['attributes', 1, ATTRIBUTES]])
const SCOPE = message([['name', 1, text]])
const SPAN = message([
  ['traceId', 1, id],
  ['spanId', 2, id],
  ['parentSpanId', 4, id],
  ['name', 5, text],
  ['kind', 6, enumeration],
  ['startTimeUnixNano', 7, time],
  ['endTimeUnixNano', 8, time],
  ['attributes', 9, ATTRIBUTES],
  [
    'events',
    11,
    list(
      'events',
      message([
        ['timeUnixNano', 1, time],
        ['name', 2, text],
        ['attributes', 3, ATTRIBUTES],
      ]),
    ),
  ],
  [
    'links',
    13,
    list(
      'links',
      message([
        ['traceId', 1, id],
        ['spanId', 2, id],
        ['attributes', 4, ATTRIBUTES],
      ]),
    ),
  ],
  [
    'status',
    15,
    message([
      ['message', 2, text],
      ['code', 3, enumeration],
    ]),
  ],
])
const LOG_RECORD = message([
  ['timeUnixNano', 1, time],
  ['severityNumber', 2, enumeration],
  ['severityText', 3, text],
  ['body', 5, anyValue],
  ['attributes', 6, ATTRIBUTES],
  ['traceId', 9, id],
  ['spanId', 10, id],
  ['observedTimeUnixNano', 11, time],
  ['eventName', 12, text],
])
const POINTS = message([['dataPoints', 1, list('dataPoints', message([]))]])
const METRIC = message([
  ['gauge', 5, POINTS],
  ['sum', 7, POINTS],
  ['histogram', 9, POINTS],
  ['exponentialHistogram', 10, POINTS],
  ['summary', 11, POINTS],
])

function signal(groups: string, scopes: string, items: string, item: Write): (out: Bytes, body: Json) => void {
  const scope = message([
    ['scope', 1, SCOPE],
    [items, 2, list(items, item)],
  ])
  const group = list(
    groups,
    message([
      ['resource', 1, RESOURCE],
      [scopes, 2, list(scopes, scope)],
    ]),
  )
  return (out, body) => group(out, 1, body[groups])
}

const SHAPES: Record<JsonShape, (out: Bytes, body: Json) => void> = {
  traces: signal('resourceSpans', 'scopeSpans', 'spans', SPAN),
  logs: signal('resourceLogs', 'scopeLogs', 'logRecords', LOG_RECORD),
  metrics: signal('resourceMetrics', 'scopeMetrics', 'metrics', METRIC),
  values(out, { data }) {
    if (!Array.isArray(data)) throw invalid('data', 'expected an array')
    const endGroup = begin(out, 1)
    const endScope = begin(out, 2)
    for (const value of data) writePlain(out, 2, value, 0)
    endScope()
    endGroup()
  },
}

function writeKeyValue(out: Bytes, field: number, item: unknown, depth: number): void {
  const { key, value } = isObject(item) ? item : EMPTY
  const end = begin(out, field)
  text(out, 1, key)
  writeValue(out, 2, value, depth)
  end()
}

const EMPTY: Json = {}

/** An `AnyValue`. The decoder replaces what is nested deeper than it allows, whatever it is. */
function writeValue(out: Bytes, field: number, value: unknown, depth: number): void {
  const end = begin(out, field)
  if (isObject(value) && depth <= VALUE_DEPTH_MAX) writeKind(out, value, depth)
  end()
}

function writeKind(out: Bytes, value: Json, depth: number): void {
  if (typeof value.stringValue === 'string') writeString(out, value.stringValue)
  else if (typeof value.boolValue === 'boolean') writeBoolean(out, value.boolValue)
  else if (value.intValue !== undefined) writeInteger(out, value.intValue)
  else if (value.doubleValue !== undefined) writeDouble(out, value.doubleValue)
  else if (isObject(value.arrayValue)) {
    const end = begin(out, 5)
    for (const item of listOf(value.arrayValue.values, 'values')) writeValue(out, 1, item, depth + 1)
    end()
  } else if (isObject(value.kvlistValue)) {
    const end = begin(out, 6)
    for (const item of listOf(value.kvlistValue.values, 'values')) writeKeyValue(out, 1, item, depth + 1)
    end()
  } else if (typeof value.bytesValue === 'string') {
    const bytes = Buffer.from(value.bytesValue, 'base64')
    tag(out, 7, DELIMITED)
    out.slice(bytes, 0, bytes.length)
  }
}

/** A value of JSON as an `AnyValue`. */
function writePlain(out: Bytes, field: number, value: unknown, depth: number): void {
  const end = begin(out, field)
  if (depth > VALUE_DEPTH_MAX) {
    // The decoder replaces it.
  } else if (typeof value === 'string') writeString(out, value)
  else if (typeof value === 'boolean') writeBoolean(out, value)
  else if (typeof value === 'number') writeDouble(out, value)
  else if (Array.isArray(value)) {
    const endList = begin(out, 5)
    for (const item of value) writePlain(out, 1, item, depth + 1)
    endList()
  } else if (isObject(value)) {
    const endMap = begin(out, 6)
    for (const [name, member] of Object.entries(value)) {
      const endMember = begin(out, 1)
      text(out, 1, name)
      writePlain(out, 2, member, depth + 1)
      endMember()
    }
    endMap()
  }
  end()
}

/** Unlike a field, also if it is empty. */
function writeString(out: Bytes, value: string): void {
  tag(out, 1, DELIMITED)
  out.string(value)
}

function writeBoolean(out: Bytes, value: boolean): void {
  tag(out, 2, VARINT)
  out.byte(value ? 1 : 0)
}

function writeInteger(out: Bytes, value: unknown): void {
  const isExact = typeof value === 'number' && Number.isSafeInteger(value)
  if (!isExact && (typeof value !== 'string' || !/^-?\d{1,20}$/.test(value))) {
    if (typeof value === 'number') writeDouble(out, value)
    return
  }
  tag(out, 3, VARINT)
  const number = Number(value)
  if (number >= 0 && Number.isSafeInteger(number)) out.varint(number)
  else {
    let left = BigInt.asUintN(64, BigInt(value))
    for (; left > 0x7fn; left >>= 7n) out.byte(Number(left & 0x7fn) | 0x80)
    out.byte(Number(left))
  }
}

function writeDouble(out: Bytes, value: unknown): void {
  const isNumber = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '')
  if (!isNumber) return
  tag(out, 4, FIXED64)
  out.reserve(8)
  out.length = out.buffer.writeDoubleLE(Number(value), out.length)
}

/** A number, or a string with one; 0 for anything else. */
function numberOf(value: unknown): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : 0
}

function tag(out: Bytes, field: number, wireType: number): void {
  out.byte((field << 3) | wireType)
}

/** Begins a field with a message in it, whose length is known when the returned function ends it. */
function begin(out: Bytes, field: number): () => void {
  tag(out, field, DELIMITED)
  out.byte(0)
  const start = out.length
  return () => {
    const { length } = out
    if (length - start < 0x80) {
      out.buffer[start - 1] = length - start
      return
    }
    let bytes = 1
    for (let left = length - start; left >= 0x80; left = Math.floor(left / 0x80)) bytes++
    out.reserve(bytes)
    out.buffer.copyWithin(start + bytes - 1, start, length)
    out.length = start - 1
    out.varint(length - start)
    out.length = length + bytes - 1
  }
}
