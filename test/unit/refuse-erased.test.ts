import { expect, test } from 'bun:test'
import { RunDirectory } from '../../src/activity/runs/directory.ts'
import { refuseErased } from '../../src/service/retention/erase-activity.ts'
import { batchOf, runRef } from '../support/events.ts'
import { openLocal } from '../support/journals.ts'
import { freshDatabase } from '../support/postgres.ts'
import { taskRow } from '../support/rows.ts'
import { scoreBatch } from '../support/scores.ts'
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

test('a new owner of a log refuses events and tasks of a deleted run, and of no other', async () => {
  const { sql } = await freshDatabase()
  const journal = await openLocal(await temporaryDirectory())
  atEnd(() => journal.close())
  const deleted = runRef()
  const [sibling, namesake, elsewhere] = [{ ...runRef(), workspaceId: deleted.workspaceId }, runRef(), runRef()]
  const others = [sibling, { ...namesake, runId: deleted.runId }, elsewhere]
  const insert = ({ runId, workspaceId }: typeof deleted, partition: number) => sql`
    insert into run_erasures (erasure_id, run_id, workspace_id, partition, requested_at)
    values (gen_random_uuid(), ${runId}, ${workspaceId}, ${partition}, now())`
  await insert(deleted, 3)
  await insert(elsewhere, 4)
  await refuseErased(sql, { id: 3, journal })
  const append = (run: typeof deleted) => journal.appendEvents(batchOf(run, [{ type: 'late' }]))
  const appendTask = (run: typeof deleted) => journal.appendTasks([taskRow(run)], [])
  for (const late of [append(deleted), appendTask(deleted)]) await expect(late).rejects.toThrow('run does not exist')
  for (const run of others) await Promise.all([append(run), appendTask(run)])
  expect(journal.endSeq).toBe(6)
})

test('a new owner of a log refuses a deleted score, and no other', async () => {
  const { sql } = await freshDatabase()
  const journal = await openLocal(await temporaryDirectory())
  atEnd(() => journal.close())
  const run = runRef()
  await sql`
    insert into run_erasures (erasure_id, run_id, workspace_id, partition, requested_at, score_id)
    values (gen_random_uuid(), ${run.runId}, ${run.workspaceId}, 3, now(), 'gone')`
  await refuseErased(sql, { id: 3, journal })
  const append = (of: typeof run, ids: string[]) =>
    journal.appendScores(
      scoreBatch(
        of,
        ids.map((id) => ({ id, value: 1 })),
      ),
    )
  await expect(append(run, ['kept', 'gone'])).rejects.toThrow('a score with this id was deleted')
  await append(run, ['kept'])
  await append(runRef(), ['gone'])
  await journal.appendEvents(batchOf(run, [{ type: 'kept' }]))
  expect(journal.endSeq).toBe(3)
})

test('a run that was deleted before the answer to its start arrived stays deleted in memory', async () => {
  const { sql } = await freshDatabase()
  const directory = new RunDirectory(sql)
  const [deleted, other] = [runRef(), runRef()]
  const started = directory.starting()
  directory.forget(deleted)
  started({ partition: 0 }, deleted)
  directory.starting()({ partition: 0 }, other)
  const find = ({ workspaceId, runId }: typeof deleted) => directory.find(workspaceId, runId)
  expect([await find(deleted), find(other)]).toEqual([null, other])
})
