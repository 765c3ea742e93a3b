import { expect, test } from 'bun:test'
import { byToolName } from '../../src/doors/mcp/agents/names.ts'

/** Names of hosted agents as tools (docs/mcp.md#hosted-agents-as-tools). */

const agent = (n: number, name: string) => ({
  agent_id: `01a20ac1-7ef4-75ae-9346-${String(n).padStart(12, '0')}`,
  name,
})
const named = (agents: readonly { agent_id: string; name: string }[], reserved: readonly string[] = []) => [
  ...byToolName(agents, new Set(reserved)).keys(),
]

test('a tool has the name of its agent, in characters that every client takes', () => {
  const names = [
    'Weather in Lima',
    '  --Été!? ',
    'slow_compute',
    '助手',
    '🙂',
    'x'.repeat(200),
    '__proto__',
    'constructor',
  ]
  const tools = named(names.map((name, n) => agent(n, name)))
  expect(tools).toEqual([
    'weather_in_lima',
    'ete',
    'slow_compute',
    'agent_000000000003',
    'agent_000000000004',
    'x'.repeat(48),
    'proto',
    'constructor',
  ])
  for (const name of tools) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
})

test('a name that is taken gets the end of the id, so that the older tool keeps its own', () => {
  const agents = [agent(1, 'Query'), agent(2, 'Clerk'), agent(3, 'clerk'), agent(4, 'CLERK!')]
  expect(named(agents, ['query'])).toEqual(['query_000000000001', 'clerk', 'clerk_000000000003', 'clerk_000000000004'])
  expect(named(agents.slice(0, 2), ['query'])).toEqual(['query_000000000001', 'clerk'])
})
