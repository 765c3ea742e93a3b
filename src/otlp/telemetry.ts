import { ApiError } from '../http/errors.ts'

/**
 * What an OTLP export says, after decoding. Both encodings, protobuf and JSON, decode to the same values.
 */

/**
 * The value of an attribute or a body. Integers beyond 2^53 are bigints; bytes are base64; NaN and the infinities are
 * text, because JSON has no such numbers.
 */
export type AnyValue = string | number | bigint | boolean | null | readonly AnyValue[] | Attributes

/** Attributes by name. If a sender repeats a name, the last value counts. */
export type Attributes = Map<string, AnyValue>

/** What sends the telemetry, such as a process; shared by all of its spans or log records. */
export interface Resource {
  readonly attributes: Attributes
}

export interface SpanEvent {
  readonly timeNano: number
  readonly name: string
  readonly attributes: Attributes
}

export interface SpanLink {
  readonly traceId: string
  readonly spanId: string
  readonly attributes: Attributes
}

/** `STATUS_CODE_ERROR` of OTLP. */
export const STATUS_ERROR = 2

/** A span as sent. Ids are lower-case hex and not checked yet; times are Unix nanoseconds, 0 if not given. */
export interface Span {
  readonly resource: Resource
  /** Name of the instrumentation scope. */
  readonly scope: string
  readonly traceId: string
  readonly spanId: string
  /** Empty for a root span. */
  readonly parentSpanId: string
  readonly name: string
  readonly kind: number
  readonly startNano: number
  readonly endNano: number
  readonly attributes: Attributes
  readonly events: readonly SpanEvent[]
  readonly links: readonly SpanLink[]
  readonly statusCode: number
  readonly statusMessage: string
}

/** A log record as sent. Ids are lower-case hex, empty if not given, and not checked yet. */
export interface LogRecord {
  readonly resource: Resource
  readonly scope: string
  readonly timeNano: number
  readonly observedNano: number
  readonly severityNumber: number
  readonly severityText: string
  readonly eventName: string
  readonly body: AnyValue
  readonly attributes: Attributes
  readonly traceId: string
  readonly spanId: string
}

/** A body that is no valid export. The message says where, for the client. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

/** How deep values may be nested, as in the protobuf libraries. */
export const VALUE_DEPTH_MAX = 100
/** Stands for a value that is nested deeper. */
export const TOO_DEEP = `nested more than ${VALUE_DEPTH_MAX} deep`

const PARTS_MAX = 2_000_000
/** What an item takes in memory, in parts: an attribute or a value is one. */
export const ITEM_PARTS = 16
export const SPAN_EVENT_PARTS = 8

/**
 * Counts the parts of an export, because two bytes of a body can be a span, and take a thousand times as much in memory. An
 * export of 64 MiB with spans of 2 KB has a quarter of the parts allowed.
 */
export class Parts {
  private left = PARTS_MAX

  /** @throws ApiError PAYLOAD_TOO_LARGE */
  take(parts: number): void {
    this.left -= parts
    if (this.left < 0) throw new ApiError('PAYLOAD_TOO_LARGE', `body: ${TOO_MANY}`)
  }
}

export const TOO_MANY = 'too many spans, events, attributes and values for one export; send several'

/** A double as a value: JSON has no number for NaN and the infinities. */
export function fromDouble(value: number): number | string {
  return Number.isFinite(value) ? value : String(value)
}

/** A 64-bit integer as a value: a number if that is exact. */
export function fromInteger(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}
