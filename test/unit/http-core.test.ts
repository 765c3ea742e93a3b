import { describe, expect, test } from 'bun:test'
import { t } from 'elysia'
import { ApiError } from '../../src/base/errors.ts'
import { allowedMethods } from '../../src/base/http/allowed-methods.ts'
import { cursorCodec, pageOf } from '../../src/base/http/page.ts'
import { requestIdOf } from '../../src/base/http/request-id.ts'
import { textProblem, Uuid } from '../../src/base/http/schema.ts'
import { open, seal } from '../../src/stores/idempotency/seal.ts'
import { seededMint } from '../../src/stores/idempotency/seeded-mint.ts'

describe('page cursors', () => {
  const codec = cursorCodec(t.Tuple([t.Integer(), Uuid]))
  const position: [number, string] = [1_769_851_800_123, '0197f3a0-0000-7000-8000-000000000001']

  test('round-trip and are safe in a URL', () => {
    const cursor = codec.encode(position)
    expect(codec.decode(cursor)).toEqual(position)
    expect(cursor).toMatch(/^[\w-]+$/)
  })

  test.each(['', 'x', '!!', codec.encode(position).slice(0, -3), btoa('[1,"x"]'), btoa('{}'), btoa('[1]')])(
    'reject a forged cursor: %p',
    (cursor) => {
      expect(() => codec.decode(cursor)).toThrow(
        new ApiError('VALIDATION_ERROR', 'query.cursor: expected the next_cursor of a page of this list'),
      )
    },
  )

  test('point to the last item shown, only where more follow', () => {
    expect(pageOf([5, 4, 3], 2, String, Number)).toEqual({ items: [5, 4], next_cursor: '4' })
    expect(pageOf([5, 4], 2, String, Number)).toEqual({ items: [5, 4], next_cursor: null })
    expect(pageOf([], 2, String, Number)).toEqual({ items: [], next_cursor: null })
  })
})

describe('a seeded mint', () => {
  const SEED = 'd3b07384-d9a0-4c5e-8f3a-2f6f3f1b6a11'
  const NOW = Date.UTC(2026, 0, 31)
  const take = (seed: string, ms: number) => {
    const mint = seededMint(seed, ms, 'token')
    return Array.from({ length: 1_000 }, () => [mint.uuid(), mint.ulid()])
  }

  test('mints the same ids for the same seed, and different ids for another seed', () => {
    expect(take(SEED, NOW)).toEqual(take(SEED, NOW))
    const other = new Set(take(crypto.randomUUID(), NOW).flat())
    expect(
      take(SEED, NOW)
        .flat()
        .some((id) => other.has(id)),
    ).toBe(false)
  })

  test('mints the same secrets for the same seed and token, and others for another seed or token', () => {
    const take = (seed: string, token: string) => {
      const mint = seededMint(seed, NOW, token)
      return [mint.secret(), mint.secret()].map((secret) => secret.toString('hex'))
    }
    expect(take(SEED, 'a')).toEqual(take(SEED, 'a'))
    const all = [take(SEED, 'a'), take(SEED, 'b'), take(crypto.randomUUID(), 'a')].flat()
    expect(new Set(all).size).toBe(all.length)
    expect(all.every((secret) => secret.length === 64)).toBe(true)
    // Without a token nothing would keep them from whoever reads the database.
    expect(take(SEED, '')).not.toEqual(take(SEED, ''))
  })

  test('mints UUIDv7s and ULIDs of the given time, increasing and unique', () => {
    const ids = take(SEED, NOW)
    for (const [uuid, ulid] of ids) {
      expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(Number.parseInt(uuid!.replaceAll('-', '').slice(0, 12), 16)).toBe(NOW)
      expect(ulid).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
    }
    for (const column of [0, 1]) {
      const minted = ids.map((pair) => pair[column]!)
      expect([...new Set(minted)].sort()).toEqual(minted)
    }
  })
})

test('sealed text opens only with the same secret in the same context', () => {
  const key = { secret: 'svc_ws_x', context: 'key idem' }
  const sealed = seal('tëxt', key)
  expect(open(sealed, key)).toBe('tëxt')
  expect(seal('tëxt', key)).not.toEqual(sealed)
  for (const wrong of [
    { ...key, secret: 'svc_ws_y' },
    { ...key, context: 'key other' },
  ])
    expect(() => open(sealed, wrong)).toThrow('another token')
  const tampered = Uint8Array.from(sealed)
  tampered[tampered.length - 1]! ^= 1
  expect(() => open(tampered, key)).toThrow()
})

test('generated request ids are unique ULIDs of the current time', () => {
  const start = Date.now()
  const ids = Array.from({ length: 100_000 }, () => requestIdOf(new Request('http://localhost/')))
  expect(new Set(ids).size).toBe(ids.length)
  const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  for (const id of [ids[0]!, ids.at(-1)!]) {
    expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
    const ms = [...id.slice(0, 10)].reduce((sum, char) => sum * 32 + alphabet.indexOf(char), 0)
    expect(ms).toBeWithin(start, Date.now() + 1)
  }
})

test('counts text in code points', () => {
  const limits = { minLength: 2, maxLength: 3 }
  const judge = (text: string) => textProblem(text, limits)
  expect(['ab', '😀😀', '😀😀😀', 'abc'].map(judge)).toEqual([null, null, null, null])
  expect(['a', '😀', ''].map(judge)).toEqual(Array(3).fill('expected at least 2 characters'))
  expect(['abcd', '😀😀😀😀', 'abcdefgh'].map(judge)).toEqual(Array(3).fill('expected at most 3 characters'))
  expect(judge('a\0')).toBe('expected text without the character U+0000')
  expect(['\ud800a', 'a\udc00'].map(judge)).toEqual(Array(2).fill('expected text without lone surrogates'))
})

test('the methods of a path are those of every route that matches it', () => {
  const routes = [
    { method: 'GET', path: '/runs' },
    { method: 'POST', path: '/runs' },
    { method: 'PATCH', path: '/runs/:id' },
    { method: 'WS', path: '/live' },
    { method: 'GET', path: '/files/*' },
  ]
  expect(allowedMethods(routes, '/runs/')).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST'])
  expect(allowedMethods(routes, '/runs/7')).toEqual(['OPTIONS', 'PATCH'])
  expect(allowedMethods(routes, '/live')).toEqual(['OPTIONS', 'WS'])
  expect(allowedMethods(routes, '/files/a/b')).toEqual(['GET', 'HEAD', 'OPTIONS'])
  expect(allowedMethods(routes, '/files')).toEqual([])
  expect(allowedMethods(routes, '/runs/7/x')).toEqual([])
})
