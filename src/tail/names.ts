import { type Client, isCallFailure } from '../demo/client.ts'

/** Names of the workspace's agents, if the key may read them. */
export interface AgentNames {
  /** Fetches all names. There are none with an agent key, or if the call fails. */
  load(): Promise<void>
  /** Returns a known name; starts to fetch an unknown one for the next call. */
  of(agentId: string): string | undefined
}

/** Pages of 200 agents. Further names are fetched one by one when needed. */
const PAGES_MAX = 10

interface Agent {
  readonly agent_id: string
  readonly name: string
}

export function createAgentNames(client: Client, key: string): AgentNames {
  const known = new Map<string, string | undefined>()
  const mayAsk = !key.startsWith('svc_agent_')
  const ask = async (path: string): Promise<unknown> => {
    try {
      return await client({ key, path })
    } catch (error) {
      if (isCallFailure(error)) return undefined
      throw error
    }
  }
  return {
    async load() {
      let cursor: string | null = mayAsk ? '' : null
      for (let page = 0; cursor !== null && page < PAGES_MAX; page++) {
        const after: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
        const answer = await ask(`/api/v1/agents?limit=200${after}`)
        if (answer === undefined) return
        const { items, next_cursor } = answer as { items: Agent[]; next_cursor: string | null }
        for (const { agent_id, name } of items) known.set(agent_id, name)
        cursor = next_cursor
      }
    },
    of(agentId) {
      if (mayAsk && !known.has(agentId)) {
        known.set(agentId, undefined)
        void ask(`/api/v1/agents/${agentId}`).then((agent) => known.set(agentId, (agent as Agent | undefined)?.name))
      }
      return known.get(agentId)
    },
  }
}
