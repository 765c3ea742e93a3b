import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import {
  describeToken,
  hashKey,
  isWellFormedKey,
  type KeyType,
  mintToken,
  tokenTypeOf,
} from '../../src/tenants/keys/token.ts'

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
const check = (property: fc.IProperty<[string, ...unknown[]]> | fc.IRawProperty<unknown>) =>
  fc.assert(property as fc.IRawProperty<unknown>, { seed, numRuns: 500 })

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const types = fc.constantFrom<KeyType>('agent', 'workspace')
const base62 = fc.string({ unit: fc.constantFrom(...ALPHABET), minLength: 43, maxLength: 43 })

/** The checksum according to the specification, computed differently from the code. */
function specifiedChecksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let digit = 0; digit < 6; digit++) {
    digits = ALPHABET[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

describe(`key text (SEED=${seed})`, () => {
  test('a minted key has the specified format and the checksum of everything before it', () => {
    check(
      fc.property(types, (type) => {
        const { text } = mintToken(type)
        expect(text).toMatch(type === 'agent' ? /^svc_agent_[0-9A-Za-z]{49}$/ : /^svc_ws_[0-9A-Za-z]{49}$/)
        expect(text.slice(-6)).toBe(specifiedChecksum(text.slice(0, -6)))
        expect(isWellFormedKey(text)).toBe(type)
      }),
    )
  })

  test('any 43 characters with the right checksum are well formed: keys minted elsewhere are accepted', () => {
    check(
      fc.property(types, base62, (type, body) => {
        const unsigned = (type === 'agent' ? 'svc_agent_' : 'svc_ws_') + body
        expect(isWellFormedKey(unsigned + specifiedChecksum(unsigned))).toBe(type)
      }),
    )
  })

  test('detects every single changed character', () => {
    check(
      fc.property(types, fc.nat(), fc.constantFrom(...ALPHABET, '_', '-', ' ', 'é'), (type, where, other) => {
        const { text } = mintToken(type)
        const at = where % text.length
        fc.pre(text[at] !== other)
        expect(isWellFormedKey(text.slice(0, at) + other + text.slice(at + 1))).toBeNull()
      }),
    )
  })

  test('rejects text that is not a key', () => {
    check(fc.property(fc.string({ maxLength: 80 }), (text) => expect(isWellFormedKey(text)).toBeNull()))
    const { text } = mintToken('workspace')
    for (const near of [`${text}\n`, ` ${text}`, `${text}0`, text.slice(0, -1), text.toUpperCase()])
      expect(isWellFormedKey(near)).toBeNull()
  })

  test('a feed token has the same format as a key, but is not accepted as one', () => {
    const { text } = mintToken('feed')
    expect(text).toMatch(/^svc_feed_[0-9A-Za-z]{49}$/)
    expect(text.slice(-6)).toBe(specifiedChecksum(text.slice(0, -6)))
    expect([tokenTypeOf(text), isWellFormedKey(text)]).toEqual(['feed', null])
    expect(tokenTypeOf(text.replace('feed', 'agent'))).toBeNull()
    for (const type of ['agent', 'workspace'] as const) expect(tokenTypeOf(mintToken(type).text)).toBe(type)
  })

  test('keys are unique and use all 256 bits', () => {
    const texts = Array.from({ length: 2_000 }, () => mintToken('agent').text)
    expect(new Set(texts).size).toBe(texts.length)
    expect(new Set(texts.map((text) => text[10])).size).toBeGreaterThan(20)
    expect(new Set(texts.map((text) => text[52])).size).toBe(62)
  })

  test("stores a key's SHA-256, its start and its last four characters", () => {
    const { text } = mintToken('workspace')
    const stored = describeToken(text)
    expect(stored.hash.equals(createHash('sha256').update(text).digest())).toBe(true)
    expect(hashKey(text).equals(stored.hash)).toBe(true)
    expect(stored.prefix).toBe(text.slice(0, 'svc_ws_'.length + 4))
    expect(stored.last4).toBe(text.slice(-4))
  })
})
