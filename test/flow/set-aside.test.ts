import { expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService } from '../support/service.ts'

/** How long rows that were set aside wait for an operator: docs/operations.md#health. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** The numbers of the rows that retention keeps, of some whose ages are given, in milliseconds. */
async function keptOf(ages: readonly number[]): Promise<number[]> {
  const { url, sql } = await freshDatabase()
  await sql`
    insert into outbox_set_aside (outbox_id, entry_id, workspace_id, kind, body, set_aside_at)
    select n, gen_random_uuid(), gen_random_uuid(), 'run', '{}', now() - make_interval(secs => age / 1000)
    from unnest(${ages as number[]}::float8[]) with ordinality as row (age, n)`
  const service = await startTestService({ DATABASE_URL: url })
  const kept = await eventually(async () => {
    const rows = await sql<{ outbox_id: number }[]>`select outbox_id from outbox_set_aside order by outbox_id`
    return rows.length < ages.length && rows
  })
  await service.stop()
  return kept.map(({ outbox_id }) => outbox_id)
}

test('rows of outbox_set_aside are kept for 30 days', async () => {
  expect(await keptOf([30 * DAY_MS + HOUR_MS, 30 * DAY_MS - HOUR_MS, 0])).toEqual([2, 3])
})

test('of many rows of outbox_set_aside the newest 10,000 are kept', async () => {
  const ages = Array.from({ length: 10_003 }, (_, n) => n * 1_000)
  expect(await keptOf(ages)).toEqual(Array.from({ length: 10_000 }, (_, n) => n + 1))
})
