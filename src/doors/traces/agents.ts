import { setImmediate as nextIteration } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { AgentStore } from '../../activity/agents/store.ts'
import { ApiError } from '../../base/errors.ts'
import { createKeyedMutex } from '../../base/keyed-mutex.ts'
import { namedAgentId } from './ids.ts'

const WORKSPACES_CACHED_MAX = 1_000
/** Names of one workspace: one that reports more evicts only its own. */
const NAMES_CACHED_MAX = 2_000
/** How long a name still resolves to an agent that was archived or renamed since, or is refused although it now exists. */
const CACHE_MS = 5_000

/** Finds agents by name for exports with a workspace key, and registers new ones. */
export interface AgentNames {
  /** Returns the id of the agent. @throws ApiError FORBIDDEN if it cannot be registered, UNAVAILABLE */
  find(workspaceId: string, name: string): Promise<string>
}

type Found = ReadonlyMap<string, string | ApiError>

export function createAgentNames({
  agents,
  agentsMax,
}: {
  agents: Pick<AgentStore, 'named'>
  agentsMax: number
}): AgentNames {
  const cached = new LRUCache<string, LRUCache<string, string | ApiError>>({ max: WORKSPACES_CACHED_MAX })
  /** The next lookup of each workspace: names join it until it starts, so that an export needs one query. */
  const waiting = new Map<string, { readonly names: Set<string>; readonly found: Promise<Found> }>()
  /** Lookups of a workspace run one after the other, so that concurrent registrations cannot exceed its limit. */
  const inTurn = createKeyedMutex()

  function cacheOf(workspaceId: string): LRUCache<string, string | ApiError> {
    let own = cached.get(workspaceId)
    if (own === undefined) {
      own = new LRUCache({ max: NAMES_CACHED_MAX, ttl: CACHE_MS })
      cached.set(workspaceId, own)
    }
    return own
  }

  function lookUp(workspaceId: string, name: string): Promise<Found> {
    const next = waiting.get(workspaceId)
    if (next !== undefined) {
      next.names.add(name)
      return next.found
    }
    const names = new Set([name])
    const found = inTurn(workspaceId, async () => {
      await nextIteration()
      waiting.delete(workspaceId)
      const wanted = [...names].map((each) => ({ name: each, agentId: namedAgentId(workspaceId, each) }))
      const answer = await agents.named(workspaceId, wanted, agentsMax)
      const cache = cacheOf(workspaceId)
      for (const [each, agent] of answer) cache.set(each, agent)
      return answer
    })
    waiting.set(workspaceId, { names, found })
    return found
  }

  return {
    async find(workspaceId, name) {
      const agent = cached.get(workspaceId)?.get(name) ?? (await lookUp(workspaceId, name)).get(name)
      if (typeof agent === 'string') return agent
      throw agent ?? new ApiError('UNAVAILABLE', 'the agent could not be looked up; try again')
    },
  }
}
