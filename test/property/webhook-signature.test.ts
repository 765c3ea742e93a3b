import { expect, test } from 'bun:test'
import { createPublicKey, verify } from 'node:crypto'
import OpenAI from 'openai'
import { Webhook } from 'standardwebhooks'
import { headersFor, newSecret, ROTATION_MS } from '../../src/feeds/webhooks/signature.ts'
import { seededRandom } from '../support/random.ts'

/** What we sign, the libraries of receivers accept: `standardwebhooks`, and the client of OpenAI. */

const CASES = 200
const TEXTS = ['', 'plain', 'Größe 📏', '"quoted" \\ \u0001 \u2028', ' two\nlines ', 'x'.repeat(20_000)]
const openai = new OpenAI({ apiKey: 'unused' })

const random = seededRandom('webhook signatures')
const message = () => ({
  deliveryId: `msg_${Bun.randomUUIDv7().replaceAll('-', '')}_${random.pick(['0', 'e-1_x', 'A'])}_${random.int(0, 1e15)}`,
  body: JSON.stringify({ type: random.pick(TEXTS), data: { [random.pick(TEXTS)]: random.pick(TEXTS) } }),
})

/** Null if the signature is not valid. */
function opened(secret: string, body: string, headers: Record<string, string>): unknown {
  try {
    return new Webhook(secret).verify(body, headers)
  } catch {
    return null
  }
}

async function openedByOpenAi(secret: string, body: string, headers: Record<string, string>): Promise<unknown> {
  return openai.webhooks.unwrap(body, headers, secret).catch(() => null)
}

test('both libraries accept every message with its secret, and nothing else', async () => {
  for (let i = 0; i < CASES; i++) {
    const { secret } = newSecret('v1')
    const sent = message()
    const { body } = sent
    const headers = headersFor({ signing: 'v1', secret, previous: [] }, sent, Date.now())
    const content = JSON.parse(body)
    const at = random.int(0, body.length - 1)
    const tampered = `${body.slice(0, at)}${body[at] === 'x' ? 'y' : 'x'}${body.slice(at + 1)}`
    const renamed = { ...headers, 'webhook-id': `${headers['webhook-id']}0` }
    for (const open of [opened, openedByOpenAi]) {
      expect(await open(secret, body, headers)).toEqual(content)
      expect(await open(secret, tampered, headers)).toBeNull()
      expect(await open(secret, body, renamed)).toBeNull()
      expect(await open(newSecret('v1').secret, body, headers)).toBeNull()
    }
  }
})

test('after a rotation both secrets verify for a day, then only the new one', async () => {
  const [before, after] = [newSecret('v1').secret, newSecret('v1').secret]
  const now = Date.now()
  const sent = message()
  const { body } = sent
  const keys = (rotatedAt: number) => ({
    signing: 'v1' as const,
    secret: after,
    previous: [{ secret: before, until: rotatedAt + ROTATION_MS }],
  })
  const during = headersFor(keys(now - ROTATION_MS + 1), sent, now)
  expect(during['webhook-signature']?.split(' ')).toHaveLength(2)
  const later = headersFor(keys(now - ROTATION_MS), sent, now)
  for (const open of [opened, openedByOpenAi]) {
    expect(await open(before, body, during)).not.toBeNull()
    expect(await open(after, body, during)).not.toBeNull()
    expect(await open(before, body, later)).toBeNull()
    expect(await open(after, body, later)).not.toBeNull()
  }
})

/** As the standard says for `v1a`: the key is what follows `whpk_`. */
function isSigned(publicKey: string, body: string, headers: Record<string, string>): boolean {
  const x = Buffer.from(publicKey.slice('whpk_'.length), 'base64').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const signed = Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`)
  return (headers['webhook-signature'] ?? '').split(' ').some((each) => {
    const [version, signature = ''] = each.split(',')
    return version === 'v1a' && verify(null, signed, key, Buffer.from(signature, 'base64'))
  })
}

test('signatures of v1a are those of ed25519, also while two keys sign', () => {
  for (let i = 0; i < CASES; i++) {
    const [before, after] = [newSecret('v1a'), newSecret('v1a')]
    expect([after.secret.length, after.publicKey?.length]).toEqual([5 + 88, 5 + 44])
    const now = Date.now()
    const sent = message()
    const previous = random.bool() ? [{ secret: before.secret, until: now + 1 }] : []
    const headers = headersFor({ signing: 'v1a', secret: after.secret, previous }, sent, now)
    expect(isSigned(after.publicKey!, sent.body, headers)).toBe(true)
    expect(isSigned(before.publicKey!, sent.body, headers)).toBe(previous.length === 1)
    expect(isSigned(after.publicKey!, `${sent.body} `, headers)).toBe(false)
  }
})

test('the timestamp is that of the attempt, in seconds', () => {
  const { secret } = newSecret('v1')
  const headers = headersFor({ signing: 'v1', secret, previous: [] }, message(), 1_700_000_000_999)
  expect(headers['webhook-timestamp']).toBe('1700000000')
})
