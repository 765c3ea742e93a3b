import { isCallFailure, NoResponseError, ServiceError } from '../../client/errors.ts'
import { Client } from '../../client/index.ts'
import type { ClientOptions } from '../../client/options.ts'
import { keyRejected, unreachable } from '../shared/failures.ts'
import type { DemoOptions } from './args.ts'
import type { Member } from './run.ts'
import { coding } from './scripts/coding.ts'
import type { Profile } from './scripts/plan.ts'
import { research } from './scripts/research.ts'
import { support } from './scripts/support.ts'

export interface FleetMember extends Member {
  readonly profile: Profile
}

interface ProvisionedAgents {
  readonly members: readonly FleetMember[]
  /** Revokes the session's agent keys. @returns false if the service did not respond */
  revokeKeys(): Promise<boolean>
}

const PROFILES: readonly Profile[] = [support, coding, research]

/**
 * Finds the fleet's agents by name or creates them. Each gets a key for this session, because existing keys cannot be read.
 *
 * @param session identifies the session; becomes the name of the keys
 * @param reporting options of the clients that report runs
 * @throws CliError when the service does not respond or rejects the key
 */
export async function provision(
  client: Client,
  options: DemoOptions,
  session: string,
  reporting: ClientOptions,
): Promise<ProvisionedAgents> {
  const known = await explain(options, findAgents(client))
  const keyIds: string[] = []
  const members: FleetMember[] = []
  for (let index = 0; index < options.agents; index++) {
    const profile = PROFILES[index % PROFILES.length]!
    const name = `demo ${profile.name} agent ${Math.floor(index / PROFILES.length) + 1}`
    const agentId = known.get(name) ?? (await createAgent(client, name, profile))
    const path = { agent_id: agentId }
    const made = await client.request('POST', '/api/v1/agents/{agent_id}/keys', { path, body: { name: session } })
    keyIds.push(made.key_id)
    const own = new Client({ ...reporting, url: options.url, key: made.key })
    members.push({ agentId, client: own, choosesRunIds: profile.choosesRunIds, profile })
  }
  return {
    members,
    async revokeKeys() {
      try {
        for (const keyId of keyIds)
          await client.request('POST', '/api/v1/keys/{key_id}/revoke', { path: { key_id: keyId }, body: {} })
        return true
      } catch (error) {
        if (isCallFailure(error)) return false
        throw error
      }
    },
  }
}

/** The ids of the workspace's external agents, by name. */
async function findAgents(client: Client): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for await (const { name, agent_id } of client.agents.list({ runtime_type: 'external' })) found.set(name, agent_id)
  return found
}

async function createAgent(client: Client, name: string, profile: Profile): Promise<string> {
  const { description } = profile
  const agent = { name, description, stale_after_seconds: 3_600, metadata: { demo: true } }
  return (await client.agents.create(agent)).agent_id
}

/** Explains the failures that a first call meets: no service, or a key that it rejects. */
async function explain<T>({ url }: DemoOptions, firstCall: Promise<T>): Promise<T> {
  try {
    return await firstCall
  } catch (error) {
    if (error instanceof NoResponseError && !isCallFailure(error.cause)) throw unreachable(url, error)
    if (error instanceof ServiceError && [401, 403].includes(error.status)) throw keyRejected(url, error)
    throw error
  }
}
