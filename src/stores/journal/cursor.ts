/** The largest position that a cursor can name. */
export const SEQ_MAX = 10 ** 15 - 1
const CURSOR = /^(?:([\w-]{1,64})\.)?(\d{1,15})$/

/**
 * A position in a journal as clients see it: opaque, totally ordered within an epoch, meaningless in another epoch
 * (docs/feeds.md#cursors). A feed that resumes there sends everything after it.
 */
export function encodeCursor(epoch: string, seq: number): string {
  return `${epoch}.${seq}`
}

interface ParsedCursor {
  /** Null for a bare position, which refers to the current journal. */
  readonly epoch: string | null
  readonly seq: number
}

/** Parses a cursor, or a bare `seq` as returned for reported events. Null if it is neither. */
export function parseCursor(text: string): ParsedCursor | null {
  const match = CURSOR.exec(text)
  return match === null ? null : { epoch: match[1] ?? null, seq: Number(match[2]) }
}
