import { ProtobufReader } from './protobuf-reader.ts'
import {
  type AnyValue,
  type Attributes,
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
  VALUE_DEPTH_MAX,
} from './telemetry.ts'

/**
 * Decodes the OTLP messages that the service needs. Field numbers are those of `opentelemetry/proto`: `trace.proto`,
 * `logs.proto`, `metrics.proto`, `resource.proto` and `common.proto`. Unknown fields are ignored.
 */

/** @throws DecodeError */
export function decodeTraces(body: Uint8Array): Span[] {
  const spans: Span[] = []
  readExport(body, (reader, resource, scope) => spans.push(readSpan(reader, resource, scope)))
  return spans
}

/** @throws DecodeError */
export function decodeLogs(body: Uint8Array): LogRecord[] {
  const records: LogRecord[] = []
  readExport(body, (reader, resource, scope) => records.push(readLogRecord(reader, resource, scope)))
  return records
}

/** The number of data points, without decoding them. @throws DecodeError */
export function countMetricPoints(body: Uint8Array): number {
  let points = 0
  readExport(body, (reader) => {
    points += readMetric(reader)
  })
  return points
}

type ReadItem = (reader: ProtobufReader, resource: Resource, scope: string) => void

/** `Resource{Spans,Logs,Metrics}` and `Scope{Spans,Logs,Metrics}` have the same field numbers. */
function readExport(body: Uint8Array, readItem: ReadItem): void {
  const reader = new ProtobufReader(body)
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1 && reader.isDelimited()) inMessage(reader, () => readResourceItems(reader, readItem))
    else if (field !== 1) reader.skip()
  }
}

function readResourceItems(reader: ProtobufReader, readItem: ReadItem): void {
  reader.budget.take(ITEM_PARTS)
  const resource: Resource = { attributes: new Map() }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1 && reader.isDelimited()) inMessage(reader, () => readResource(reader, resource.attributes))
    else if (field === 2 && reader.isDelimited()) {
      inMessage(reader, () => readScopeItems(reader, resource, readItem))
    } else if (field > 2) reader.skip()
  }
}

function readResource(reader: ProtobufReader, attributes: Attributes): void {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) readKeyValue(reader, attributes, 0)
    else reader.skip()
  }
}

function readScopeItems(reader: ProtobufReader, resource: Resource, readItem: ReadItem): void {
  let scope = ''
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1 && reader.isDelimited()) {
      scope = inMessage(reader, () => readName(reader))
    } else if (field === 2 && reader.isDelimited()) inMessage(reader, () => readItem(reader, resource, scope))
    else if (field > 2) reader.skip()
  }
}

function readName(reader: ProtobufReader): string {
  let name = ''
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) name = reader.string()
    else reader.skip()
  }
  return name
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

function readSpan(reader: ProtobufReader, resource: Resource, scope: string): Span {
  reader.budget.take(ITEM_PARTS)
  const events: SpanEvent[] = []
  const links: SpanLink[] = []
  const attributes: Attributes = new Map()
  const span: Writable<Span> = {
    resource,
    scope,
    traceId: '',
    spanId: '',
    parentSpanId: '',
    name: '',
    kind: 0,
    startNano: 0,
    endNano: 0,
    attributes,
    events,
    links,
    statusCode: 0,
    statusMessage: '',
  }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) span.traceId = reader.hex()
    else if (field === 2) span.spanId = reader.hex()
    else if (field === 4) span.parentSpanId = reader.hex()
    else if (field === 5) span.name = reader.string()
    else if (field === 6) span.kind = reader.int32()
    else if (field === 7) span.startNano = reader.fixed64()
    else if (field === 8) span.endNano = reader.fixed64()
    else if (field === 9) readKeyValue(reader, attributes, 0)
    else if (field === 11 && reader.isDelimited()) events.push(inMessage(reader, () => readSpanEvent(reader)))
    else if (field === 13 && reader.isDelimited()) links.push(inMessage(reader, () => readLink(reader)))
    else if (field === 15 && reader.isDelimited()) inMessage(reader, () => readStatus(reader, span))
    else if (field !== 11 && field !== 13 && field !== 15) reader.skip()
  }
  return span
}

function readSpanEvent(reader: ProtobufReader): SpanEvent {
  reader.budget.take(SPAN_EVENT_PARTS)
  const event: Writable<SpanEvent> = { timeNano: 0, name: '', attributes: new Map() }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) event.timeNano = reader.fixed64()
    else if (field === 2) event.name = reader.string()
    else if (field === 3) readKeyValue(reader, event.attributes, 0)
    else reader.skip()
  }
  return event
}

