import { ApiError } from '../http/errors.ts'

/** A decoded OTLP export. Both encodings, protobuf and JSON, decode to these types. */

/**
 * The value of an attribute or a body. Integers beyond 2^53 are bigints; bytes are base64; NaN and the infinities are
 * strings, because JSON has no such numbers.
 */
export type AnyValue = string | number | bigint | boolean | null | readonly AnyValue[] | Attributes

/** Attributes by name. If a sender repeats a name, the last value wins. */
export type Attributes = Map<string, AnyValue>

/** What sends the telemetry, such as a process; shared by its spans or log records. */
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

/** A span as sent. Ids are lower-case hex, not validated yet; times are Unix nanoseconds, 0 if not given. */
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

/** A log record as sent. Ids are lower-case hex, not validated yet, empty if not given; times as in {@link Span}. */
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

/** The body is not a valid export. The message is for the client and says where. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

/** How deep values may be nested, the same as in protobuf libraries. */
export const VALUE_DEPTH_MAX = 100
/** Replaces a value that is nested deeper. */
export const TOO_DEEP = `nested more than ${VALUE_DEPTH_MAX} deep`

const PARTS_MAX = 2_000_000
/** What a resource, span or log record costs; an attribute or a value costs one. */
export const ITEM_PARTS = 16
export const SPAN_EVENT_PARTS = 8

/**
 * Limits the memory that decoding an export takes: two bytes of a body can be a span, which takes a thousand times as much
 * in memory. An export of 64 MiB uses about half of the budget if its spans have 2 KB and six attributes each.
 */
export class DecodeBudget {
  private left = PARTS_MAX

  /** @throws ApiError PAYLOAD_TOO_LARGE */
  take(parts: number): void {
    this.left -= parts
    if (this.left < 0) throw new ApiError('PAYLOAD_TOO_LARGE', `body: ${TOO_MANY}`)
  }
}

export const TOO_MANY = 'too many spans, events, attributes and values for one export; send several'

/** A double as a value: NaN and the infinities become strings. */
export function fromDouble(value: number): number | string {
  return Number.isFinite(value) ? value : String(value)
}

/** A 64-bit integer as a value: a number if that is exact, a bigint otherwise. */
export function fromInteger(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}
