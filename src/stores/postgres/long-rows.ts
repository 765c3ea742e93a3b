import type { PageOf } from '../../base/http/page.ts'
import type { Fragment, Sql } from './connect.ts'

const PAGE_BYTES_MAX = 4 << 20

interface LongRows<Key, Row, Item> {
  /** SQL: the keys of the rows of the list, in order; one more than `limit`, if there are as many. */
  readonly keys: Fragment
  readonly limit: number
  /** The page ends with the row that makes the total of its long values exceed this: all of it is sent at once. */
  readonly bytesMax?: number
  /** The columns that may be long. */
  readonly long: readonly string[]
  /** SQL from FROM on: the row with a key. */
  readonly row: (key: Fragment) => Fragment
  /** Reads the rows with these keys, in the order of the list. */
  readonly read: (keys: readonly Key[]) => PromiseLike<readonly Row[]>
  /** The cursor after a row. */
  readonly cursorOf: (key: Key) => string
  /** The row as clients see it. */
  readonly toItem: (row: Row) => Item
}

/**
 * A page of rows that may be long, which therefore may end early. They are measured one after the other, because Postgres has
 * to decompress a long value to know how long it is.
 */
export async function pageOfLong<Key, Row, Item>(
  sql: Sql,
  { keys, limit, bytesMax = PAGE_BYTES_MAX, long, row, read, cursorOf, toItem }: LongRows<Key, Row, Item>,
): Promise<PageOf<Item>> {
  const bytes = sql.unsafe(['0', ...long.map((name) => `coalesce(octet_length(${name}::text), 0)`)].join(' + '))
  const [page] = await sql<[{ keys: readonly Key[]; isLast: boolean }]>`
    with recursive listed as materialized (
      select array(${keys}) as keys
    ), page (rows, bytes) as (
      select 0, 0::bigint
      union all
      select rows + 1, bytes + coalesce((select ${bytes} ${row(sql`listed.keys[page.rows + 1]`)}), 0) from page, listed
      where rows < least(cardinality(listed.keys), ${limit}) and bytes < ${bytesMax}
    )
    select listed.keys[1:most] as keys, cardinality(listed.keys) = most as "isLast"
    from listed, (select max(rows) as most from page) as ends`
  const rows = page.keys.length === 0 ? [] : await read(page.keys)
  return { items: rows.map(toItem), next_cursor: page.isLast ? null : cursorOf(page.keys.at(-1)!) }
}
