import type { Steps } from '../../base/http/shared-slice.ts'
import { isObject } from '../../base/json-object.ts'
import type { OpenedExport } from '../traces/telemetry.ts'
import {
  type AnyValue,
  type Attributes,
  DecodeBudget,
  DecodeError,
  type DecodeLimits,
  fromDouble,
  fromInteger,
  type LogRecord,
  type Range,
  type Resource,
  type Span,
  type SpanEvent,
  type SpanLink,
  TOO_DEEP,
  VALUE_DEPTH_MAX,
} from '../traces/telemetry.ts'
import { JsonOutlineReader, type JsonRange, type OutlineNames } from './json-outline.ts'
import { type ItemDecoder, opened } from './outline.ts'

/**
 * Decodes OTLP's JSON encoding: names in lowerCamelCase, ids in hex, enums as integers, 64-bit integers as strings or
 * numbers. Unknown fields are ignored. A field of the wrong type counts as absent, so that one invalid span does not fail
 * the export; only a value that is not an array where OTLP has one does.
 */

/** @throws DecodeError, ApiError PAYLOAD_TOO_LARGE; so does decoding the export */
export function* openTracesJson(body: Uint8Array, limits: DecodeLimits): Steps<OpenedExport<Span>> {
  const names = { groups: 'resourceSpans', scopes: 'scopeSpans', items: 'spans', nested: 'events' }
  return yield* open(body, { limits, names, readItem: readSpan })
}

/** As {@link openTracesJson}. */
export function* openLogsJson(body: Uint8Array, limits: DecodeLimits): Steps<OpenedExport<LogRecord>> {
  const names = { groups: 'resourceLogs', scopes: 'scopeLogs', items: 'logRecords' }
  return yield* open(body, { limits, names, readItem: readLogRecord })
}

const METRIC_DATA = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary']

/** Metrics: the number of data points of each. Otherwise as {@link openTracesJson}. */
export function* openMetricsJson(body: Uint8Array, limits: DecodeLimits): Steps<OpenedExport<number>> {
  const names = { groups: 'resourceMetrics', scopes: 'scopeMetrics', items: 'metrics' }
  return yield* open(body, { limits, names, readItem: pointsOf })
}

function* pointsOf(metric: Json): Steps<number> {
  return METRIC_DATA.reduce((points, kind) => points + listOf(objectOf(metric[kind]), 'dataPoints').length, 0)
}

type Json = Record<string, unknown>

interface Signal<Item> {
  readonly limits: DecodeLimits
  readonly names: OutlineNames
  readonly readItem: (item: Json, context: ItemContext) => Steps<Item>
}

interface ItemContext {
  readonly resource: Resource
  readonly scope: string
  readonly budget: DecodeBudget
}

function* open<Item>(body: Uint8Array, { limits, names, readItem }: Signal<Item>): Steps<OpenedExport<Item>> {
  const budget = new DecodeBudget(limits)
  const outline = yield* new JsonOutlineReader(body, names, limits, budget).read()
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const decoder: ItemDecoder<Item> = {
    budget,
    resource(range, into) {
      for (const item of listOf(parseObject(text, range), 'attributes')) readKeyValue(item, { into, depth: 0, budget })
    },
    scopeName: (range) => textOf(parseObject(text, range).name),
    item: (range, resource, scope) => readItem(parseObject(text, range), { resource, scope, budget }),
  }
  return opened(outline, body.length, decoder, limits)
}

/** The object at this place; an empty one for any other value. @throws DecodeError */
export function parseObject(body: Buffer, { start, end, cuts = [] }: Range & Partial<JsonRange>): Json {
  let text = ''
  let from = start
  for (const cut of cuts) {
    text += body.toString('utf8', from, cut.start)
    from = cut.end
  }
  text += body.toString('utf8', from, end)
  try {
    return objectOf(JSON.parse(text))
  } catch {
    throw new DecodeError(`body: not valid JSON in the value at byte ${start}`)
  }
}

function* readSpan(item: Json, { resource, scope, budget }: ItemContext): Steps<Span> {
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
    attributes: yield* readAttributes(item, budget),
    events: yield* readEach(listOf(item, 'events'), readSpanEvent, budget),
    links: yield* readEach(listOf(item, 'links'), readLink, budget),
    statusCode: numberOf(status.code),
    statusMessage: textOf(status.message),
  }
}

function* readEach<T>(
  list: readonly unknown[],
  read: (item: Json, budget: DecodeBudget) => T,
  budget: DecodeBudget,
): Steps<T[]> {
  const items: T[] = []
  for (const item of list) {
    if (budget.isStepOver()) yield
    items.push(read(objectOf(item), budget))
  }
  return items
}

function readSpanEvent(event: Json, budget: DecodeBudget): SpanEvent {
  budget.takeNested()
  return {
    timeNano: numberOf(event.timeUnixNano),
    name: textOf(event.name),
    attributes: readKeyValues(listOf(event, 'attributes'), 0, budget),
  }
}

function readLink(link: Json, budget: DecodeBudget): SpanLink {
  budget.takeNested()
  return {
    traceId: idOf(link.traceId),
    spanId: idOf(link.spanId),
    attributes: readKeyValues(listOf(link, 'attributes'), 0, budget),
  }
}

function* readLogRecord(item: Json, { resource, scope, budget }: ItemContext): Steps<LogRecord> {
  return {
    resource,
    scope,
    timeNano: numberOf(item.timeUnixNano),
    observedNano: numberOf(item.observedTimeUnixNano),
    severityNumber: numberOf(item.severityNumber),
    severityText: textOf(item.severityText),
    eventName: textOf(item.eventName),
    body: readValue(item.body, 0, budget),
    attributes: yield* readAttributes(item, budget),
    traceId: idOf(item.traceId),
    spanId: idOf(item.spanId),
  }
}

function* readAttributes(of: Json, budget: DecodeBudget): Steps<Attributes> {
  const attributes: Attributes = new Map()
  for (const item of listOf(of, 'attributes')) {
    if (budget.isStepOver()) yield
    readKeyValue(item, { into: attributes, depth: 0, budget })
  }
  return attributes
}

function readKeyValues(list: readonly unknown[], depth: number, budget: DecodeBudget): Attributes {
  const into: Attributes = new Map()
  for (const item of list) readKeyValue(item, { into, depth, budget })
  return into
}

function readKeyValue(
  item: unknown,
  { into, depth, budget }: { into: Attributes; depth: number; budget: DecodeBudget },
) {
  budget.take(1)
  const { key, value } = objectOf(item)
  const name = textOf(key)
  budget.takeName(name.length)
  into.set(name, readValue(value, depth, budget))
}

function readValue(value: unknown, depth: number, budget: DecodeBudget): AnyValue {
  budget.take(1)
  if (!isObject(value)) return null
  if (depth > VALUE_DEPTH_MAX) return TOO_DEEP
  if (typeof value.stringValue === 'string') return value.stringValue
  if (typeof value.boolValue === 'boolean') return value.boolValue
  if (value.intValue !== undefined) return readInteger(value.intValue)
  if (value.doubleValue !== undefined) return readDouble(value.doubleValue)
  if (isObject(value.arrayValue)) {
    return listOf(value.arrayValue, 'values').map((one) => readValue(one, depth + 1, budget))
  }
  if (isObject(value.kvlistValue)) return readKeyValues(listOf(value.kvlistValue, 'values'), depth + 1, budget)
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
