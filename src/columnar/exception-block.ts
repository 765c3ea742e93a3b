import { ClickHouseFailure } from './protocol.ts'

/**
 * How ClickHouse (25.11 and later) reports a failure when part of the answer is on its way already: a header names a tag,
 * and a block marked with it ends the body, which is then cut off. The tag is random, so that no row can look like one.
 */

export const EXCEPTION_TAG_HEADER = 'X-ClickHouse-Exception-Tag'

const TAG_LENGTH = 16
/** ClickHouse writes no more of a message than this. */
const BLOCK_BYTES_MAX = 16 * 1024

export function mintExceptionTag(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(TAG_LENGTH / 2))).toString('hex')
}

/** The end of an answer that failed. */
export function exceptionBlock(tag: string, failure: ClickHouseFailure, version: string): Buffer {
  const message = `${failure
    .toText(version)
    .trim()
    .slice(0, BLOCK_BYTES_MAX / 2)}\n`
  return Buffer.from(`${opening(tag)}${message}${Buffer.byteLength(message)} ${tag}\r\n${MARKER}\r\n`)
}

/** Parts an answer, as it comes, from the block that may end it. */
export class ExceptionScanner {
  private readonly opening: Buffer
  /** What may be the beginning of the block; once it is known to be, all of it. */
  private rest: Buffer = EMPTY
  private isFailed = false

  constructor(private readonly tag: string) {
    this.opening = Buffer.from(opening(tag))
  }

  /** @returns what is certainly part of the answer */
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

  /** What is left at the end of a body: the last bytes of the answer, or why it failed. */
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

const MARKER = '__exception__'
const EMPTY = Buffer.alloc(0)

function opening(tag: string): string {
  return `\r\n${MARKER}\r\n${tag}\r\n`
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
