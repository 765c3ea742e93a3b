import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { StartError } from '../../base/start-error.ts'
import type { BackupFile } from './manifest.ts'

/**
 * Copies the first `bytes` bytes of a file. Only its owner can read the copy.
 * @param onBytes called with the size of each copied chunk
 */
export async function copyFile(
  from: string,
  to: string,
  bytes: number,
  onBytes: (bytes: number) => void = () => {},
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  const hash = createHash('sha256')
  let copied = 0
  const tap = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk)
      copied += chunk.length
      onBytes(chunk.length)
      done(null, chunk)
    },
  })
  // Exclusive: it follows no link, and overwrites nothing.
  const target = createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true })
  if (bytes === 0) await pipeline(Buffer.alloc(0), tap, target)
  else await pipeline(createReadStream(from, { end: bytes - 1 }), tap, target)
  return { bytes: copied, sha256: hash.digest('hex') }
}

/** @throws StartError for a file that is missing or has changed */
export async function verifyFile(
  folder: string,
  { path, bytes, sha256 }: BackupFile,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const hash = createHash('sha256')
  let read = 0
  try {
    for await (const chunk of createReadStream(join(folder, path))) {
      hash.update(chunk)
      read += chunk.length
      onBytes(chunk.length)
    }
  } catch (cause) {
    throw new StartError(`the backup is damaged: ${path} cannot be read`, { cause })
  }
  if (read !== bytes || hash.digest('hex') !== sha256)
    throw new StartError(`the backup is damaged: ${path} has changed since it was written`)
}
