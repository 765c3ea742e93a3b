import { ApiError } from '../../base/errors.ts'
import type { Steps } from '../../base/http/shared-slice.ts'
import type { Limits } from '../../base/limits.ts'

/** A decoded OTLP export. Both encodings, protobuf and JSON, decode to these types. */

/**
 * The value of an attribute or a body. Integers beyond 2^53 are bigints; bytes are base64; NaN and the infinities are
 * strings, because JSON has no such numbers.
 */
export type AnyValue = string | Utf8Text | number | bigint | boolean | null | readonly AnyValue[] | Attributes

/**
 * A long string of a protobuf body, which stays there until it is written, so that it is not decoded and encoded again.
 * Valid UTF-8.
 */
export class Utf8Text {
  constructor(
    readonly body: Buffer,
    readonly start: number,
    readonly end: number,
  ) {}

  get length(): number {
    return this.end - this.start
  }

  toString(): string {
    return this.body.toString('utf8', this.start, this.end)
  }
}

/** The lengths of strings that stay in the body. Shorter ones are cheaper as strings. */
export const UTF8_TEXT_MIN = 128
export const UTF8_TEXT_MAX = 64 * 1024

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

/** Items that are not decoded, and why. */
export interface Refusal {
  /** The place of the first one in the export, from 1. */
  readonly first: number
  readonly items: number
  readonly problem: string
}

export interface Decoded<Item> {
  readonly items: readonly Item[]
  readonly refusals: readonly Refusal[]
}

/** An export that was looked through, but not decoded yet. */
export interface OpenedExport<Item> {
  /** What to charge for it, in events. */
  readonly cost: number
  decode(): Steps<Decoded<Item>>
}

/** How deep values may be nested, the same as in protobuf libraries. */
export const VALUE_DEPTH_MAX = 100
/** Replaces a value that is nested deeper. */
export const TOO_DEEP = `nested more than ${VALUE_DEPTH_MAX} deep`

/** Bytes of a buffer: from `start` up to but not including `end`. */
export interface Range {
  readonly start: number
  readonly end: number
}

/** What an export may contain. Fixed, apart from the bytes; tests pass smaller ones. */
export interface DecodeLimits {
  /** Of an export: {@link ITEM_PARTS} for each resource, scope, span or log record, one for each attribute and value. */
  readonly parts: number
  /** Of one span or log record, because storing it is one step. */
  readonly itemParts: number
  /** Of one attribute, because decoding it is one step. */
  readonly attributeParts: number
  /** Events and links of a span. */
  readonly nested: number
  /** Text of one span or log record, in bytes. */
  readonly itemTextBytes: number
  /** The part of a string that is kept. At least what any column takes, so that what is cut here is also cut there. */
  readonly textBytes: number
  /** A resource or a scope, as sent: each of its runs or spans stores a copy. */
  readonly resourceBytes: number
}

export const RESOURCE_BYTES_MAX = 64 * 1024
const MIB = 1024 * 1024

export function decodeLimits(limits: Pick<Limits, 'event_payload_bytes' | 'run_input_bytes' | 'run_output_bytes'>) {
  const { event_payload_bytes, run_input_bytes, run_output_bytes } = limits
  return {
    parts: 2_000_000,
    itemParts: 250_000,
    attributeParts: 100_000,
    nested: 10_000,
    itemTextBytes: 2 * MIB + event_payload_bytes + run_input_bytes + run_output_bytes,
    textBytes: 1 + Math.max(event_payload_bytes, run_input_bytes, run_output_bytes),
    resourceBytes: RESOURCE_BYTES_MAX,
  } satisfies DecodeLimits
}

/** What a resource, scope, span or log record costs. */
export const ITEM_PARTS = 16
const SPAN_EVENT_PARTS = 8
/** Fields that an item may have for each of its parts, with those that OTLP does not have. A power of two. */
const FIELDS_PER_PART = 4
const NAME_LENGTH_MAX = 64 * 1024
/** What is decoded in one step, in parts; so many bytes of text take as long as a part. */
const STEP_PARTS = 10_000
const TEXT_BYTES_PER_PART = 256

