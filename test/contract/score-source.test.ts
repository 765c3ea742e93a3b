import { expect, test } from 'bun:test'
import type { StoredId } from '../../src/activity/claims/claim-index.ts'
import { createClaimSource, SCORE_IDS } from '../../src/activity/claims/claim-source.ts'
import type { RunRef } from '../../src/base/ids.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { runRef } from '../support/events.ts'

/** What ClickHouse answers to the index of scores. */

test('the latest hashes of wanted scores, of these runs of this workspace only', async () => {
  const { client } = await freshColumnarDatabase()
  const one = runRef()
  const two: RunRef = { ...one, runId: crypto.randomUUID() }
  const other: RunRef = { ...one, workspaceId: crypto.randomUUID() }
  const rows = [
    ...[scoreRow(one, 'a', 1, 11), scoreRow(one, 'a', 2, 12), scoreRow(one, "it's", 3, 13), scoreRow(one, 'c', 4, 14)],
    ...[scoreRow(two, 'a', 5, 21), scoreRow(two, 'b', 6, 22), scoreRow(other, 'a', 7, 31)],
  ]
  await client.command(
    `insert into scores (workspace_id, agent_id, run_id, score_id, seq, content_hash) values ${rows.join()}`,
  )
  const source = createClaimSource(SCORE_IDS, {
    client,
    journal: { endSeq: 7 },
    loading: { waitFor: async () => true },
    columnarMark: () => ({ journal: crypto.randomUUID(), beat: 0 }),
  })
  const few = await source.few([one, two])
  expect(few.map((ids) => Object.fromEntries(ids as StoredId[]))).toEqual([
    { a: 12, "it's": 13, c: 14 },
    { a: 21, b: 22 },
  ])
  const found: unknown[] = []
  const visit = (runId: string, id: string, hash: number) => found.push([runId === one.runId ? 'one' : 'two', id, hash])
  const wanted = [
    ...[one, two].map((run) => ({ run, id: 'a' })),
    ...["it's", 'b', 'unknown'].map((id) => ({ run: one, id })),
  ]
  await source.among(wanted, visit)
  expect(found.sort()).toEqual([
    ['one', 'a', 12],
    ['one', "it's", 13],
    ['two', 'a', 21],
  ])
  expect(await source.all(two)).toEqual([
    ['a', 21],
    ['b', 22],
  ])
})

function scoreRow({ workspaceId, agentId, runId }: RunRef, id: string, seq: number, hash: number): string {
  return `('${workspaceId}', '${agentId}', '${runId}', '${id.replace("'", "\\'")}', ${seq}, ${hash})`
}
