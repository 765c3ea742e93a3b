import { isCallFailure } from '../../client/errors.ts'
import type { Client } from '../../client/index.ts'

/** Names beyond this many are fetched one by one when needed. */
const LOADED_MAX = 2_000

/** Names of the workspace's agents, if the key may read them. */
export function createAgentNames(client: Client, key: string) {
  const known = new Map<string, string | undefined>()
  const mayRead = !key.startsWith('svc_agent_')
  const load = async () => {
    for await (const { agent_id, name } of client.agents.list()) {
      known.set(agent_id, name)
      if (known.size === LOADED_MAX) return
    }
  }
  const fetchName = async (agentId: string) => {
    const { name } = await client.agents.get(agentId)
    known.set(agentId, name)
  }
  return {
    /** Fetches all names. There are none with an agent key, or if the call fails. */
    async load(): Promise<void> {
      if (mayRead) await load().catch(ignoreCallFailure)
    },
    /** Returns a known name; starts to fetch an unknown one for the next call. */
    of(agentId: string): string | undefined {
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
