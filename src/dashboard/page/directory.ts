import type { AgentRecord } from '../../agents/schema.ts'
import type { Api, OnWire } from './api.ts'
import { shortId } from './format.ts'

export type Agent = OnWire<AgentRecord>

/** The newest agents of the workspace, for the list and for names. */
export interface Directory {
  readonly agents: readonly Agent[]
  /** There are more agents. */
  readonly isPartial: boolean
  /** The end of the id for an agent that is not listed: archived, or older than the ones that are loaded. */
  nameOf(agentId: string): string
  /** Reads the agents again if the last response is old enough. @throws ApiFailure */
  refresh(): Promise<void>
}

const AGENTS_MAX = 200
const REFRESH_MS = 10_000
/** Shorter while there are no agents, because the user waits for the first one. */
const REFRESH_EMPTY_MS = 2_000

export function createDirectory(api: Api): Directory {
  let agents: readonly Agent[] = []
  let isPartial = false
  let names = new Map<string, string>()
  let askedAt = Number.NEGATIVE_INFINITY
  return {
    get agents() {
      return agents
    },
    get isPartial() {
      return isPartial
    },
    nameOf: (agentId) => names.get(agentId) ?? shortId(agentId),
    async refresh() {
      if (performance.now() - askedAt < (agents.length === 0 ? REFRESH_EMPTY_MS : REFRESH_MS)) return
      const page = await api.get<{ items: readonly Agent[]; next_cursor: string | null }>('/api/v1/agents', {
        limit: AGENTS_MAX,
      })
      askedAt = performance.now()
      agents = page.items
      isPartial = page.next_cursor !== null
      names = new Map(agents.map(({ agent_id, name }) => [agent_id, name]))
    },
  }
}
