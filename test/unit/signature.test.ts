import { expect, test } from 'bun:test'
import type { Caller } from '../../src/tenants/keys/schema.ts'
import { NodeSignature, SeenCalls } from '../../src/tenants/partitions/shared/signature.ts'
import { seededRandom } from '../support/random.ts'

/** Calls that nodes of a cluster sign. */

const SECRET = 'a-secret-of-the-test-cluster'
const CALLER: Caller = { keyId: 'k', type: 'workspace', workspaceId: 'w', partition: 0, agentId: null }
const PATH = '/api/ingest/v1/events'
const VALID_MS = 60_000

test('a signed call is accepted once, by the node that it is for, within a minute', () => {
  let nowMs = 1_000_000
  const [a, b, c] = ['a', 'b', 'c'].map((id) => new NodeSignature(SECRET, id, () => nowMs))
  const sign = () => a.sign('b', 'POST', PATH, CALLER, new Uint8Array([1]))
  const header = sign()
  expect(() => c.verify(header, 'POST', PATH)).toThrow('INSTANCE_URL')
  expect(() => b.verify(header, 'POST', '/api/ingest/v1/tasks')).toThrow('not signed')
  expect(b.verify(header, 'POST', PATH).caller).toEqual(CALLER)
  expect(() => b.verify(header, 'POST', PATH)).toThrow('not signed')
  expect(b.verify(sign(), 'POST', PATH).caller).toEqual(CALLER)
  const late = sign()
  nowMs += VALID_MS + 1
  expect(() => b.verify(late, 'POST', PATH)).toThrow('not signed')
  expect(() => new NodeSignature('another secret', 'b', () => nowMs).verify(sign(), 'POST', PATH)).toThrow('not signed')
})

test('calls that overtake each other are each accepted once, and memory is bounded', () => {
  const random = seededRandom('seen calls')
  const seen = new SeenCalls(VALID_MS)
  const numbers = Array.from({ length: 200_000 }, (_, n) => n + 1)
  for (let n = 0; n < numbers.length; n += 1_000) {
    const some = numbers.slice(n, n + 1_000)
    const mixed = some.map((number) => ({ number, at: random.next() })).sort((x, y) => x.at - y.at)
    for (const { number } of mixed) if (!seen.add({ from: 'a', number, at: 0 }, 0)) throw new Error(`refused ${number}`)
    for (const { number } of mixed) if (seen.add({ from: 'a', number, at: 0 }, 0)) throw new Error(`repeated ${number}`)
  }
  // Too old to tell.
  expect(seen.add({ from: 'a', number: 1, at: 0 }, 0)).toBe(false)
  expect(seen.add({ from: 'a', number: 1_000_000, at: 0 }, 0)).toBe(true)
  expect(seen.add({ from: 'a', number: 999_999, at: 0 }, 0)).toBe(true)
  for (const number of [0, -1, 1.5, Number.NaN]) expect(seen.add({ from: 'a', number, at: 0 }, 0)).toBe(false)
  for (let n = 1; n < 1_024; n++) expect(seen.add({ from: `sender ${n}`, number: 1, at: 0 }, 0)).toBe(true)
  expect(seen.add({ from: 'one too many', number: 1, at: 0 }, 0)).toBe(false)
  // Calls of the others are refused by their age now.
  expect(seen.add({ from: 'one too many', number: 1, at: VALID_MS + 1 }, VALID_MS + 1)).toBe(true)
})
