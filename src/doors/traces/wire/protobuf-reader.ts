import { isUtf8 } from 'node:buffer'
import { type ApiError, invalid } from '../../../base/errors.ts'
import { type DecodeBudget, fromInteger, type Range, UTF8_TEXT_MAX, UTF8_TEXT_MIN, Utf8Text } from '../telemetry.ts'

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2
const GROUP_START = 3
const GROUP_END = 4
const FIXED32 = 5
const GROUP_DEPTH_MAX = 100
const VARINT_BYTES_MAX = 10
const TWO_TO_32 = 0x1_0000_0000

/**
 * Reads the wire format of protobuf from a body, without copying it. A message is read by calling {@link next} until it
 * returns 0; each field is consumed by one of the other methods or by {@link skip}.
 *
 * @throws ApiError VALIDATION_ERROR for bytes that are not a protobuf message
 */
export class ProtobufReader {
  private readonly buffer: Buffer
  private readonly view: DataView
  private at = 0
  /** The end of the message that is being read. */
  private end: number
  private wireType = 0

  /** @param budget is charged for each field and string; the callers charge what they allocate */
  constructor(
    private readonly bytes: Uint8Array,
    readonly budget: DecodeBudget,
    private readonly known = new KnownNames(),
  ) {
    this.buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.end = bytes.length
  }

  /** Continues at the message that these bytes are. */
  seek({ start, end }: Range): void {
    this.at = start
    this.end = end
  }

  /** The number of the next field; 0 at the end of the message. */
  next(): number {
    if (this.at >= this.end) return 0
    this.budget.takeField()
    const tag = this.varint32()
    this.wireType = tag & 7
    const field = tag >>> 3
    if (field === 0) throw this.broken('a field number of 0')
    return field
  }

  /** Whether the current field is encoded as a submessage, string or bytes; if not, it is skipped. */
  isDelimited(): boolean {
    return this.has(LENGTH_DELIMITED)
  }

  /** Enters a submessage. Pass the result to {@link leave} once {@link next} has returned 0. */
  enter(): number {
    const outer = this.end
    const length = this.length()
    this.end = this.at + length
    return outer
  }

  leave(outer: number): void {
    this.at = this.end
    this.end = outer
  }

  /** The bytes of a submessage, string or bytes, without reading them. */
  range(): Range {
    const start = this.skipLength()
    return { start, end: this.at }
  }

  /** What is left of the message that is being read. */
  message(): Range {
    return { start: this.at, end: this.end }
  }

  /** The start of a string, as much as the budget allows. */
  string(): string {
    return this.decoded('utf8')
  }

  /** A string, which stays in the body if it is long. */
  text(): string | Utf8Text {
    if (!this.has(LENGTH_DELIMITED)) return ''
    const start = this.skipLength()
    const length = this.at - start
    const kept = this.budget.takeText(length)
    const isLong = length >= UTF8_TEXT_MIN && length <= UTF8_TEXT_MAX
    if (isLong && kept === length && isUtf8(this.bytes.subarray(start, this.at))) {
      return new Utf8Text(this.buffer, start, this.at)
    }
    return this.buffer.toString('utf8', start, start + kept)
  }

  /** The name of an attribute. */
  name(): string {
    if (!this.has(LENGTH_DELIMITED)) return ''
    const start = this.skipLength()
    this.budget.takeName(this.at - start)
    return this.known.name(this.buffer, start, this.at)
  }

  /** Bytes as lower-case hex. */
  hex(): string {
    return this.decoded('hex')
  }

  base64(): string {
    return this.decoded('base64')
  }

  private decoded(encoding: 'utf8' | 'hex' | 'base64'): string {
    if (!this.has(LENGTH_DELIMITED)) return ''
    const start = this.skipLength()
    return this.buffer.toString(encoding, start, start + this.budget.takeText(this.at - start))
  }

  /** An `enum`, `bool`, `int32` or `uint32`. */
  int32(): number {
    return this.has(VARINT) ? this.varint32() : 0
  }

  bool(): boolean {
    return this.has(VARINT) ? this.skipVarint() : false
  }

