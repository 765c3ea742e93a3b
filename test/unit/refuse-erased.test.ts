import { expect, test } from 'bun:test'
import { refuseErased } from '../../src/service/retention/erase-activity.ts'
import { batchOf, runRef } from '../support/events.ts'
import { openLocal } from '../support/journals.ts'
import { freshDatabase } from '../support/postgres.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

test('a new owner of a log refuses rows of a workspace that was erased before, and of no other', async () => {
  const { sql } = await freshDatabase()
  const journal = await openLocal(await temporaryDirectory())
  atEnd(() => journal.close())
  const [erased, erasing, elsewhere] = [runRef(), runRef(), runRef()]
  const insert = (workspaceId: string, partition: number, isGone: boolean) => sql`
    insert into erasures (workspace_id, partition, requested_at, state_gone_at)
    values (${workspaceId}, ${partition}, now(), ${isGone ? new Date() : null})`
  await insert(erased.workspaceId, 3, true)
  await insert(erasing.workspaceId, 3, false)
  await insert(elsewhere.workspaceId, 4, true)
  await refuseErased(sql, { id: 3, journal })
  const append = (run: typeof erased) => journal.appendEvents(batchOf(run, [{ type: 'late' }]))
  await expect(append(erased)).rejects.toThrow('is being erased')
  for (const run of [erasing, elsewhere]) await append(run)
  expect(journal.endSeq).toBe(2)
})
