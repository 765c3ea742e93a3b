import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { ApiError } from '../../../base/errors.ts'
import type { ForwardedCall } from '../../keys/forward.ts'
import type { Caller } from '../../keys/schema.ts'

/** Names the caller of a forwarded request, and signs it. */
export const FORWARDED_HEADER = 'x-cluster-forwarded'

interface Content extends ForwardedCall {
  /** When it was signed, Unix milliseconds. */
  readonly at: number
  /** The instance id of the receiver. */
  readonly to: string
  /** The signer, and the number of the call among its calls: every call is accepted once. */
  readonly from: string
  readonly number: number
}

const WRONG_NODE = 'a call for another node arrived here: check the INSTANCE_URL of the nodes'
/** How far the clocks of two nodes may differ, including the time that a request is on its way. */
const VALID_MS = 60_000

/** Signs the requests that nodes send each other, with a key derived from `CLUSTER_SECRET`. */
export class NodeSignature {
  private readonly key: Buffer
  /** Identifies this signer. Not the instance id, because each signer counts its calls from 1. */
  private readonly from = randomUUID()
  private number = 0
  private readonly seen = new SeenCalls(VALID_MS)

  /** @param instanceId of this process */
  constructor(
    secret: string,
    private readonly instanceId: string,
    private readonly now: () => number = Date.now,
  ) {
    this.key = createHmac('sha256', secret).update('forwarded requests').digest()
  }

  /** The value of {@link FORWARDED_HEADER}. It is valid once, for this process, method, path, caller and body only. */
  sign(to: string, method: string, path: string, caller: Caller, body: Uint8Array): string {
    const { from } = this
    const content: Content = { caller, bodyDigest: digestOf(body), at: this.now(), to, from, number: ++this.number }
    const text = Buffer.from(JSON.stringify(content)).toString('base64url')
    return `${text}.${this.check(method, path, text).toString('base64url')}`
  }

  /**
   * Checks the header, before the body is read.
   * @throws ApiError UNAUTHENTICATED when it was not signed by a node, or is old or repeated; UNAVAILABLE when it is for another node
   */
  verify(header: string, method: string, path: string): ForwardedCall {
    const [text = '', check = ''] = header.split('.')
    const expected = this.check(method, path, text)
    const given = Buffer.from(check, 'base64url')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw notSigned()
    const content: Content = JSON.parse(Buffer.from(text, 'base64url').toString())
    const { caller, bodyDigest, at, to } = content
    const now = this.now()
    if (Math.abs(now - at) > VALID_MS) throw notSigned()
    if (to !== this.instanceId) throw new ApiError('UNAVAILABLE', WRONG_NODE, { retryAfterSeconds: 1 })
    if (!this.seen.add(content, now)) throw notSigned()
    return { caller, bodyDigest }
  }

  /** The answer to a challenge that only a process of this cluster can compute: proves that it is this instance. */
  prove(challenge: string, instanceId = this.instanceId): string {
    return createHmac('sha256', this.key).update(`node ${instanceId} ${challenge}`).digest('base64url')
  }

  private check(method: string, path: string, text: string): Buffer {
    return new Bun.CryptoHasher('sha256', this.key).update(`${method} ${path} ${text}`).digest()
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

/** How far calls of one sender may overtake each other. */
const WINDOW = 65_536
/** Senders remembered: 8 KiB each. A cluster has far fewer, even when its nodes start again and again. */
const SENDERS_MAX = 1_024

interface SentCall {
  readonly from: string
  /** Counts the calls of this sender. */
  readonly number: number
  /** When it was signed, Unix milliseconds. */
  readonly at: number
}

/** The calls of one sender: of the last {@link WINDOW} numbers, one bit each. */
class Sender {
  lastMs = 0
  private highest = 0
  private readonly bits = new Uint32Array(WINDOW / 32)

  add(number: number): boolean {
    if (number <= this.highest - WINDOW) return false
    // Bits of numbers that have left the window are used again.
    if (number - this.highest >= WINDOW) this.bits.fill(0)
    else for (let next = this.highest + 1; next <= number; next++) this.bits[wordOf(next)] &= ~bitOf(next)
    this.highest = Math.max(this.highest, number)
    if ((this.bits[wordOf(number)] & bitOf(number)) !== 0) return false
    this.bits[wordOf(number)] |= bitOf(number)
    return true
  }
}

function wordOf(number: number): number {
  return (number % WINDOW) >>> 5
}

function bitOf(number: number): number {
  return 1 << (number & 31)
}

/** Signed calls that have arrived, so that a repeated one is refused. Its memory is bounded by the number of senders. */
export class SeenCalls {
  private readonly senders = new Map<string, Sender>()

  /** @param validMs older calls are refused by their age */
  constructor(private readonly validMs: number) {}

  /** @returns false for a call that was added before, or is too old to tell, and when there are too many senders */
  add({ from, number, at }: SentCall, now: number): boolean {
    if (!Number.isSafeInteger(number) || number < 1) return false
    let sender = this.senders.get(from)
    if (sender === undefined) {
      if (this.senders.size >= SENDERS_MAX) this.forgetOld(now)
      if (this.senders.size >= SENDERS_MAX) return false
      sender = new Sender()
      this.senders.set(from, sender)
    }
    sender.lastMs = Math.max(sender.lastMs, at)
    return sender.add(number)
  }

  private forgetOld(now: number): void {
    for (const [from, { lastMs }] of this.senders) if (now - lastMs > this.validMs) this.senders.delete(from)
  }
}
