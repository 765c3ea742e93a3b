import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { Loops } from '../../src/base/loops.ts'
import { nextTick } from '../../src/sql/alerts/rows.ts'
import { startAlertScheduler } from '../../src/sql/alerts/scheduler.ts'
import { AlertStore } from '../../src/sql/alerts/store.ts'
import type { Analytics, AsOfSession } from '../../src/sql/analytics/analytics.ts'
import type { OwnedPartition } from '../../src/tenants/partitions/partition.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/postgres.ts'
import { atEnd } from '../support/teardown.ts'

/** Which alerts are evaluated, by which owner: on a real Postgres, with a query that has no rows. */

const MINUTE_MS = 60_000
const ALERTS = 20

interface Owned {
  readonly id: number
  readonly generation?: number
  readonly isLoading?: boolean
}

/** Starts the scheduler of a process that owns these partitions. Each has a workspace with alerts whose tick is past. */
async function startScheduler(owned: readonly Owned[]) {
  const { sql } = await freshDatabase()
  const clock = { now: () => Date.now() }
  const evaluated: string[] = []
  const session: Omit<AsOfSession, typeof Symbol.dispose> = {
    run: async ({ query }) => {
      evaluated.push(query)
      return { columns: [{ name: 'n', type: 'UInt64' }], rows: [] }
    },
  }
  const analytics = { asOf: () => ({ ...session, [Symbol.dispose]() {} }) } as Pick<Analytics, 'asOf'>
  const tick = new Date(nextTick(Date.now(), MINUTE_MS) - MINUTE_MS)
  for (const { id } of owned) {
    const workspace_id = crypto.randomUUID()
    await sql`insert into workspaces ${sql({ workspace_id, name: `${id}`, partition: id, created_at: tick, updated_at: tick })}`
    for (let n = 0; n < ALERTS; n++) {
      const settings = { every_seconds: 60, for_seconds: 0, keep_firing_seconds: 0, no_data: 'ok', on_error: 'last' }
      const row = {
        ...{ alert_id: crypto.randomUUID(), workspace_id, name: `${n}`, query: `${id}`, params: {} },
        ...{ ...settings, by_columns: [], condition: null, notify: [], is_enabled: true, states: [] },
        ...{ shown_states: [], series_count: 0, next_at: tick, created_at: tick, updated_at: tick },
      }
      await sql`insert into alerts ${sql(row as never)}`
    }
  }
  const partitions = owned.map(
    ({ id, generation = 0, isLoading = true }) =>
      ({
        ...{ id, generation, journal: { endSeq: 1, hold: async () => () => {} } },
        sink: { waitFor: async () => isLoading },
      }) as unknown as OwnedPartition,
  )
  const log = createLog('error')
  const loops = new Loops(log)
  const store = new AlertStore({ sql, clock, analytics: analytics as Analytics, onChange() {}, secondMs: 1_000 })
  const deps = { sql, store, analytics, clock, log, loops, onChange() {}, secondMs: 1_000, pollMs: 20 }
  atEnd(startAlertScheduler({ ...deps, partitions: { owned: () => partitions } }))
  const storedOf = async (id: number) =>
    (await sql<{ n: number }[]>`select count(evaluated_at)::int as n from alerts where query = ${`${id}`}`)[0]!.n
  return { sql, evaluated, storedOf, stateOf: (name: string) => loops.states().find((state) => state.name === name)! }
}

test('a partition that does not load takes no slot from the alerts of another, and readiness says so', async () => {
  const { evaluated, storedOf, stateOf } = await startScheduler([{ id: 0, isLoading: false }, { id: 1 }])
  await eventually(async () => expect(await storedOf(1)).toBe(ALERTS))
  expect(evaluated).not.toContain('0')
  await eventually(() => stateOf('evaluations of alerts').failures > 1)
  expect(String(stateOf('evaluations of alerts').lastError)).toContain('not readable yet')
  expect(await storedOf(0)).toBe(0)
})

test('a process that no longer owns the partition decides no tick', async () => {
  const { sql, evaluated, storedOf } = await startScheduler([{ id: 1, generation: 4 }])
  const row = { partition: 1, epoch: 'e', epochs: [], seal_key: Buffer.alloc(32), generation: 5 }
  await sql`insert into journal_partitions ${sql(row as never)} on conflict (partition) do nothing`
  await eventually(() => evaluated.length >= 8)
  expect(await storedOf(1)).toBe(0)
  await sql`update journal_partitions set generation = 4`
  await eventually(async () => expect(await storedOf(1)).toBe(ALERTS))
})
