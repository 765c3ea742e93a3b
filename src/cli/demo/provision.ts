import { isCallFailure, NoResponseError, ServiceError } from '../../client/errors.ts'
import { Client } from '../../client/index.ts'
import type { ClientOptions } from '../../client/options.ts'
import { keyRejected, unreachable } from '../shared/failures.ts'
import type { DemoOptions } from './args.ts'
import { PROFILES } from './profiles.ts'
import type { Member } from './run.ts'

/**
 * Finds the fleet's agents by name or creates them. Each gets a key for this session, because existing keys cannot be read.
 *
 * @param session identifies the session; becomes the name of the keys
 * @param reporting options of the clients that report runs
 * @returns the agents, and a function that ends the session
 * @throws CliError when the service does not respond or rejects the key
 */
export async function provision(
  client: Client,
  { url, agents }: DemoOptions,
  session: string,
  reporting: ClientOptions,
) {
  const known = await findAgents(client, url)
  const keyIds: string[] = []
  const members: Member[] = []
  for (let index = 0; index < agents; index++) {
    const profile = PROFILES[index % PROFILES.length]!
    const name = `demo ${profile.name} agent ${Math.floor(index / PROFILES.length) + 1}`
    const { description } = profile
    const agent = { name, description, stale_after_seconds: 3_600, metadata: { demo: true } }
    const agentId = known.get(name) ?? (await client.agents.create(agent)).agent_id
    const path = { agent_id: agentId }
    const { key_id, key } = await client.request('POST', '/api/v1/agents/{agent_id}/keys', {
      path,
      body: { name: session },
    })
    keyIds.push(key_id)
    members.push({ agentId, profile, client: new Client({ ...reporting, url, key }) })
  }
  return {
    members,
    /** Revokes the session's agent keys. @returns false if the service did not respond */
    async revokeKeys(): Promise<boolean> {
      try {
        for (const key_id of keyIds)
          await client.request('POST', '/api/v1/keys/{key_id}/revoke', { path: { key_id }, body: {} })
        return true
      } catch (error) {
        if (isCallFailure(error)) return false
        throw error
      }
    },
  }
}

/** The ids of the workspace's external agents, by name. Explains the failures that a first call meets. */
async function findAgents(client: Client, url: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  try {
    for await (const { name, agent_id } of client.agents.list({ runtime_type: 'external' })) found.set(name, agent_id)
  } catch (error) {
    if (error instanceof NoResponseError && !isCallFailure(error.cause)) throw unreachable(url, error)
    if (error instanceof ServiceError && [401, 403].includes(error.status)) throw keyRejected(url, error)
    throw error
  }
  return found
}
