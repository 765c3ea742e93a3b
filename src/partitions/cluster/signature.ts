import { createHmac, timingSafeEqual } from 'node:crypto'
import { ApiError } from '../../http/errors.ts'
import type { Caller } from '../../keys/schema.ts'
import type { ForwardedCall } from '../forward.ts'

/** Names the caller of a forwarded request, and signs it. */
export const FORWARDED_HEADER = 'x-cluster-forwarded'

interface Content extends ForwardedCall {
  /** When it was signed, Unix milliseconds. */
  readonly at: number
}

/** How much the clocks of two nodes may differ, and how long a request may be on its way. */
const VALID_MS = 60_000

/** Signs the requests that nodes send each other, with a key derived from `CLUSTER_SECRET`. */
export class ClusterSignature {
  private readonly key: Buffer

  constructor(
    secret: string,
    private readonly now: () => number = Date.now,
  ) {
    this.key = createHmac('sha256', secret).update('forwarded requests').digest()
  }

  /** The value of {@link FORWARDED_HEADER}. It is valid for this method, path, caller and body only. */
  sign(method: string, path: string, caller: Caller, body: Uint8Array): string {
    const content: Content = { caller, bodyDigest: digestOf(body), at: this.now() }
    const text = Buffer.from(JSON.stringify(content)).toString('base64url')
    return `${text}.${this.check(method, path, text).toString('base64url')}`
  }

  /** Checks the header, before the body is read. @throws ApiError UNAUTHENTICATED */
  verify(header: string, method: string, path: string): ForwardedCall {
    const [text = '', check = ''] = header.split('.')
    const expected = this.check(method, path, text)
    const given = Buffer.from(check, 'base64url')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw notSigned()
    const { at, ...call }: Content = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (Math.abs(this.now() - at) > VALID_MS) throw notSigned()
    return call
  }

  private check(method: string, path: string, text: string): Buffer {
    return createHmac('sha256', this.key).update(`${method} ${path} ${text}`).digest()
  }
}

/** Identifies a body by its SHA-256. */
export function digestOf(body: Uint8Array): string {
  return Bun.SHA256.hash(body, 'base64')
}

/** Refuses a request whose signature is wrong or too old. */
export function notSigned(): ApiError {
  return new ApiError('UNAUTHENTICATED', `${FORWARDED_HEADER}: not signed by a node of this cluster`)
}
