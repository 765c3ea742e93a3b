import { BACKSLASH, QUOTE, type SkipText } from './json-scan.ts'

/** A constant, because growing the memory would invalidate all views. */
const SIMD_BYTES = 4 * 1024 * 1024
const PAGE_BYTES = 64 * 1024

/** The escapes of two characters. */
const ESCAPABLE = [...'"\\/bfnrt'].map((char) => char.charCodeAt(0))
/** For each byte that must be escaped, the character after the backslash. Then, from `HEX`, the digits. */
const LETTERS = Array.from({ length: 0x60 }, (_, byte) => JSON.stringify(String.fromCharCode(byte)).charCodeAt(2))
const HEX_DIGITS = [...'0123456789abcdef'].map((char) => char.charCodeAt(0))

/** Where `LETTERS` and `HEX_DIGITS` are: behind the memory that callers see. */
const TABLE = SIMD_BYTES + 1024
const HEX = TABLE + LETTERS.length

// Parameters and local variables, then the instructions in use, by their opcodes in the specification of WebAssembly.
const AT = 0
const TO = 1
const OUT = 2
const CHUNK = 3
const STOPS = 4
const get = (local: number) => [0x20, local]
const set = (local: number) => [0x21, local]
const tee = (local: number) => [0x22, local]
const constant = (value: number) => [0x41, ...signed(value)]
const chunkOf = (bytes: readonly number[]) => [0xfd, 0x0c, ...bytes]
const chunkOfAll = (byte: number) => chunkOf(new Array<number>(16).fill(byte))
const LOAD_CHUNK = [0xfd, 0x00, 0, 0]
const STORE_CHUNK = [0xfd, 0x0b, 0, 0]
const LOAD_BYTE = (offset: number) => [0x2d, 0, ...unsigned(offset)]
const STORE_BYTE = (offset: number) => [0x3a, 0, offset]
const SPLAT = [0xfd, 0x0f]
const EQUAL_BYTES = [0xfd, 0x23]
const LESS_BYTES = [0xfd, 0x26]
const OR_CHUNKS = [0xfd, 0x50]
const ANY_BIT = [0xfd, 0x53]
const BIT_OF_EACH = [0xfd, 0x64]
const [LOOP, IF, END, RETURN] = [[0x03, 0x40], [0x04, 0x40], [0x0b], [0x0f]]
const branch = (levels: number) => [0x0c, levels]
const [ADD, SUBTRACT, AND, SHIFT_RIGHT, COUNT_ZEROS] = [[0x6a], [0x6b], [0x71], [0x76], [0x68]]
const [EQUAL, NOT_EQUAL, IS_ZERO, LESS] = [[0x46], [0x47], [0x45], [0x49]]

/** A bit for each of the 16 bytes of `CHUNK` that is below 0x20, a quote or a backslash. */
const STOPS_OF_CHUNK = [
  ...[get(CHUNK), chunkOfAll(0x20), LESS_BYTES],
  ...[get(CHUNK), chunkOfAll(QUOTE), EQUAL_BYTES, OR_CHUNKS],
  ...[get(CHUNK), chunkOfAll(BACKSLASH), EQUAL_BYTES, OR_CHUNKS, BIT_OF_EACH],
].flat()

/** `skipText(at)`. A zero byte ends the loop, as in `json-scan.ts`. */
const SKIP_TEXT = [
  LOOP,
  ...[get(AT), LOAD_CHUNK, set(CHUNK), STOPS_OF_CHUNK, tee(STOPS)],
  // if (stops === 0) { at += 16; continue }
  ...[IS_ZERO, IF, get(AT), constant(16), ADD, set(AT), branch(1), END],
  // at += the index of the first
  ...[get(AT), get(STOPS), COUNT_ZEROS, ADD, set(AT)],
  // if (byte(at) !== BACKSLASH) return at
  ...[get(AT), LOAD_BYTE(0), constant(BACKSLASH), NOT_EQUAL, IF, get(AT), RETURN, END],
  // if (!ESCAPABLE.includes(byte(at + 1))) return at
  ...[get(AT), LOAD_BYTE(1), SPLAT, chunkOf([...ESCAPABLE, ...ESCAPABLE]), EQUAL_BYTES, ANY_BIT],
  ...[IS_ZERO, IF, get(AT), RETURN, END],
  // at += 2
  ...[get(AT), constant(2), ADD, set(AT), branch(0)],
  ...[END, get(AT), END],
].flat()

