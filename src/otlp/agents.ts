import { LRUCache } from 'lru-cache'
import type { AgentStore } from '../agents/store.ts'
import { namedAgentId } from './ids.ts'

const AGENTS_CACHED_MAX = 10_000
/** How long a name may still resolve to an agent that was archived or renamed since. */
const CACHE_MS = 5_000

/** Finds agents by name for exports with a workspace key, and registers new ones. */
export interface AgentNames {
  /** Returns the id of the agent. @throws ApiError FORBIDDEN if it cannot be registered, UNAVAILABLE */
  find(workspaceId: string, name: string): Promise<string>
}

export function createAgentNames({
  agents,
  agentsMax,
}: {
  agents: Pick<AgentStore, 'named'>
  agentsMax: number
}): AgentNames {
  const cached = new LRUCache<string, string>({ max: AGENTS_CACHED_MAX, ttl: CACHE_MS })
  /** Lookups run one after the other, so that concurrent registrations cannot exceed the limit. */
  let last: Promise<unknown> = Promise.resolve()

  return {
    async find(workspaceId, name) {
      const key = `${workspaceId} ${name}`
      const known = cached.get(key)
      if (known !== undefined) return known
      const found = last.then(() => {
        const registered = cached.get(key)
        return registered ?? agents.named(workspaceId, name, { agentId: namedAgentId(workspaceId, name), agentsMax })
      })
      last = found.catch(() => {})
      const agentId = await found
      cached.set(key, agentId)
      return agentId
    },
  }
}
