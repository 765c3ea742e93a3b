import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { invalid } from '../errors.ts'
import { parsedJson } from '../json-object.ts'

/** Page size without `?limit=` (docs/api.md#lists). */
export const PAGE_LIMIT_DEFAULT = 50

/** A page of a list: see `Page` in `schema.ts`. */
export interface PageOf<T> {
  items: T[]
  next_cursor: string | null
}

/**
 * Encodes positions in a list. A cursor is opaque to clients, but neither secret nor signed: a query with a forged one
 * still returns only the caller's own rows.
 * @param schema the sort key of the list, such as `t.Tuple([Timestamp, Uuid])`
 */
export function cursorCodec<S extends TSchema>(schema: S) {
  return {
    encode: (position: Static<S>): string => Buffer.from(JSON.stringify(position)).toString('base64url'),
    /** @throws ApiError VALIDATION_ERROR if the text is not a cursor of this list */
    decode(cursor: string): Static<S> {
      const position = parsedJson(Buffer.from(cursor, 'base64url').toString())
      if (!Value.Check(schema, position))
        throw invalid('query.cursor', 'expected the next_cursor of a page of this list')
      return position
    },
  }
}

/**
 * @param rows up to `limit + 1` rows in list order; the extra row means that another page follows
 * @param cursorOf the cursor after a row
 * @param toItem the row as clients see it
 */
export function pageOf<R, T>(
  rows: readonly R[],
  limit: number,
  cursorOf: (row: R) => string,
  toItem: (row: R) => T,
): PageOf<T> {
  const next_cursor = rows.length > limit ? cursorOf(rows[limit - 1]!) : null
  return { items: rows.slice(0, limit).map(toItem), next_cursor }
}