/** A span or log record that is too large to be decoded. The others of its export are stored. */
export class ItemTooLarge extends ApiError {
  override readonly name = 'ItemTooLarge'

  constructor(message: string) {
    super('PAYLOAD_TOO_LARGE', message)
  }
}

/**
 * Limits the memory that decoding an export takes, and the time that decoding one of its items takes. Everything is
 * charged before the work is done: two bytes of a body can be a span, which takes a thousand times as much in memory. An
 * export of 64 MiB uses about half of the budget if its spans have 2 KB and six attributes each.
 */
export class DecodeBudget {
  private left: number
  private itemParts = 0
  private itemFields = 0
  private itemText = 0
  private itemNested = 0
  private stepParts = 0

  constructor(private readonly limits: DecodeLimits) {
    this.left = limits.parts
    this.beginItem()
  }

  /** Starts the budget of the next resource, scope, span or log record. */
  beginItem(): void {
    this.itemParts = this.limits.itemParts
    this.itemFields = this.limits.itemParts * FIELDS_PER_PART
    this.itemText = this.limits.itemTextBytes
    this.itemNested = this.limits.nested
    this.stepParts = 0
  }

  /** Whether a step has ended; then the next one begins. */
  isStepOver(): boolean {
    if (this.stepParts < STEP_PARTS) return false
    this.stepParts = 0
    return true
  }

  /** For an event or link of a span. @throws ApiError PAYLOAD_TOO_LARGE, ItemTooLarge */
  takeNested(): void {
    this.take(SPAN_EVENT_PARTS)
    if (--this.itemNested < 0) throw new ItemTooLarge(`more than ${this.limits.nested} events and links`)
  }

  /** @throws ApiError PAYLOAD_TOO_LARGE, ItemTooLarge */
  take(parts: number): void {
    this.left -= parts
    if (this.left < 0) throw new ApiError('PAYLOAD_TOO_LARGE', `body: ${TOO_MANY}`, { param: 'body' })
    this.itemParts -= parts
    if (this.itemParts < 0) {
      throw new ItemTooLarge(`more than ${this.limits.itemParts} attributes, values and events`)
    }
    this.stepParts += parts
    if (this.stepParts > this.limits.attributeParts + STEP_PARTS) {
      throw new ItemTooLarge(`more than ${this.limits.attributeParts} values in one attribute`)
    }
  }

  /** @throws ItemTooLarge */
  takeField(): void {
    if ((--this.itemFields & (FIELDS_PER_PART - 1)) !== 0) return
    if (this.itemFields < 0) throw new ItemTooLarge('too many fields')
    this.stepParts++
  }

  /** For the name of an attribute. @throws ItemTooLarge */
  takeName(length: number): void {
    if (length > NAME_LENGTH_MAX) throw new ItemTooLarge(`an attribute whose name is longer than ${NAME_LENGTH_MAX}`)
  }

  /** How many bytes of a string to decode. @throws ItemTooLarge */
  takeText(bytes: number): number {
    const kept = Math.min(bytes, this.limits.textBytes)
    this.itemText -= kept
    this.stepParts += Math.ceil(kept / TEXT_BYTES_PER_PART)
    if (this.itemText < 0) throw new ItemTooLarge(`more than ${this.limits.itemTextBytes} bytes of text`)
    return kept
  }
}

const TOO_MANY = 'too many spans, events, attributes and values for one export; send several'

/** A double as a value: NaN and the infinities become strings. */
export function fromDouble(value: number): number | string {
  return Number.isFinite(value) ? value : String(value)
}

/** A 64-bit integer as a value: a number if that is exact, a bigint otherwise. */
export function fromInteger(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}
