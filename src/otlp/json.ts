import { ApiError } from '../http/errors.ts'
import { isObject } from '../http/json-object.ts'
import {
  type AnyValue,
  type Attributes,
  DecodeBudget,
  DecodeError,
  fromDouble,
  fromInteger,
  ITEM_PARTS,
  type LogRecord,
  type Resource,
  SPAN_EVENT_PARTS,
  type Span,
  type SpanEvent,
  type SpanLink,
  TOO_DEEP,
  TOO_MANY,
  VALUE_DEPTH_MAX,
} from './telemetry.ts'

/**
 * Decodes OTLP's JSON encoding: names in lowerCamelCase, ids in hex, enums as integers, 64-bit integers as strings or
 * numbers. Unknown fields are ignored. A field of the wrong type counts as absent, so that one invalid span does not fail
 * the export; only a value that is not an array where OTLP has one does.
 */

/** Objects and arrays in a body. An attribute takes two: one for itself, one for its value. */
const BRACKETS_MAX = 4_000_000

/** @throws DecodeError */
export function decodeTracesJson(body: Uint8Array): Span[] {
  const spans: Span[] = []
  readExport(body, ['resourceSpans', 'scopeSpans', 'spans'], (item, resource, scope) => {
    spans.push(readSpan(item, resource, scope))
  })
  return spans
}

/** @throws DecodeError */
export function decodeLogsJson(body: Uint8Array): LogRecord[] {
  const records: LogRecord[] = []
  readExport(body, ['resourceLogs', 'scopeLogs', 'logRecords'], (item, resource, scope) => {
    records.push(readLogRecord(item, resource, scope))
  })
  return records
}

const METRIC_DATA = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary']

/** The number of data points. @throws DecodeError */
export function countMetricPointsJson(body: Uint8Array): number {
  let points = 0
  readExport(body, ['resourceMetrics', 'scopeMetrics', 'metrics'], (metric) => {
    for (const kind of METRIC_DATA) points += listOf(objectOf(metric[kind]), 'dataPoints').length
  })
  return points
}

type Json = Record<string, unknown>

function readExport(
  body: Uint8Array,
  [byResource, byScope, items]: readonly [string, string, string],
  readItem: (item: Json, resource: Resource, scope: string) => void,
): void {
  const root = parse(body)
  const budget = new DecodeBudget()
  for (const group of listOf(root, byResource).map(objectOf)) {
    budget.take(ITEM_PARTS)
    const resource = { attributes: readAttributes(objectOf(group.resource), 0) }
    for (const scoped of listOf(group, byScope).map(objectOf)) {
      const scope = textOf(objectOf(scoped.scope).name)
      for (const item of listOf(scoped, items).map(objectOf)) {
        const nested = listOf(item, 'events').length + listOf(item, 'links').length
        budget.take(ITEM_PARTS + nested * SPAN_EVENT_PARTS)
        readItem(item, resource, scope)
      }
    }
  }
}

function parse(body: Uint8Array): Json {
  // An empty body is an empty export, as it is in protobuf.
  if (body.length === 0) return {}
  checkBrackets(body)
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new DecodeError('body: not valid JSON in UTF-8')
  }
  if (!isObject(value)) throw new DecodeError('body: expected a JSON object')
  return value
}

/** Limits objects and arrays before `JSON.parse` allocates them. @throws ApiError PAYLOAD_TOO_LARGE */
function checkBrackets(body: Uint8Array): void {
  if (body.length <= BRACKETS_MAX) return
  let brackets = 0
  for (const byte of body) if (byte === 0x7b || byte === 0x5b) brackets++
  if (brackets > BRACKETS_MAX) throw new ApiError('PAYLOAD_TOO_LARGE', `body: ${TOO_MANY}`)
}

function readSpan(item: Json, resource: Resource, scope: string): Span {
  const status = objectOf(item.status)
  return {
    resource,
    scope,
    traceId: idOf(item.traceId),
    spanId: idOf(item.spanId),
    parentSpanId: idOf(item.parentSpanId),
    name: textOf(item.name),
    kind: numberOf(item.kind),
    startNano: numberOf(item.startTimeUnixNano),
    endNano: numberOf(item.endTimeUnixNano),
    attributes: readAttributes(item, 0),
    events: listOf(item, 'events').map(objectOf).map(readSpanEvent),
    links: listOf(item, 'links').map(objectOf).map(readLink),
    statusCode: numberOf(status.code),
    statusMessage: textOf(status.message),
  }
}

function readSpanEvent(event: Json): SpanEvent {
  return {
    timeNano: numberOf(event.timeUnixNano),
    name: textOf(event.name),
    attributes: readAttributes(event, 0),
  }
}

function readLink(link: Json): SpanLink {
  return { traceId: idOf(link.traceId), spanId: idOf(link.spanId), attributes: readAttributes(link, 0) }
}

function readLogRecord(item: Json, resource: Resource, scope: string): LogRecord {
  return {
    resource,
    scope,
    timeNano: numberOf(item.timeUnixNano),
    observedNano: numberOf(item.observedTimeUnixNano),
    severityNumber: numberOf(item.severityNumber),
    severityText: textOf(item.severityText),
    eventName: textOf(item.eventName),
    body: readValue(item.body, 0),
    attributes: readAttributes(item, 0),
    traceId: idOf(item.traceId),
    spanId: idOf(item.spanId),
  }
}

function readAttributes(of: Json, depth: number): Attributes {
  return readKeyValues(listOf(of, 'attributes'), depth)
}

function readKeyValues(list: readonly unknown[], depth: number): Attributes {
  const attributes: Attributes = new Map()
  for (const item of list) {
    const { key, value } = objectOf(item)
    attributes.set(textOf(key), readValue(value, depth))
  }
  return attributes
}

function readValue(value: unknown, depth: number): AnyValue {
  if (!isObject(value)) return null
  if (depth > VALUE_DEPTH_MAX) return TOO_DEEP
  if (typeof value.stringValue === 'string') return value.stringValue
  if (typeof value.boolValue === 'boolean') return value.boolValue
  if (value.intValue !== undefined) return readInteger(value.intValue)
  if (value.doubleValue !== undefined) return readDouble(value.doubleValue)
  if (isObject(value.arrayValue)) return listOf(value.arrayValue, 'values').map((one) => readValue(one, depth + 1))
  if (isObject(value.kvlistValue)) return readKeyValues(listOf(value.kvlistValue, 'values'), depth + 1)
  if (typeof value.bytesValue === 'string') return value.bytesValue
  return null
}

function readInteger(value: unknown): AnyValue {
  if (typeof value === 'number') return fromDouble(value)
  if (typeof value !== 'string' || !/^-?\d{1,20}$/.test(value)) return null
  return value.length < 16 ? Number(value) : fromInteger(BigInt.asIntN(64, BigInt(value)))
}

function readDouble(value: unknown): AnyValue {
  if (typeof value === 'number') return fromDouble(value)
  return typeof value === 'string' && value.trim() !== '' ? fromDouble(Number(value)) : null
}

function objectOf(value: unknown): Json {
  return isObject(value) ? value : EMPTY
}

const EMPTY: Json = {}

function listOf(of: Json, name: string): readonly unknown[] {
  const list = of[name] ?? []
  if (!Array.isArray(list)) throw new DecodeError(`body: ${name}: expected an array`)
  return list
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function idOf(value: unknown): string {
  return textOf(value).toLowerCase()
}

/** A number, or a string with one; 0 for anything else. */
function numberOf(value: unknown): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : 0
}
