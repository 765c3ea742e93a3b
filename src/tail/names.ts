import { type Agent, listAgents } from '../cli/agents.ts'
import { type Client, isCallFailure } from '../cli/client.ts'

/** Names of the workspace's agents, if the key may read them. */
export interface AgentNames {
  /** Fetches all names. There are none with an agent key, or if the call fails. */
  load(): Promise<void>
  /** Returns a known name; starts to fetch an unknown one for the next call. */
  of(agentId: string): string | undefined
}

/** Names beyond this many pages are fetched one by one when needed. */
const PAGES_MAX = 10

export function createAgentNames(client: Client, key: string): AgentNames {
  const known = new Map<string, string | undefined>()
  const mayRead = !key.startsWith('svc_agent_')
  const load = async () => {
    let pages = 0
    for await (const agents of listAgents(client, key)) {
      for (const { agent_id, name } of agents) known.set(agent_id, name)
      if (++pages === PAGES_MAX) return
    }
  }
  const fetchName = async (agentId: string) => {
    const { name } = (await client({ key, path: `/api/v1/agents/${agentId}` })) as Agent
    known.set(agentId, name)
  }
  return {
    async load() {
      if (mayRead) await load().catch(ignoreCallFailure)
    },
    of(agentId) {
      if (mayRead && !known.has(agentId)) {
        known.set(agentId, undefined)
        void fetchName(agentId).catch(ignoreCallFailure)
      }
      return known.get(agentId)
    },
  }
}

function ignoreCallFailure(error: unknown): void {
  if (!isCallFailure(error)) throw error
}
