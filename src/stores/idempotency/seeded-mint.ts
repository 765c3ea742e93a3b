import { hkdfSync } from 'node:crypto'
import { type Mint, mint } from '../../base/ids.ts'

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/**
 * Mints the same identifiers and secrets in the same order for the same seed, so that a request that is retried after a crash creates
 * the same rows. UUIDs have the format of version 7. UUIDs and ULIDs carry `createdAtMs` as their time and increase with
 * each call.
 * @param token the caller's, which the database does not have: who reads the seed there cannot tell the secrets
 */
export function seededMint(seed: string, createdAtMs: number, token: string): Mint {
  const uuidBits = new Bun.CryptoHasher('sha256').update(`uuid ${seed}`).digest('hex')
  const ulidBits = new Bun.CryptoHasher('sha256').update(`ulid ${seed}`).digest()
  const time = createdAtMs.toString(16).padStart(12, '0')
  const uuidPrefix = `${time.slice(0, 8)}-${time.slice(8)}-7${uuidBits.slice(0, 3)}-b${uuidBits.slice(3, 6)}-`
  const ulidPrefix = base32(createdAtMs, 10) + [...ulidBits.subarray(0, 8)].map((byte) => CROCKFORD[byte & 31]).join('')
  // 47 and 39 random bits, so that counting up cannot overflow 48 and 40 bits.
  let nextUuid = Number.parseInt(uuidBits.slice(6, 18), 16) % 2 ** 47
  let nextSecret = 0
  let nextUlid = Number.parseInt(uuidBits.slice(18, 28), 16) % 2 ** 39
  return {
    uuid: () => uuidPrefix + (nextUuid++).toString(16).padStart(12, '0'),
    ulid: () => ulidPrefix + base32(nextUlid++, 8),
    secret() {
      if (token === '') return mint.secret()
      return Buffer.from(hkdfSync('sha256', token, `${seed} ${nextSecret++}`, 'idempotent secret', 32))
    },
  }
}

function base32(value: number, length: number): string {
  let text = ''
  for (let i = 0; i < length; i++) {
    text = CROCKFORD[value % 32] + text
    value = Math.floor(value / 32)
  }
  return text
}