function readLink(reader: ProtobufReader): SpanLink {
  reader.budget.take(SPAN_EVENT_PARTS)
  const link: Writable<SpanLink> = { traceId: '', spanId: '', attributes: new Map() }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) link.traceId = reader.hex()
    else if (field === 2) link.spanId = reader.hex()
    else if (field === 4) readKeyValue(reader, link.attributes, 0)
    else reader.skip()
  }
  return link
}

function readStatus(reader: ProtobufReader, span: Writable<Span>): void {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) span.statusMessage = reader.string()
    else if (field === 3) span.statusCode = reader.int32()
    else reader.skip()
  }
}

function readLogRecord(reader: ProtobufReader, resource: Resource, scope: string): LogRecord {
  reader.budget.take(ITEM_PARTS)
  const attributes: Attributes = new Map()
  const record: Writable<LogRecord> = {
    resource,
    scope,
    timeNano: 0,
    observedNano: 0,
    severityNumber: 0,
    severityText: '',
    eventName: '',
    body: null,
    attributes,
    traceId: '',
    spanId: '',
  }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) record.timeNano = reader.fixed64()
    else if (field === 2) record.severityNumber = reader.int32()
    else if (field === 3) record.severityText = reader.string()
    else if (field === 5 && reader.isDelimited()) record.body = inMessage(reader, () => readValue(reader, 0))
    else if (field === 6) readKeyValue(reader, attributes, 0)
    else if (field === 9) record.traceId = reader.hex()
    else if (field === 10) record.spanId = reader.hex()
    else if (field === 11) record.observedNano = reader.fixed64()
    else if (field === 12) record.eventName = reader.string()
    else if (field !== 5) reader.skip()
  }
  return record
}

/** Fields of `Metric` that hold a kind of metric; in each of them, field 1 is a data point. */
const METRIC_DATA = new Set([5, 7, 9, 10, 11])

function readMetric(reader: ProtobufReader): number {
  let points = 0
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (!METRIC_DATA.has(field)) reader.skip()
    else if (reader.isDelimited()) {
      inMessage(reader, () => {
        for (let inner = reader.next(); inner !== 0; inner = reader.next()) {
          reader.skip()
          if (inner === 1) points++
        }
      })
    }
  }
  return points
}

function readKeyValue(reader: ProtobufReader, into: Attributes, depth: number): void {
  if (!reader.isDelimited()) return
  reader.budget.take(1)
  const outer = reader.enter()
  let key = ''
  let value: AnyValue = null
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) key = reader.string()
    else if (field === 2 && reader.isDelimited()) {
      const inner = reader.enter()
      value = readValue(reader, depth)
      reader.leave(inner)
    } else if (field !== 2) reader.skip()
  }
  reader.leave(outer)
  into.set(key, value)
}

/** The last field of the `oneof` wins. */
function readValue(reader: ProtobufReader, depth: number): AnyValue {
  reader.budget.take(1)
  // The caller leaves the message, so it does not have to be read to its end.
  if (depth > VALUE_DEPTH_MAX) return TOO_DEEP
  let value: AnyValue = null
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) value = reader.string()
    else if (field === 2) value = reader.bool()
    else if (field === 3) value = fromInteger(reader.int64())
    else if (field === 4) value = fromDouble(reader.double())
    else if (field === 5 && reader.isDelimited()) value = inMessage(reader, () => readArray(reader, depth + 1))
    else if (field === 6 && reader.isDelimited()) value = inMessage(reader, () => readMap(reader, depth + 1))
    else if (field === 7) value = reader.base64()
    else if (field !== 5 && field !== 6) reader.skip()
  }
  return value
}

function readArray(reader: ProtobufReader, depth: number): AnyValue[] {
  const values: AnyValue[] = []
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1 && reader.isDelimited()) values.push(inMessage(reader, () => readValue(reader, depth)))
    else if (field !== 1) reader.skip()
  }
  return values
}

function readMap(reader: ProtobufReader, depth: number): Attributes {
  const map: Attributes = new Map()
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) readKeyValue(reader, map, depth)
    else reader.skip()
  }
  return map
}

function inMessage<T>(reader: ProtobufReader, read: () => T): T {
  const outer = reader.enter()
  const value = read()
  reader.leave(outer)
  return value
}
