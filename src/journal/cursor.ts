/**
 * A position in a journal as clients see it: opaque to them, totally ordered within an epoch, of no meaning in another
 * (docs/specification.md#cursors). All after it is what a feed that resumes there has yet to send.
 */
export function encodeCursor(epoch: string, seq: number): string {
  return `${epoch}.${seq}`
}

export interface ParsedCursor {
  /** Null for a bare position, which means one of the journal of now. */
  readonly epoch: string | null
  readonly seq: number
}

/** Reads a cursor, or a `seq` as the answer to reported events has it. Null if it is neither. */
export function parseCursor(text: string): ParsedCursor | null {
  const match = CURSOR.exec(text)
  return match === null ? null : { epoch: match[1] ?? null, seq: Number(match[2]) }
}

/** The largest position that a cursor can name. */
export const SEQ_MAX = 10 ** 15 - 1

const CURSOR = /^(?:([\w-]{1,64})\.)?(\d{1,15})$/
