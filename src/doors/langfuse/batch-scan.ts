import { ApiError, invalid } from '../../base/errors.ts'
import { jsonError } from '../../base/http/json-reader.ts'
import {
  afterItem,
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
  terminated,
} from '../../base/http/json-scan.ts'
import type { Steps } from '../../base/http/shared-slice.ts'
import { createSimdMemory } from '../../base/http/simd-text.ts'
import { BODY_NAMES, MEMBER_COUNT, NameTable } from './fields.ts'
import type { JsonRange } from './json-objects.ts'

/** Events of one batch. The SDKs send up to a few hundred. */
const BATCH_EVENTS_MAX = 10_000

const EVENT_ID = 0
const EVENT_TYPE = 1
const EVENT_TIME = 2
const EVENT_BODY = 3
const EVENT_MEMBERS = 4
const EVENT_NAMES = new NameTable(['id', 'type', 'timestamp', 'body'])
/** Numbers that each event has in {@link BatchScan.ranges}: start and end of each member. */
const STRIDE = 2 * (EVENT_MEMBERS + MEMBER_COUNT)
const BATCH = new NameTable(['batch'])

const simd = createSimdMemory()
/** Longer bodies are scanned in steps, in memory of their own. */
const SIMD_BYTES_MAX = 512 * 1024

/**
 * Finds the events of an ingestion request in its bytes, and the members of their bodies, without building them: one pass
 * that also checks the grammar. All values are ranges of {@link text}.
 */
export class BatchScan {
  /** Start and end of each member of each event; 0 for one that is absent. */
  private ranges = new Int32Array(64 * STRIDE)
  count = 0
  readonly text: Buffer

  /** @param body valid UTF-8 */
  constructor(body: Uint8Array) {
    this.text = Buffer.from(body.buffer, body.byteOffset, body.length)
  }

  id = (event: number) => event * STRIDE + 2 * EVENT_ID
  type = (event: number) => event * STRIDE + 2 * EVENT_TYPE
  time = (event: number) => event * STRIDE + 2 * EVENT_TIME
  body = (event: number) => event * STRIDE + 2 * EVENT_BODY
  /** The place of a member of the body, by its index in `fields.ts`. */
  member = (event: number, index: number) => event * STRIDE + 2 * (EVENT_MEMBERS + index)

  /** Where the value at a place begins; 0 if there is none. */
  start(place: number): number {
    return this.ranges[place]
  }

  end(place: number): number {
    return this.ranges[place + 1]
  }

  /** The value at a place; null if there is none. */
  range(place: number): JsonRange | null {
    const start = this.start(place)
    return start === 0 ? null : { text: this.text, start, end: this.end(place) }
  }

  /** @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE */
  *read(depth: number): Steps<void> {
    try {
      if (simd !== undefined && this.text.length <= SIMD_BYTES_MAX) {
        simd.bytes.set(this.text)
        simd.bytes[this.text.length] = 0
        // In one step, because the memory is shared.
        const steps = this.readBody(simd.bytes, depth, simd.skipText)
        while (steps.next().done !== true);
      } else yield* this.readBody(terminated(this.text), depth, undefined)
    } catch (error) {
      throw jsonError(error, this.text)
    }
  }

  private *readBody(bytes: Uint8Array, depth: number, skipText: SkipText | undefined): Steps<void> {
    let at = skipSpace(bytes, 0)
    if (bytes[at] !== OPEN_BRACE) {
      skipValue(bytes, at, depth, skipText)
      throw invalid('body', 'expected a JSON object with a batch')
    }
    let hasBatch = false
    at = skipSpace(bytes, at + 1)
    while (bytes[at] !== CLOSE_BRACE) {
      if (bytes[at] !== QUOTE) throw new JsonSyntaxError(at, "a member name or '}'")
      const name = at + 1
      const nameEnd = skipString(bytes, at)
      at = skipColon(bytes, nameEnd)
      if (BATCH.find(bytes, name, nameEnd - 1) === 0) {
        at = yield* this.readEvents(bytes, at, depth - 1, skipText)
        hasBatch = true
      } else at = skipValue(bytes, at, depth - 1, skipText)
      at = afterItem(bytes, at, CLOSE_BRACE)
      yield
    }
    at = skipSpace(bytes, at + 1)
    if (at !== this.text.length) throw new JsonSyntaxError(at, 'the end of the body')
    if (!hasBatch) throw invalid('batch', 'required')
  }

