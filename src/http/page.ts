import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { invalid } from './errors.ts'

/** Items on a page unless `?limit=` says otherwise (docs/specification.md#lists). */
export const PAGE_LIMIT_DEFAULT = 50

/** A page as it is sent: see `Page` in `schema.ts`. */
export interface PageOf<T> {
  items: T[]
  next_cursor: string | null
}

/**
 * The position in a list after one of its items. Opaque to clients; not secret and not signed, because a query built
 * from a forged one still sees only the caller's own rows.
 */
export interface CursorCodec<T> {
  encode(position: T): string
  /** @throws ApiError VALIDATION_ERROR if the text is not one of ours */
  decode(cursor: string): T
}

/** `schema` describes the key the list is ordered by, as in `t.Tuple([Timestamp, Uuid])`. */
export function cursorCodec<S extends TSchema>(schema: S): CursorCodec<Static<S>> {
  return {
    encode: (position) => Buffer.from(JSON.stringify(position)).toString('base64url'),
    decode(cursor) {
      const position = parse(cursor)
      if (!Value.Check(schema, position))
        throw invalid('query.cursor', 'expected the next_cursor of a page of this list')
      return position
    },
  }
}

/**
 * @param rows up to `limit + 1` rows in the list's order: the one too many tells that another page follows
 * @param cursorOf the cursor after a row
 */
export function pageOf<T>(rows: readonly T[], limit: number, cursorOf: (row: T) => string): PageOf<T> {
  const items = rows.slice(0, limit)
  return { items, next_cursor: rows.length > limit ? cursorOf(items[limit - 1]) : null }
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}
