const VARINT_BYTES_MAX = 10
/** ASCII texts and copies up to this length take no native call. Below 128, so that the length is one byte. */
const SHORT_LENGTH_MAX = 48
const KEPT_BYTES_MAX = 16 * 1024 * 1024

/** By character code. */
const HEX_VALUES = new Uint8Array(128)
/** Scratch space of {@link Bytes.uuid}. */
const UUID_WORDS = new Uint32Array(4)

/** A growing byte buffer. Numbers are little-endian, as in ClickHouse's `Native` format. */
export class Bytes {
  buffer: Buffer<ArrayBuffer>
  length = 0

  constructor(private readonly initialBytes = 64 * 1024) {
    this.buffer = Buffer.allocUnsafeSlow(initialBytes)
  }

  /** Ensures capacity for `more` bytes after `length`; call before writing to `buffer` directly. */
  reserve(more: number): void {
    const need = this.length + more
    if (need <= this.buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(need, this.buffer.length * 2))
    this.buffer.copy(larger, 0, 0, this.length)
    this.buffer = larger
  }

  /** Empties the buffer. An oversized one is released. */
  clear(): void {
    this.length = 0
    if (this.buffer.length > KEPT_BYTES_MAX) this.buffer = Buffer.allocUnsafeSlow(this.initialBytes)
  }

  view(): Buffer {
    return this.buffer.subarray(0, this.length)
  }

  /** Appends `count` 32-bit words for the caller to fill. Only for buffers that contain nothing but words. */
  addWords(count: number): Uint32Array {
    this.reserve(count * 4)
    const place = new Uint32Array(this.buffer.buffer, this.length, count)
    this.length += count * 4
    return place
  }

  byte(value: number): void {
    this.reserve(1)
    this.buffer[this.length++] = value
  }

  varint(value: number): void {
    this.reserve(VARINT_BYTES_MAX)
    while (value >= 0x80) {
      this.buffer[this.length++] = (value % 0x80) | 0x80
      value = Math.floor(value / 0x80)
    }
    this.buffer[this.length++] = value
  }

  /** A `String`: its length in bytes, then its UTF-8. */
  string(text: string): void {
    if (text.length <= SHORT_LENGTH_MAX) {
      this.reserve(1 + text.length)
      const { length } = this
      this.length++
      if (this.ascii(text)) {
        this.buffer[length] = text.length
        return
      }
      this.length = length
    }
    // A UTF-16 unit takes at most 3 bytes.
    this.reserve(VARINT_BYTES_MAX + text.length * 3)
    // The length comes first, but is known last: most texts have as many bytes as units.
    const expected = this.length + varintBytes(text.length)
    const bytes = this.buffer.write(text, expected)
    const start = this.length + varintBytes(bytes)
    if (start !== expected) this.buffer.copyWithin(start, expected, expected + bytes)
    this.varint(bytes)
    this.length += bytes
  }

  /** The UTF-8 of the text, without its length. */
  text(text: string): void {
    // A UTF-16 unit takes at most 3 bytes.
    this.reserve(text.length * 3)
    if (text.length <= SHORT_LENGTH_MAX && this.ascii(text)) return
    this.length += this.buffer.write(text, this.length)
  }

  /** Bytes copied from `source`. */
  copy(source: Buffer, start: number, end: number): void {
    this.reserve(end - start)
    const { buffer, length } = this
    if (end - start > SHORT_LENGTH_MAX) source.copy(buffer, length, start, end)
    else for (let from = start, to = length; from < end; ) buffer[to++] = source[from++]
    this.length = length + end - start
  }

  /**
   * Writes a short ASCII text, which takes a fraction of the time of a native call. The caller has reserved the space.
   * Returns false, and writes nothing, for any other text.
   */
  private ascii(text: string): boolean {
    const { buffer, length } = this
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      if (unit >= 0x80) return false
      buffer[length + i] = unit
    }
    this.length = length + text.length
    return true
  }

  /** A `String` copied from `source`. */
  slice(source: Buffer, start: number, end: number): void {
    this.varint(end - start)
    this.copy(source, start, end)
  }

  /** `Int64` or `DateTime64` from a whole number within ±2^53. */
  int64(value: number): void {
    this.reserve(8)
    this.word(value | 0)
    this.word(Math.floor(value / 2 ** 32) | 0)
  }

  float64(value: number): void {
    this.reserve(8)
    this.buffer.writeDoubleLE(value, this.length)
    this.length += 8
  }

  /** A UUID, as {@link putUuid} lays it out. */
  uuid(text: string): void {
    this.reserve(16)
    putUuid(text, UUID_WORDS, 0)
    for (const word of UUID_WORDS) this.word(word)
  }

  /** Writes byte by byte, which takes a third of the time of `writeInt32LE`. The caller has reserved the space. */
  private word(value: number): void {
    const { buffer, length } = this
    buffer[length] = value
    buffer[length + 1] = value >>> 8
    buffer[length + 2] = value >>> 16
    buffer[length + 3] = value >>> 24
    this.length = length + 4
  }
}

function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++
  return bytes
}

/**
 * Writes a UUID to `words` from index `at` on, as ClickHouse lays it out: its halves as two little-endian 64-bit integers,
 * which are four 32-bit words.
 */
export function putUuid(uuid: string, words: Uint32Array, at: number): void {
  words[at] = (hexAt(uuid, 9) << 16) | hexAt(uuid, 14)
  words[at + 1] = (hexAt(uuid, 0) << 16) | hexAt(uuid, 4)
  words[at + 2] = (hexAt(uuid, 28) << 16) | hexAt(uuid, 32)
  words[at + 3] = (hexAt(uuid, 19) << 16) | hexAt(uuid, 24)
}

/** Four hexadecimal digits as a number. */
function hexAt(text: string, at: number): number {
  return (
    (HEX_VALUES[text.charCodeAt(at)] << 12) |
    (HEX_VALUES[text.charCodeAt(at + 1)] << 8) |
    (HEX_VALUES[text.charCodeAt(at + 2)] << 4) |
    HEX_VALUES[text.charCodeAt(at + 3)]
  )
}

for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  HEX_VALUES[digit.charCodeAt(0)] = HEX_VALUES[digit.toUpperCase().charCodeAt(0)] = value
}

/** The UUID in the four words from index `at` on: the inverse of {@link putUuid}. */
export function uuidFromWords(words: Uint32Array, at: number): string {
  const hex = [words[at + 1], words[at], words[at + 3], words[at + 2]]
    .map((word) => word.toString(16).padStart(8, '0'))
    .join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
