import { ClickHouseFailure } from './protocol.ts'

/**
 * How ClickHouse (25.11 and later) reports a failure after part of the response has been sent: a header contains a tag,
 * and a block marked with that tag ends the body. The tag is random, so that no row can be mistaken for it.
 */

export const EXCEPTION_TAG_HEADER = 'X-ClickHouse-Exception-Tag'
const TAG_LENGTH = 16
/** Maximum size of ClickHouse's exception block. */
const BLOCK_BYTES_MAX = 16 * 1024
const MARKER = '__exception__'
const EMPTY = Buffer.alloc(0)

export function mintExceptionTag(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(TAG_LENGTH / 2))).toString('hex')
}

/** The final block of a failed response. */
export function exceptionBlock(tag: string, failure: ClickHouseFailure, version: string): Buffer {
  const message = `${failure
    .toText(version)
    .trim()
    .slice(0, BLOCK_BYTES_MAX / 2)}\n`
  return Buffer.from(`${opening(tag)}${message}${Buffer.byteLength(message)} ${tag}\r\n${MARKER}\r\n`)
}

/** Separates a streamed response from the exception block that may end it. */
export class ExceptionScanner {
  private readonly opening: Buffer
  /** Bytes that may be the beginning of the block; once it is confirmed, the block itself. */
  private rest: Buffer = EMPTY
  private isFailed = false

  constructor(private readonly tag: string) {
    this.opening = Buffer.from(opening(tag))
  }

  /** @returns the bytes that are certainly part of the response */
  push(chunk: Uint8Array): Buffer {
    const all = this.rest.length === 0 ? asBuffer(chunk) : Buffer.concat([this.rest, chunk])
    if (this.isFailed) {
      this.rest = all.subarray(0, BLOCK_BYTES_MAX)
      return EMPTY
    }
    const at = all.indexOf(this.opening)
    this.isFailed = at >= 0
    const end = this.isFailed ? at : all.length - this.openingBegunIn(all)
    this.rest = Buffer.from(all.subarray(end))
    return all.subarray(0, end)
  }

  /** At the end of the body: the last bytes of the response, or the failure. */
  end(): Buffer | ClickHouseFailure {
    if (!this.isFailed) return this.rest
    const text = this.rest.subarray(this.opening.length).toString('utf8')
    const end = text.lastIndexOf(`\n`, text.lastIndexOf(` ${this.tag}\r\n${MARKER}`))
    return ClickHouseFailure.fromText(end < 0 ? text : text.slice(0, end))
  }

  /** How many of the last bytes could be the first of the opening. */
  private openingBegunIn(bytes: Buffer): number {
    for (let length = Math.min(this.opening.length - 1, bytes.length); length > 0; length--) {
      if (bytes.subarray(bytes.length - length).equals(this.opening.subarray(0, length))) return length
    }
    return 0
  }
}

function opening(tag: string): string {
  return `\r\n${MARKER}\r\n${tag}\r\n`
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
