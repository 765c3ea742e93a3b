import { expect, test } from 'bun:test'
import type { AgentStore, Registration } from '../../src/activity/agents/store.ts'
import { ApiError } from '../../src/base/errors.ts'
import { createAgentNames } from '../../src/doors/traces/agents.ts'
import { eventually } from '../support/eventually.ts'

const MANY = Array.from({ length: 3_000 }, (_, index) => `agent ${index}`)

type Answer = Awaited<ReturnType<AgentStore['named']>>

/** A store whose queries wait until the test answers them. */
function heldStore() {
  const queries: { workspaceId: string; names: string[]; answer: (agents?: Answer) => void }[] = []
  const named = (workspaceId: string, wanted: readonly Registration[]) =>
    new Promise<Answer>((resolve) => {
      const found = new Map(wanted.map(({ name, agentId }) => [name, agentId]))
      const names = wanted.map(({ name }) => name)
      queries.push({ workspaceId, names, answer: (agents = found) => resolve(agents) })
    })
  return { queries, names: createAgentNames({ agents: { named }, agentsMax: 1_000 }) }
}

test('many new names of a workspace are one query, and no other workspace waits for it', async () => {
  const { queries, names } = heldStore()
  const flood = Promise.all(MANY.map((name) => names.find('first', name)))
  await eventually(() => queries.length === 1)
  expect([queries[0].workspaceId, queries[0].names]).toEqual(['first', MANY])
  // While that query runs, the workspace's other names wait for the next one.
  const late = Promise.all(['late 1', 'late 2'].map((name) => names.find('first', name)))
  const other = names.find('second', 'an agent')
  await eventually(() => queries.length === 2)
  expect([queries[1].workspaceId, queries[1].names]).toEqual(['second', ['an agent']])
  queries[1].answer()
  expect(await other).toBeString()

  queries[0].answer()
  expect(new Set(await flood).size).toBe(MANY.length)
  await eventually(() => queries.length === 3)
  expect(queries[2].names).toEqual(['late 1', 'late 2'])
  queries[2].answer()
  await late
})

test('names of one workspace do not evict those of another', async () => {
  const { queries, names } = heldStore()
  const first = names.find('second', 'an agent')
  await eventually(() => queries.length === 1)
  queries[0].answer()
  const agentId = await first
  const flood = Promise.all(MANY.map((name) => names.find('first', name)))
  await eventually(() => queries.length === 2)
  queries[1].answer()
  await flood
  expect(await names.find('second', 'an agent')).toBe(agentId)
  expect(queries).toHaveLength(2)
})

test('a refused name is not looked up again', async () => {
  const { queries, names } = heldStore()
  const refusal = new ApiError('FORBIDDEN', 'the workspace has too many agents')
  const first = names.find('first', 'one too many')
  await eventually(() => queries.length === 1)
  queries[0].answer(new Map([['one too many', refusal]]))
  expect(await first.catch((error) => error)).toBe(refusal)
  expect(await names.find('first', 'one too many').catch((error) => error)).toBe(refusal)
  expect(queries).toHaveLength(1)
})
