import { expect, test } from 'bun:test'
import { createEventIdSource } from '../../src/activity/events/id-index.ts'
import type { RunRef } from '../../src/base/ids.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { runRef } from '../support/events.ts'

/** What ClickHouse answers to the index of event ids. */

test('the ids of many runs, each of its own workspace and agent; those of a run with many by itself', async () => {
  const { client } = await freshColumnarDatabase()
  const [one, empty] = [runRef(), runRef()]
  const two: RunRef = { ...one, runId: crypto.randomUUID() }
  const large: RunRef = { ...one, runId: crypto.randomUUID() }
  // The same run id in another workspace, and pairs that only the single columns have in common.
  const other: RunRef = { ...runRef(), runId: one.runId }
  const mixed: RunRef = { ...one, agentId: other.agentId, runId: two.runId }
  const rows = [
    ...[row(one, 'a', 1), row(one, "it's", 2), row(two, 'b', 3), row(other, 'c', 4), row(mixed, 'd', 5)],
    ...Array.from({ length: 300 }, (_, n) => row(large, `id ${n}`, 6 + n)),
  ]
  const columns = 'workspace_id, agent_id, run_id, event_id, seq, type, received_at'
  await client.command(`insert into events (${columns}) values ${rows.join()}`)
  const source = createEventIdSource({
    client,
    journal: { endSeq: 305 },
    loading: { waitFor: async () => true },
    columnarMark: () => ({ journal: crypto.randomUUID(), beat: 0 }),
  })
  const found = await source.few!([one, empty, two, other, large])
  expect(found.map((ids) => ids?.toSorted() ?? null)).toEqual([['a', "it's"], [], ['b'], ['c'], null])
  expect(await source.all(large, 1_000)).toHaveLength(300)
  expect(await source.all(large, 7)).toHaveLength(7)
  expect(await source.among(one, ['b', "it's"])).toEqual(["it's"])
})

function row({ workspaceId, agentId, runId }: RunRef, id: string, seq: number): string {
  return `('${workspaceId}', '${agentId}', '${runId}', '${id.replace("'", "\\'")}', ${seq}, 'note', now64(3))`
}
