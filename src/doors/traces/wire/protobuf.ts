import type { Steps } from '../../../base/http/shared-slice.ts'
import type { OpenedExport } from '../telemetry.ts'
import {
  type AnyValue,
  type Attributes,
  DecodeBudget,
  type DecodeLimits,
  fromDouble,
  type LogRecord,
  type Range,
  type Resource,
  type Span,
  type SpanEvent,
  type SpanLink,
  TOO_DEEP,
  VALUE_DEPTH_MAX,
} from '../telemetry.ts'
import {
  type ItemDecoder,
  type Outline,
  OutlineBuilder,
  type OutlineGroup,
  type OutlineScope,
  opened,
} from './outline.ts'
import { ProtobufReader } from './protobuf-reader.ts'

/**
 * Decodes the OTLP messages that the service needs. Field numbers are those of `opentelemetry/proto`: `trace.proto`,
 * `logs.proto`, `metrics.proto`, `resource.proto` and `common.proto`. Unknown fields are ignored.
 */

/** @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE; so does decoding the export */
export function* openTraces(body: Uint8Array, limits: DecodeLimits): Steps<OpenedExport<Span>> {
  return yield* open(body, { limits, readItem: readSpan, nestedField: SPAN_EVENTS })
}

/** As {@link openTraces}. */
export function* openLogs(body: Uint8Array, limits: DecodeLimits): Steps<OpenedExport<LogRecord>> {
  return yield* open(body, { limits, readItem: readLogRecord })
}

/** Metrics: the number of data points of each, without decoding them. Otherwise as {@link openTraces}. */
export function* openMetrics(body: Uint8Array, limits: DecodeLimits): Steps<OpenedExport<number>> {
  return yield* open(body, { limits, readItem: readMetric })
}

/** Values, which `json.ts` has written as the items of one scope. */
export function* openValues<Item>(
  body: Uint8Array,
  limits: DecodeLimits,
  itemOf: (value: AnyValue, bytes: number) => Item,
): Steps<OpenedExport<Item>> {
  return yield* open(body, {
    limits,
    *readItem(reader) {
      const { start, end } = reader.message()
      const item = itemOf(readValue(reader, 0), end - start)
      yield
      return item
    },
  })
}

interface Signal<Item> {
  readonly limits: DecodeLimits
  readonly readItem: (reader: ProtobufReader, resource: Resource, scope: string) => Steps<Item>
  /** The field of an item that holds events. */
  readonly nestedField?: number
}

const SPAN_EVENTS = 11
/** Fields of the outline that are read in one step. */
const FIELDS_PER_STEP = 16_384

function* open<Item>(body: Uint8Array, signal: Signal<Item>): Steps<OpenedExport<Item>> {
  const { limits, readItem } = signal
  const budget = new DecodeBudget(limits)
  const reader = new ProtobufReader(body, budget)
  const outline = yield* new OutlineReader(reader, signal.nestedField).read()
  const at = <T>(range: Range, read: () => T): T => {
    reader.seek(range)
    return read()
  }
  const decoder: ItemDecoder<Item> = {
    budget,
    resource: (range, into) => at(range, () => readResource(reader, into)),
    scopeName: (range) => at(range, () => readName(reader)),
    item: (range, resource, scope) => at(range, () => readItem(reader, resource, scope)),
  }
  return opened(outline, body.length, decoder, limits)
}

/**
 * Finds the items of an export. `Resource{Spans,Logs,Metrics}` and `Scope{Spans,Logs,Metrics}` have the same field
 * numbers.
 */
class OutlineReader {
  private readonly outline: OutlineBuilder
  private fields = 0

  constructor(
    private readonly reader: ProtobufReader,
    private readonly nestedField: number | undefined,
  ) {
    this.outline = new OutlineBuilder(reader.budget)
  }

  *read(): Steps<Outline> {
    const { reader } = this
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (this.isStepOver()) yield
      if (field !== 1) reader.skip()
      else if (reader.isDelimited()) yield* this.group()
    }
    return this.outline
  }

  private *group(): Steps<void> {
    const { reader } = this
    const group = this.outline.group()
    const outer = reader.enter()
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (this.isStepOver()) yield
      if (field > 2) reader.skip()
      else if (!reader.isDelimited()) continue
      else if (field === 1) group.resource.push(reader.range())
      else yield* this.scope(group)
    }
    reader.leave(outer)
  }

  private *scope(group: OutlineGroup): Steps<void> {
    const { reader } = this
    const scope = this.outline.scope(group)
    const outer = reader.enter()
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (this.isStepOver()) yield
      if (field > 2) reader.skip()
      else if (!reader.isDelimited()) continue
      else if (field === 1) scope.scope.push(reader.range())
      else if (this.nestedField === undefined) this.outline.item(scope, reader.range())
      else yield* this.itemWithNested(scope, this.nestedField)
    }
    reader.leave(outer)
  }

  private *itemWithNested(scope: OutlineScope, nestedField: number): Steps<void> {
    const { reader } = this
    const outer = reader.enter()
    this.outline.item(scope, reader.message())
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (this.isStepOver()) yield
      if (field === nestedField) this.outline.nested++
      reader.skip()
    }
    reader.leave(outer)
  }

  private isStepOver(): boolean {
    if (++this.fields % FIELDS_PER_STEP !== 0) return false
    this.reader.budget.beginItem()
    return true
  }
}

function readResource(reader: ProtobufReader, attributes: Attributes): void {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) readKeyValue(reader, attributes, 0)
    else reader.skip()
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

function* readSpan(reader: ProtobufReader, resource: Resource, scope: string): Steps<Span> {
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
    if (reader.budget.isStepOver()) yield
    if (field === 1) span.traceId = reader.hex()
    else if (field === 2) span.spanId = reader.hex()
    else if (field === 4) span.parentSpanId = reader.hex()
    else if (field === 5) span.name = reader.string()
    else if (field === 6) span.kind = reader.int32()
    else if (field === 7) span.startNano = reader.fixed64()
    else if (field === 8) span.endNano = reader.fixed64()
    else if (field === 9) readKeyValue(reader, attributes, 0)
    else if (field === SPAN_EVENTS && reader.isDelimited()) events.push(inMessage(reader, () => readSpanEvent(reader)))
    else if (field === 13 && reader.isDelimited()) links.push(inMessage(reader, () => readLink(reader)))
    else if (field === 15 && reader.isDelimited()) inMessage(reader, () => readStatus(reader, span))
    else if (field !== SPAN_EVENTS && field !== 13 && field !== 15) reader.skip()
  }
  return span
}

function readSpanEvent(reader: ProtobufReader): SpanEvent {
  reader.budget.takeNested()
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
  reader.budget.takeNested()
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

function* readLogRecord(reader: ProtobufReader, resource: Resource, scope: string): Steps<LogRecord> {
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
    if (reader.budget.isStepOver()) yield
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

function* readMetric(reader: ProtobufReader): Steps<number> {
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
    if (field === 1) key = reader.name()
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
    if (field === 1) value = reader.text()
    else if (field === 2) value = reader.bool()
    else if (field === 3) value = reader.int64()
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