  private *readEvents(bytes: Uint8Array, at: number, depth: number, skipText: SkipText | undefined): Steps<number> {
    if (bytes[at] !== OPEN_BRACKET) {
      skipValue(bytes, at, depth, skipText)
      throw invalid('batch', 'expected an array of events')
    }
    // Only what an earlier list has used: a body may have hundreds of thousands of lists.
    this.ranges.fill(0, 0, this.count * STRIDE)
    this.count = 0
    at = skipSpace(bytes, at + 1)
    while (bytes[at] !== CLOSE_BRACKET) {
      if (this.count === BATCH_EVENTS_MAX) {
        throw new ApiError(
          'PAYLOAD_TOO_LARGE',
          `batch: expected at most ${BATCH_EVENTS_MAX} events; send several batches`,
        )
      }
      at = this.readEvent(bytes, at, depth - 1, skipText)
      this.count++
      at = afterItem(bytes, at, CLOSE_BRACKET)
      yield
    }
    return at + 1
  }

  /** An event that is no object has no members. */
  private readEvent(bytes: Uint8Array, at: number, depth: number, skipText: SkipText | undefined): number {
    const base = this.count * STRIDE
    if (base + STRIDE > this.ranges.length) {
      const larger = new Int32Array(this.ranges.length * 2)
      larger.set(this.ranges)
      this.ranges = larger
    }
    return this.readMembers(bytes, at, depth, skipText, (name, start, end) => {
      const index = EVENT_NAMES.find(bytes, name, end)
      const valueEnd =
        index === EVENT_BODY
          ? this.readMembers(bytes, start, depth - 1, skipText, (inner, value, innerEnd) => {
              const after = skipValue(bytes, value, depth - 2, skipText)
              const member = BODY_NAMES.find(bytes, inner, innerEnd)
              if (member >= 0) this.keep(base + 2 * (EVENT_MEMBERS + member), value, after)
              return after
            })
          : skipValue(bytes, start, depth - 1, skipText)
      if (index >= 0) this.keep(base + 2 * index, start, valueEnd)
      return valueEnd
    })
  }

  /** @param read gets where a name and its value begin, and where the name ends; returns where the value ends */
  private readMembers(
    bytes: Uint8Array,
    at: number,
    depth: number,
    skipText: SkipText | undefined,
    read: (name: number, value: number, nameEnd: number) => number,
  ): number {
    if (bytes[at] !== OPEN_BRACE) return skipValue(bytes, at, depth, skipText)
    if (depth <= 0) throw new JsonSyntaxError(at, 'less nesting')
    at = skipSpace(bytes, at + 1)
    while (bytes[at] !== CLOSE_BRACE) {
      if (bytes[at] !== QUOTE) throw new JsonSyntaxError(at, "a member name or '}'")
      const nameEnd = skipString(bytes, at)
      at = read(at + 1, skipColon(bytes, nameEnd), nameEnd - 1)
      at = afterItem(bytes, at, CLOSE_BRACE)
    }
    return at + 1
  }

  /** As `JSON.parse` does, the last of several members with the same name counts; `null` counts as absent. */
  private keep(place: number, start: number, end: number): void {
    const isNull = end - start === 4 && this.text[start] === 0x6e
    this.ranges[place] = isNull ? 0 : start
    this.ranges[place + 1] = isNull ? 0 : end
  }
}
