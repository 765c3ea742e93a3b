import { createHash } from 'node:crypto'
import { preferredEncoding } from './answer.ts'

/** The file is revalidated on each request. */
export const ALWAYS_ASK = 'no-cache'
/** For a URL that contains a hash of the content. */
export const NEVER_ASK = 'public, max-age=31536000, immutable'

/** A file that never changes while the process runs, ready to be sent. */
export interface StaticFile {
  readonly type: string
  /** Hash of its content. */
  readonly hash: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly gzip: Uint8Array<ArrayBuffer>
  readonly zstd: Uint8Array<ArrayBuffer>
}

/** Compresses a file once, as well as possible. Takes about 30 ms for 100 KB. */
export function toStaticFile(bytes: Uint8Array<ArrayBuffer>, type: string): StaticFile {
  return {
    type,
    hash: createHash('sha256').update(bytes).digest('base64url').slice(0, 22),
    bytes,
    gzip: Bun.gzipSync(bytes, { level: 9 }),
    // Its type allows for shared memory, which it never uses.
    zstd: Bun.zstdCompressSync(bytes, { level: 19 }) as Buffer<ArrayBuffer>,
  }
}

/**
 * Sends a file with the encoding that the client prefers and an ETag of its own for each encoding; 304 if the client
 * has it.
 *
 * @param headers of the answer, besides those of the file
 */
export function sendStaticFile(
  request: Request,
  file: StaticFile,
  headers: Readonly<Record<string, string>>,
): Response {
  const encoding = preferredEncoding(request.headers.get('accept-encoding'))
  const etag = `"${file.hash}${encoding === null ? '' : `-${encoding}`}"`
  const all = new Headers({ ...headers, 'content-type': file.type, vary: 'accept-encoding', etag })
  if (isFresh(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers: all })
  if (encoding === null) return new Response(file.bytes, { headers: all })
  all.set('content-encoding', encoding)
  return new Response(file[encoding], { headers: all })
}

/** A cache may have marked the tag as weak, which makes no difference for whole files. */
function isFresh(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag || tag.trim() === '*')
}