/** `escapeText(at, to, out)`. Reads and writes up to 16 bytes too many. */
const ESCAPE_TEXT = [
  LOOP,
  // while (at < to) { copy 16 bytes
  ...[get(AT), get(TO), LESS, IF],
  ...[get(OUT), get(AT), LOAD_CHUNK, tee(CHUNK), STORE_CHUNK, STOPS_OF_CHUNK, tee(STOPS)],
  // if (stops === 0) { at += 16; out += 16; continue }
  ...[IS_ZERO, IF, get(AT), constant(16), ADD, set(AT), get(OUT), constant(16), ADD, set(OUT), branch(2), END],
  // at and out += the index of the first; if (at < to)
  ...[get(AT), get(STOPS), COUNT_ZEROS, ADD, set(AT), get(OUT), get(STOPS), COUNT_ZEROS, ADD, set(OUT)],
  ...[get(AT), get(TO), LESS, IF],
  // a backslash and the letter of byte(at)
  ...[get(OUT), constant(BACKSLASH), STORE_BYTE(0)],
  ...[get(OUT), get(AT), LOAD_BYTE(0), LOAD_BYTE(TABLE), tee(STOPS), STORE_BYTE(1)],
  // if (letter === 'u') two zeros and the digits of byte(at); out += 4
  ...[get(STOPS), constant(0x75), EQUAL, IF],
  ...[get(OUT), constant(0x30), STORE_BYTE(2), get(OUT), constant(0x30), STORE_BYTE(3)],
  ...[get(OUT), get(AT), LOAD_BYTE(0), constant(4), SHIFT_RIGHT, LOAD_BYTE(HEX), STORE_BYTE(4)],
  ...[get(OUT), get(AT), LOAD_BYTE(0), constant(15), AND, LOAD_BYTE(HEX), STORE_BYTE(5)],
  ...[get(OUT), constant(4), ADD, set(OUT), END],
  // at++; out += 2; continue }
  ...[get(AT), constant(1), ADD, set(AT), get(OUT), constant(2), ADD, set(OUT), branch(2), END],
  ...[END, END],
  // return out - (at - to)
  ...[get(OUT), get(AT), get(TO), SUBTRACT, SUBTRACT, END],
].flat()

const [I32, V128] = [0x7f, 0x7b]
const MAGIC = [0x00, 0x61, 0x73, 0x6d]
const MODULE = Uint8Array.from(
  [
    [...MAGIC, 1, 0, 0, 0],
    // Exactly the parameters that callers pass: passing fewer doubled the time of a scan.
    section(1, [2, 0x60, 1, I32, 1, I32, 0x60, 3, I32, I32, I32, 1, I32]),
    section(2, [1, ...text('env'), ...text('memory'), 0x02, 0x00, ...unsigned(SIMD_BYTES / PAGE_BYTES + 1)]),
    section(3, [2, 0, 1]),
    section(7, [2, ...text('skipText'), 0x00, 0, ...text('escapeText'), 0x00, 1]),
    // The local variables of both have the same numbers: in the first, `TO` and `OUT` are unused.
    section(10, [
      ...[2, ...sized([3, 2, I32, 1, V128, 1, I32, ...SKIP_TEXT])],
      ...sized([2, 1, V128, 1, I32, ...ESCAPE_TEXT]),
    ]),
    section(11, [1, 0, ...constant(TABLE), ...END, ...sized([...LETTERS, ...HEX_DIGITS])]),
  ].flat(),
)

interface SimdMemory {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Works on `bytes` only, like `escapeText`. */
  readonly skipText: SkipText
  /**
   * Writes the bytes from `start` to `end`, escaped as in JSON strings, to `out`, and returns where they end. There may be
   * six times as many. Up to 15 bytes are read past `end`, and up to 16 written past what is returned.
   */
  readonly escapeText: (start: number, end: number, out: number) => number
}

/**
 * Memory with functions that find the end of the JSON strings in it, and escape text, 16 bytes at a time, by SIMD
 * instructions of WebAssembly. `bench --only texts` compares: without it, the scan of a call of 100 model calls takes 1.7 to 2
 * times the processor time, and writing a text of 4 KB as JSON, with Bun's own functions, 6 to 17 times. `Buffer.indexOf` for each
 * string takes 4 times that of the scan. The module has only these two functions, so it is assembled here, and needs no compiler.
 *
 * @returns undefined where the processor or the runtime has no SIMD
 */
export function createSimdMemory(): SimdMemory | undefined {
  if (!WebAssembly.validate(MODULE)) return undefined
  // Memory takes space once it is written to. The last page is for reads and writes of 16 bytes that begin before it, and for
  // the tables of `escapeText`.
  const pages = SIMD_BYTES / PAGE_BYTES + 1
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages })
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { env: { memory } })
  const { skipText, escapeText } = exports as unknown as Pick<SimdMemory, 'skipText' | 'escapeText'>
  return { bytes: new Uint8Array(memory.buffer, 0, SIMD_BYTES), skipText, escapeText }
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...sized(content)]
}

function text(value: string): number[] {
  return sized([...new TextEncoder().encode(value)])
}

function sized(content: readonly number[]): number[] {
  return [...unsigned(content.length), ...content]
}

/** LEB128, as WebAssembly encodes lengths. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)]
}

/** LEB128 of a number that is not negative, with a sign bit. */
function signed(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signed(value >>> 7)]
}
