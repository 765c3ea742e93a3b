import type { Readable } from 'node:stream'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { createGunzip, createZstdDecompress, gunzipSync, zstdDecompressSync } from 'node:zlib'
import { ApiError, invalid } from '../errors.ts'

/** A body that is at most this, and inflates to at most this, is inflated on the event loop: that takes less than a hop. */
const SMALL_COMPRESSED_BYTES = 16 * 1024
const SMALL_BYTES = 256 * 1024
/** What a thread inflates, or the event loop copies, in one step. */
const STEP_BYTES = 256 * 1024

const GZIP = { sync: gunzipSync, stream: createGunzip }
const ZSTD = { sync: zstdDecompressSync, stream: createZstdDecompress }

/**
 * Decompresses a body. Stops at `maxBytes`, so that a decompression bomb cannot use more memory than that.
 * @throws ApiError PAYLOAD_TOO_LARGE, VALIDATION_ERROR
 */
export function inflate(bytes: Uint8Array, encoding: string | null, maxBytes: number): Uint8Array {
  const { name, format } = formatOf(encoding)
  if (format === null) return bytes
  try {
    return format.sync(bytes, { maxOutputLength: maxBytes })
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(maxBytes)
    throw notValid(name, error)
  }
}

/**
 * Like {@link inflate}, in a thread: the event loop does no step of more than a few milliseconds.
 *
 * @param grow is called with the bytes that each step adds; what it throws ends the decompression
 */
export async function inflateAsync(
  bytes: Uint8Array,
  encoding: string | null,
  { maxBytes, grow }: { maxBytes: number; grow: (bytes: number) => void },
): Promise<Uint8Array> {
  const { name, format } = formatOf(encoding)
  if (format === null) return bytes
  if (bytes.length <= SMALL_COMPRESSED_BYTES) {
    try {
      const small = format.sync(bytes, { maxOutputLength: Math.min(SMALL_BYTES, maxBytes) })
      grow(small.length)
      return small
    } catch (error) {
      if (error instanceof ApiError) throw error
      if (!(error instanceof RangeError)) throw notValid(name, error)
      if (maxBytes <= SMALL_BYTES) throw tooLarge(maxBytes)
    }
  }
  // The stream itself accepts data that is cut off.
  if (format === ZSTD && !(await isWholeZstd(bytes))) throw notValid(name, new Error('incomplete'))
  const stream = format.stream({ chunkSize: STEP_BYTES })
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    stream.end(bytes)
    for await (const chunk of stream as Readable) {
      length += chunk.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      grow(chunk.length)
      chunks.push(chunk)
    }
  } catch (error) {
    stream.destroy()
    throw error instanceof ApiError ? error : notValid(name, error)
  }
  return join(chunks, length)
}

const ZSTD_MAGIC = 0xfd2fb528
const DICTIONARY_ID_BYTES = [0, 1, 2, 4]
const CONTENT_SIZE_BYTES = [0, 2, 4, 8]
/** Frames and blocks that are looked at in one step. */
const PARTS_PER_STEP = 500_000

/**
 * Whether the frames are complete, by the lengths of their blocks (RFC 8878). Their content is not checked. In
 * steps, because frames and blocks may be empty, so a body may have millions of them.
 */
async function isWholeZstd(bytes: Uint8Array): Promise<boolean> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  let parts = 0
  while (at < bytes.length) {
    if (++parts % PARTS_PER_STEP === 0) await nextIteration()
    if (at + 8 > bytes.length) return false
    const magic = view.getUint32(at, true)
    if (magic !== ZSTD_MAGIC) {
      // A frame to be skipped, or none: then the stream refuses it.
      if (magic >>> 4 !== 0x184d2a5) return true
      at += 8 + view.getUint32(at + 4, true)
      continue
    }
    const head = bytes[at + 4]
    const isSingleSegment = (head & 0x20) !== 0
    const sizeBytes = isSingleSegment && head < 0x40 ? 1 : CONTENT_SIZE_BYTES[head >> 6]
    at += 5 + (isSingleSegment ? 0 : 1) + DICTIONARY_ID_BYTES[head & 3] + sizeBytes
    for (let isLast = false; !isLast; ) {
      if (++parts % PARTS_PER_STEP === 0) await nextIteration()
      if (at + 3 > bytes.length) return false
      const block = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16)
      isLast = (block & 1) === 1
      // A block of one repeated byte has only that byte.
      at += 3 + (((block >> 1) & 3) === 1 ? 1 : block >> 3)
    }
    if ((head & 4) !== 0) at += 4
  }
  return at === bytes.length
}

/** One array of all chunks. Fresh memory is expensive to write to, so a large one is filled in steps. */
export async function join(chunks: readonly Uint8Array[], length: number): Promise<Uint8Array> {
  if (chunks.length === 1) return chunks[0]
  const joined = Buffer.allocUnsafeSlow(length)
  let at = 0
  let copied = 0
  for (const chunk of chunks) {
    joined.set(chunk, at)
    at += chunk.length
    copied += chunk.length
    if (copied < STEP_BYTES) continue
    copied = 0
    await nextIteration()
  }
  return joined
}

export function tooLarge(maxBytes: number): ApiError {
  return new ApiError('PAYLOAD_TOO_LARGE', `body: expected at most ${maxBytes} bytes, also after decompression`, {
    param: 'body',
  })
}

function notValid(name: string, cause: unknown): ApiError {
  return new ApiError('VALIDATION_ERROR', `body: not valid ${name} data`, {
    reason: 'body_unreadable',
    param: 'body',
    cause,
  })
}

/** How to decompress a body with this Content-Encoding; null if it is not compressed. */
function formatOf(encoding: string | null) {
  const name = (encoding ?? '').trim().toLowerCase()
  if (name === '' || name === 'identity') return { name, format: null }
  if (name === 'gzip' || name === 'x-gzip') return { name, format: GZIP }
  if (name === 'zstd') return { name, format: ZSTD }
  const shown = JSON.stringify(encoding?.slice(0, 80))
  throw invalid('header Content-Encoding', `expected gzip, zstd or identity; got ${shown}`)
}