  /** A number if that is exact, a bigint otherwise. */
  int64(): number | bigint {
    if (!this.has(VARINT)) return 0
    const { bytes } = this
    const start = this.at
    this.skipVarint()
    let high = 0
    let low = 0
    for (let i = this.at - 1; i >= start; i--) {
      const bits = bytes[i] & 0x7f
      // 35 bits, of which a double holds all exactly, and the 29 above them.
      if (i - start < 5) low = low * 128 + bits
      else high = high * 128 + bits
    }
    if (high < 2 ** 18) return high * 2 ** 35 + low
    return fromInteger(BigInt.asIntN(64, (BigInt(high) << 35n) | BigInt(low)))
  }

  /** Rounded to the nearest double. */
  fixed64(): number {
    if (!this.has(FIXED64)) return 0
    const at = this.take(8)
    return this.view.getUint32(at + 4, true) * TWO_TO_32 + this.view.getUint32(at, true)
  }

  double(): number {
    return this.has(FIXED64) ? this.view.getFloat64(this.take(8), true) : 0
  }

  /** Skips the value of the current field, whatever its type. */
  skip(depth = 0): void {
    switch (this.wireType) {
      case VARINT:
        this.skipVarint()
        return
      case FIXED64:
        this.take(8)
        return
      case LENGTH_DELIMITED:
        this.skipLength()
        return
      case FIXED32:
        this.take(4)
        return
      case GROUP_START:
        this.skipGroup(depth + 1)
        return
      default:
        throw this.broken(`wire type ${this.wireType}`)
    }
  }

  private skipGroup(depth: number): void {
    if (depth > GROUP_DEPTH_MAX) throw this.broken('groups nested too deep')
    for (;;) {
      if (this.next() === 0) throw this.broken('a group without an end')
      if (this.wireType === GROUP_END) return
      this.skip(depth)
    }
  }

  /** Whether the field has this wire type. Otherwise it is skipped, as protobuf treats it as unknown. */
  private has(wireType: number): boolean {
    if (this.wireType === wireType) return true
    this.skip()
    return false
  }

  private length(): number {
    const length = this.varint32()
    if (length > this.end - this.at) {
      throw this.broken(`a length of ${length} where ${this.end - this.at} bytes are left`)
    }
    return length
  }

  private skipLength(): number {
    const length = this.length()
    const start = this.at
    this.at += length
    return start
  }

  private take(bytes: number): number {
    if (this.end - this.at < bytes) throw this.broken('an end within a number')
    const start = this.at
    this.at += bytes
    return start
  }

  /** The low 32 bits, unsigned. */
  private varint32(): number {
    const { bytes, end } = this
    let value = 0
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      if (this.at >= end) throw this.broken('an end within a number')
      const byte = bytes[this.at++]
      if (i < 5) value |= (byte & 0x7f) << (7 * i)
      if (byte < 0x80) return value >>> 0
    }
    throw this.broken('a number of more than 10 bytes')
  }

  /** Whether any of its bits is set. */
  private skipVarint(): boolean {
    const { bytes, end } = this
    let bits = 0
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      if (this.at >= end) throw this.broken('an end within a number')
      const byte = bytes[this.at++]
      // Of the tenth byte, only one bit is part of the number.
      bits |= byte & (i === VARINT_BYTES_MAX - 1 ? 1 : 0x7f)
      if (byte < 0x80) return bits !== 0
    }
    throw this.broken('a number of more than 10 bytes')
  }

  private broken(what: string): ApiError {
    return invalid('body', `not valid protobuf: ${what} at byte ${this.at}`)
  }
}

const NAMES_MAX = 64
const NAME_BYTES_MAX = 64

/** The names of attributes, which the items of an export repeat: comparing bytes is cheaper than decoding them again. */
class KnownNames {
  private readonly slots: ({ readonly bytes: Uint8Array; readonly name: string } | undefined)[] = new Array(NAMES_MAX)

  name(text: Buffer, start: number, end: number): string {
    const length = end - start
    if (length > NAME_BYTES_MAX || length === 0) return text.toString('utf8', start, end)
    const slot = (length * 7 + text[start + (length >> 1)] * 5 + text[end - 1]) % NAMES_MAX
    const known = this.slots[slot]
    if (known !== undefined && isSame(known.bytes, text, start, length)) return known.name
    const name = text.toString('utf8', start, end)
    this.slots[slot] = { bytes: text.subarray(start, end), name }
    return name
  }
}

function isSame(known: Uint8Array, text: Buffer, start: number, length: number): boolean {
  if (known.length !== length) return false
  for (let i = 0; i < length; i++) if (known[i] !== text[start + i]) return false
  return true
}
