import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Encrypts texts with a key that is stored separately from them. */
export interface Vault {
  seal(text: string, location: SecretLocation): Sealed
  /** @returns null if it was sealed with another key or for another location, or has been modified */
  open(sealed: Sealed, location: SecretLocation): string | null
}

/** The secret that a ciphertext belongs to, bound to it as additional data: it cannot be opened as another secret. */
interface SecretLocation {
  readonly workspaceId: string
  readonly name: string
}

/** AES-256-GCM. Layout: nonce, tag, ciphertext. */
export interface Sealed {
  readonly sealed: Uint8Array
  readonly key_id: string
}

interface VaultOptions {
  /**
   * From `SECRETS_KEY`. Undefined: the file `secrets.key` in `dataDir`, which is created when something is first
   * sealed.
   */
  readonly key: Uint8Array | undefined
  readonly dataDir: string
}

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_ID_LENGTH = 16
const KEY_FILE = 'secrets.key'

export function createVault({ key: given, dataDir }: VaultOptions): Vault {
  const file = join(dataDir, KEY_FILE)
  let kept = given === undefined ? undefined : keyOf(given)
  const existing = () => {
    kept ??= readKeyFile(file)
    return kept
  }
  return {
    seal(text, location) {
      kept = existing() ?? makeKeyFile(file)
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(ALGORITHM, kept.bytes, nonce)
      cipher.setAAD(aad(location))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return { sealed: Buffer.concat([nonce, cipher.getAuthTag(), body]), key_id: kept.id }
    },
    open({ sealed, key_id }, location) {
      const key = existing()
      if (key === undefined || key.id !== key_id) return null
      try {
        const nonce = sealed.subarray(0, NONCE_BYTES)
        // Otherwise a truncated tag would be accepted.
        const decipher = createDecipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG_BYTES })
        decipher.setAAD(aad(location))
        decipher.setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
        const body = sealed.subarray(NONCE_BYTES + TAG_BYTES)
        return Buffer.concat([decipher.update(body), decipher.final()]).toString()
      } catch {
        return null
      }
    },
  }
}

/**
 * The value of `SECRETS_KEY`: 32 bytes, as hexadecimal digits or base64.
 * @throws Error whose message follows `SECRETS_KEY ` and does not contain the value
 */
export function parseSecretsKey(text: string): Uint8Array {
  const isHex = /^[\da-f]{64}$/i.test(text)
  const isBase64 = /^[A-Za-z\d+/_-]{43}=?$/.test(text)
  const bytes = isHex ? Buffer.from(text, 'hex') : isBase64 ? Buffer.from(text, 'base64') : null
  if (bytes?.byteLength === KEY_BYTES) return bytes
  throw new Error('must be 32 bytes as base64 or as 64 hexadecimal digits; `openssl rand -base64 32` makes one')
}

interface Key {
  readonly bytes: Uint8Array
  readonly id: string
}

function keyOf(bytes: Uint8Array): Key {
  const id = createHash('sha256').update('id of a secrets key').update(bytes).digest('hex').slice(0, KEY_ID_LENGTH)
  return { bytes, id }
}

function aad({ workspaceId, name }: SecretLocation): Uint8Array {
  return Buffer.from(`${workspaceId.toLowerCase()}/${name}`)
}

function readKeyFile(file: string): Key | undefined {
  try {
    return keyOf(parseSecretsKey(readFileSync(file, 'utf8').trim()))
  } catch (cause) {
    if ((cause as { code?: unknown }).code === 'ENOENT') return undefined
    throw new Error(`${KEY_FILE} in DATA_DIR cannot be read or is not a valid key`, { cause })
  }
}

/**
 * Creates the file atomically and syncs it before anything is sealed with the key, because losing the key means losing
 * every secret.
 */
function makeKeyFile(file: string): Key {
  const bytes = randomBytes(KEY_BYTES)
  const draft = `${file}.${crypto.randomUUID()}`
  try {
    synced(openSync(draft, 'wx', 0o600), (fd) => writeSync(fd, `${bytes.toString('base64')}\n`))
    // Unlike a rename, a link does not replace a key created in the meantime.
    linkSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
  synced(openSync(dirname(file), 'r'), () => {})
  return keyOf(bytes)
}

function synced(fd: number, work: (fd: number) => void): void {
  try {
    work(fd)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
