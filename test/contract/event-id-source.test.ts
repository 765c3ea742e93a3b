import { expect, test } from 'bun:test'
import { createClaimSource, EVENT_IDS } from '../../src/activity/claims/claim-source.ts'
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
  const source = createClaimSource(EVENT_IDS, {
    client,
    journal: { endSeq: 305 },
    loading: { waitFor: async () => true },
    columnarMark: () => ({ journal: crypto.randomUUID(), beat: 0 }),
  })
  const found = await source.few([one, empty, two, other, large])
  const few = found.map((ids) => (typeof ids === 'number' ? ids : ids.map(([id]) => id).sort()))
  expect(few).toEqual([['a', "it's"], [], ['b'], ['c'], 300])
  expect(await source.all(large)).toHaveLength(300)
  const among: string[] = []
  const wanted = [...["it's", 'b'].map((id) => ({ run: one, id })), ...['a', 'b'].map((id) => ({ run: two, id }))]
  await source.among(wanted, (runId, id) => among.push(`${runId === one.runId ? 'one' : 'two'} ${id}`))
  expect(among.sort()).toEqual(["one it's", 'two b'])
})

function row({ workspaceId, agentId, runId }: RunRef, id: string, seq: number): string {
  return `('${workspaceId}', '${agentId}', '${runId}', '${id.replace("'", "\\'")}', ${seq}, 'note', now64(3))`
}
