import type { Log } from '../../base/log.ts'
import type { Sql } from '../../stores/postgres/connect.ts'

const DAYS = 30
const DAY_MS = 86_400_000
const ROWS_MAX = 10_000

/** Deletes rows of `outbox_set_aside` that have waited too long for an operator, and all but the newest. @param now Unix milliseconds */
export async function expireSetAside(sql: Sql, now: number, log: Log): Promise<void> {
  const { count: rows } = await sql`
    delete from outbox_set_aside where set_aside_at < ${new Date(now - DAYS * DAY_MS)} or entry_id in (
      select entry_id from outbox_set_aside order by set_aside_at desc, outbox_id desc, entry_id offset ${ROWS_MAX}
    )`
  if (rows > 0) log.warn('retention: deleted rows of outbox_set_aside that nobody put back', { rows })
}
