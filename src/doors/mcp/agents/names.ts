import { LRUCache } from 'lru-cache'

/** Names of tools must have at most 64 of these characters, whichever client lists them. */
const NAME_LENGTH_MAX = 48
const ID_LENGTH = 12
const OTHER_CHARACTERS = /[^a-z0-9]+/g
/** Names in snake case by those of agents: a workspace has up to 1,000, and each call of one needs them all. */
const snakeCases = new LRUCache<string, string>({ max: 10_000 })

/** An agent, as far as its name as a tool depends on it. */
interface Named {
  readonly agent_id: string
  readonly name: string
}

/**
 * Agents by the names of their tools. The name is that of the agent in snake case; a later agent whose name is taken has the
 * end of its id in the name, too, so that a new agent never takes the name of another one.
 * @param agents the oldest first
 * @param reserved names of other tools
 */
export function byToolName<A extends Named>(agents: readonly A[], reserved: ReadonlySet<string>): Map<string, A> {
  const named = new Map<string, A>()
  for (const agent of agents) {
    const id = agent.agent_id.slice(-ID_LENGTH)
    const name = snakeCase(agent.name)
    if (name !== '' && !named.has(name) && !reserved.has(name)) named.set(name, agent)
    else named.set(`${name || 'agent'}_${id}`, agent)
  }
  return named
}

function snakeCase(name: string): string {
  const known = snakeCases.get(name)
  if (known !== undefined) return known
  const plain = name.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  const snake = plain
    .replace(OTHER_CHARACTERS, '_')
    .slice(0, NAME_LENGTH_MAX)
    .replace(/^_+|_+$/g, '')
  snakeCases.set(name, snake)
  return snake
}
