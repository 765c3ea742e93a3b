import { createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { Sealed, Vault } from '../../tenants/secrets/vault.ts'
import type { StoredWebhook } from './schema.ts'

/**
 * Signatures of Standard Webhooks 1.0 (docs/webhooks.md#signatures): `v1` is HMAC-SHA256 with a shared secret,
 * `v1a` is ed25519, whose public key receivers may know.
 */

type Signing = StoredWebhook['signing']

/** What signs the messages of an endpoint. */
export interface SigningKeys {
  readonly signing: Signing
  /** `whsec_…` or `whsk_…`. */
  readonly secret: string
  readonly previous: readonly PreviousSecret[]
}

/** A secret that was replaced, and until when it signs as well, Unix milliseconds. */
interface PreviousSecret {
  readonly secret: string
  readonly until: number
}

interface NewSecret {
  readonly secret: string
  readonly publicKey: string | null
}

/** How long a secret that was replaced signs as well, so that receivers have time to change theirs. */
export const ROTATION_MS = 24 * 60 * 60 * 1000

/** The problem of an endpoint for which {@link openKeys} returns null. */
export const SECRET_LOST = 'the secret was sealed with another SECRETS_KEY; rotate it'

const SECRET_BYTES = 32
const SYMMETRIC_PREFIX = 'whsec_'
const PRIVATE_PREFIX = 'whsk_'
const PUBLIC_PREFIX = 'whpk_'
const SEED_BYTES = 32
/** What precedes the seed in the PKCS #8 encoding of an ed25519 key (RFC 8410). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The secret of a new endpoint, or of a rotation. */
export function newSecret(signing: Signing): NewSecret {
  if (signing === 'v1')
    return { secret: SYMMETRIC_PREFIX + randomBytes(SECRET_BYTES).toString('base64'), publicKey: null }
  const { privateKey } = generateKeyPairSync('ed25519')
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' })
  const [seed, publicKey] = [Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]
  return {
    // The seed and the public key, as libraries of the standard expect it.
    secret: PRIVATE_PREFIX + Buffer.concat([seed, publicKey]).toString('base64'),
    publicKey: PUBLIC_PREFIX + publicKey.toString('base64'),
  }
}

/** Of `webhooks`: the columns of secrets. */
type SealedKeys = Pick<StoredWebhook, 'secret' | 'key_id' | 'public_key' | 'previous_secrets' | 'previous_key_id'>

type Identity = Pick<StoredWebhook, 'workspace_id' | 'webhook_id'>

/** The columns of an endpoint with a new secret. @param previous those that it replaces */
export function sealKeys(
  vault: Pick<Vault, 'seal'>,
  webhook: Identity,
  { secret, publicKey }: NewSecret,
  previous: readonly PreviousSecret[] = [],
): SealedKeys {
  const { sealed, key_id } = vault.seal(secret, locationOf(webhook))
  const keys = { secret: sealed, key_id, public_key: publicKey }
  if (previous.length === 0) return { ...keys, previous_secrets: null, previous_key_id: null }
  const before = vault.seal(JSON.stringify(previous), locationOf(webhook, 'before'))
  return { ...keys, previous_secrets: before.sealed, previous_key_id: before.key_id }
}

/** The keys of an endpoint, unsealed; null if its secret was sealed with another SECRETS_KEY. */
export function openKeys(
  vault: Pick<Vault, 'open'>,
  webhook: Identity & SealedKeys & Pick<StoredWebhook, 'signing'>,
): SigningKeys | null {
  const { signing, key_id, previous_secrets, previous_key_id } = webhook
  const secret = vault.open({ sealed: webhook.secret, key_id }, locationOf(webhook))
  if (secret === null) return null
  const isAlone = previous_secrets === null || previous_key_id === null
  const before = { sealed: previous_secrets, key_id: previous_key_id } as Sealed
  const previous = isAlone ? null : vault.open(before, locationOf(webhook, 'before'))
  return { signing, secret, previous: previous === null ? [] : JSON.parse(previous) }
}

/** Differs from the location of any tool's secret, because the names of those have no spaces. */
function locationOf({ workspace_id, webhook_id }: Identity, which = 'now') {
  return { workspaceId: workspace_id, name: `webhook ${webhook_id} ${which}` }
}

/**
 * The headers of an attempt to deliver a message.
 * @param at the time of the attempt, Unix milliseconds: receivers refuse one that is more than five minutes off
 */
export function headersFor(
  { signing, secret, previous }: SigningKeys,
  { deliveryId, body }: { readonly deliveryId: string; readonly body: string },
  at: number,
): Record<string, string> {
  const valid = previous.filter(({ until }) => at < until).map((each) => each.secret)
  const signed = signing === 'v1' ? hmac : ed25519
  return {
    'webhook-id': deliveryId,
    'webhook-timestamp': String(Math.floor(at / 1000)),
    'webhook-signature': [secret, ...valid].map((each) => signed(each, deliveryId, at, body)).join(' '),
  }
}

function hmac(secret: string, id: string, at: number, body: string): string {
  return new Webhook(secret).sign(id, new Date(at), body)
}

function ed25519(secret: string, id: string, at: number, body: string): string {
  const seed = Buffer.from(secret.slice(PRIVATE_PREFIX.length), 'base64').subarray(0, SEED_BYTES)
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' })
  const signature = sign(null, Buffer.from(`${id}.${Math.floor(at / 1000)}.${body}`), key)
  return `v1a,${signature.toString('base64')}`
}
