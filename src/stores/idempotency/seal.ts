import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { ApiError } from '../../base/errors.ts'

/** The key that a text is encrypted with. Whoever reads the database lacks the secret, so cannot decrypt it. */
interface SealKey {
  /** High entropy: an API key. */
  readonly secret: string
  /** Binds the sealed text to its row, so that it cannot be moved to another. */
  readonly context: string
}

const ALGORITHM = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

/** AES-256-GCM with a key derived by HKDF-SHA-256. Layout: nonce, tag, ciphertext. */
export function seal(text: string, key: SealKey): Uint8Array {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(ALGORITHM, derive(key), iv)
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), body])
}

/** @throws ApiError CONFLICT if it was sealed with another secret: the operator token has changed since */
export function open(sealed: Uint8Array, key: SealKey): string {
  const decipher = createDecipheriv(ALGORITHM, derive(key), sealed.subarray(0, IV_BYTES))
  decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString()
  } catch (cause) {
    throw new ApiError('CONFLICT', 'this Idempotency-Key was used with another token', {
      reason: 'idempotency_key_reused',
      param: 'header Idempotency-Key',
      cause,
    })
  }
}

function derive({ secret, context }: SealKey): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, context, 'idempotent answer', 32))
}
