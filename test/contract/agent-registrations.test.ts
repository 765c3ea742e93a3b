import { expect, test } from 'bun:test'
import { AgentStore } from '../../src/activity/agents/store.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { KeyRing } from '../../src/tenants/keys/key-ring.ts'
import { freshDatabase } from '../support/postgres.ts'

test('registers more agents at once than the parameters of one statement allow', async () => {
  const { sql } = await freshDatabase()
  const workspaceId = Bun.randomUUIDv7()
  await sql`insert into workspaces (workspace_id, name, created_at, updated_at) values (${workspaceId}, 'w', now(), now())`
  const agents = new AgentStore({ sql, ring: {} as KeyRing, clock: systemClock })
  const wanted = Array.from({ length: 4_000 }, (_, index) => ({ name: `agent ${index}`, agentId: Bun.randomUUIDv7() }))
  const found = await agents.named(workspaceId, wanted, 3_900)
  const registered = wanted.slice(0, 3_900)
  expect([...found].slice(0, 3_900)).toEqual(registered.map(({ name, agentId }) => [name, agentId]))
  expect([...found.values()].slice(3_900)).toEqual(
    wanted.slice(3_900).map(() => expect.objectContaining({ code: 'FORBIDDEN' })),
  )
  const rows = await sql<{ agent_id: string }[]>`
    select agent_id from agents where workspace_id = ${workspaceId} order by agent_id`
  expect(rows.map((row) => row.agent_id)).toEqual(registered.map(({ agentId }) => agentId).sort())
})
