import { mint } from '../../base/ids.ts'
import type { Caller } from './schema.ts'

/**
 * The text of an API key: `svc_agent_` or `svc_ws_`, 43 random base62 characters, 6 characters of checksum
 * (docs/keys.md#key-format). The checksum rejects a mistyped or made-up key without a database query. A feed token
 * has the same format with `svc_feed_`, the token of a sign-in with `svc_person_`.
 */

export type KeyType = Caller['type']
type TokenType = KeyType | 'feed' | 'person'

/** A new key. `text` is shown once to its owner; the database stores the rest. */
export interface Token {
  readonly text: string
  readonly hash: Buffer
  /** Identifies the key in a list. */
  readonly prefix: string
  readonly last4: string
}

const PREFIX_OF: Record<TokenType, string> = {
  agent: 'svc_agent_',
  workspace: 'svc_ws_',
  feed: 'svc_feed_',
  person: 'svc_person_',
}
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^43 is the first power of 62 past 2^256, and 62^6 the first past 2^32. */
const BODY_LENGTH = 43
const CHECKSUM_LENGTH = 6
const SHOWN_LENGTH = 4
const FORMAT = /^svc_(agent|ws|feed|person)_[0-9A-Za-z]{49}$/

/** @param secret what it is made of, {@link Mint.secret} */
export function mintToken(type: TokenType, secret = mint.secret()): Token {
  const unsigned = PREFIX_OF[type] + base62(BigInt(`0x${secret.toString('hex')}`), BODY_LENGTH)
  return describeToken(unsigned + checksum(unsigned))
}

/** Derives the stored parts from a well-formed key. */
export function describeToken(text: string): Token {
  const shown = text.lastIndexOf('_') + 1 + SHOWN_LENGTH
  return { text, hash: hashKey(text), prefix: text.slice(0, shown), last4: text.slice(-4) }
}

/** The type of a key with a valid format and checksum, which need not exist; null for any other text. */
export function isWellFormedKey(text: string): KeyType | null {
  const type = tokenTypeOf(text)
  return type === 'agent' || type === 'workspace' ? type : null
}

/** Whether a text has the prefix of feed tokens. */
export function isFeedToken(text: string): boolean {
  return text.startsWith(PREFIX_OF.feed)
}

/** The same for a key, a feed token or a sign-in. */
export function tokenTypeOf(text: string): TokenType | null {
  const match = FORMAT.exec(text)
  if (match === null) return null
  const unsigned = text.slice(0, -CHECKSUM_LENGTH)
  if (checksum(unsigned) !== text.slice(-CHECKSUM_LENGTH)) return null
  return match[1] === 'ws' ? 'workspace' : (match[1] as Exclude<TokenType, 'workspace'>)
}

/**
 * SHA-256 of the key, the only form in which keys are stored. A key has 256 random bits, so it needs no salt or
 * stretching.
 */
export function hashKey(text: string): Buffer {
  return Buffer.from(Bun.SHA256.hash(text).buffer)
}

/** CRC-32 (IEEE) of the text before it. */
function checksum(unsigned: string): string {
  return base62(BigInt(Bun.hash.crc32(unsigned)), CHECKSUM_LENGTH)
}

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; rest > 0n; rest /= 62n) text = ALPHABET[Number(rest % 62n)] + text
  return text.padStart(length, '0')
}
