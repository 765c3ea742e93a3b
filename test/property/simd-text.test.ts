import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { JsonSyntaxError, skipString, skipValue } from '../../src/base/http/json-scan.ts'
import { createSimdMemory } from '../../src/base/http/simd-text.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
/** The smallest module with an instruction of SIMD: a function that returns `i8x16.popcnt(i8x16.splat(0))`. */
const SMALLEST = Uint8Array.of(
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7b, 3, 2, 1, 0],
  ...[10, 10, 1, 8, 0, 0x41, 0, 0xfd, 15, 0xfd, 98, 11],
)
/** Undefined on machines without SIMD instructions, where nothing uses them. */
const simd = createSimdMemory()
const DEPTH = 8

/** Pieces of strings, valid and not: each kind of byte on both sides of each limit. */
const piece = fc.oneof(
  { weight: 12, arbitrary: fc.string({ maxLength: 60 }).map((text) => JSON.stringify(text).slice(1, -1)) },
  {
    weight: 12,
    arbitrary: fc.constantFrom(
      '\\n',
      '\\"',
      '\\\\',
      '\\/',
      '\\u00e9',
      '\\ud800',
      'é',
      '😀',
      '\x7f',
      ' ',
      '!',
      '#',
      '[',
      ']',
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom('"', '\\', '\\x', '\\u00g0', '\x1f', '\n', '\0', '\\\x7f') },
)
const strings = fc.array(piece, { maxLength: 30 }).map((pieces) => `"${pieces.join('')}"`)

/** Where the value ends, or the error. */
function outcome(skip: () => number): number | string {
  try {
    return skip()
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.message
    throw error
  }
}

test('the module is valid wherever there are SIMD instructions', () => {
  expect(simd !== undefined).toBe(WebAssembly.validate(SMALLEST))
})

test.skipIf(simd === undefined)(`SIMD instructions end strings where the plain loop does (SEED=${SEED})`, () => {
  const { bytes, skipText } = simd!
  fc.assert(
    fc.property(strings, fc.nat(40), fc.boolean(), (text, ahead, isAtEnd) => {
      const encoded = Buffer.from(`${text}\0`)
      // At any alignment, also where the next 16 bytes are beyond the end, and with the rest of an earlier body behind.
      const at = isAtEnd ? bytes.length - encoded.length : ahead
      bytes.fill(0x61, Math.max(0, at - 40), at + encoded.length + 64)
      bytes.set(encoded, at)
      expect(outcome(() => skipString(bytes, at, skipText))).toBe(outcome(() => skipString(bytes, at)))
    }),
    { seed: SEED, numRuns: 5_000 },
  )
})

test.skipIf(simd === undefined)(`SIMD instructions read values as the plain loop does (SEED=${SEED})`, () => {
  const { bytes, skipText } = simd!
  const value = fc.oneof(
    fc.json(),
    fc.record({ a: strings, b: strings }).map(({ a, b }) => `{${a}:[${b},${a}],"b":1}`),
  )
  fc.assert(
    fc.property(value, fc.nat(20), (text, at) => {
      bytes.set(Buffer.from(`${text}\0`), at)
      expect(outcome(() => skipValue(bytes, at, DEPTH, skipText))).toBe(outcome(() => skipValue(bytes, at, DEPTH)))
    }),
    { seed: SEED, numRuns: 2_000 },
  )
})
