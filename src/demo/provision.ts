import { CliError } from '../cli/error.ts'
import type { DemoOptions } from './args.ts'
import { CallRefused, CallUnconfirmed, type Client, isCallFailure } from './client.ts'
import type { Member } from './run.ts'
import { coding } from './scripts/coding.ts'
import type { Profile } from './scripts/plan.ts'
import { research } from './scripts/research.ts'
import { support } from './scripts/support.ts'

export interface FleetMember extends Member {
  readonly profile: Profile
}

/** The agents of a session, ready to report. */
export interface Crew {
  readonly members: readonly FleetMember[]
  /** Revokes the session's agent keys. @returns false if the service could not be asked to */
  dismiss(): Promise<boolean>
}

const PROFILES: readonly Profile[] = [support, coding, research]

/**
 * Finds the fleet's agents by name or makes them, and makes each a key for this session: a key cannot be read again.
 *
 * @param session told from other sessions by it: the name of the keys
 * @throws CliError when there is no service, or it does not take the key
 */
export async function provision(client: Client, options: DemoOptions, session: string): Promise<Crew> {
  const { key } = options
  const known = await explain(options, listAgents(client, key))
  const keyIds: string[] = []
  const members: FleetMember[] = []
  for (let index = 0; index < options.agents; index++) {
    const profile = PROFILES[index % PROFILES.length]!
    const name = `demo ${profile.name} agent ${Math.floor(index / PROFILES.length) + 1}`
    const agentId = known.get(name) ?? (await createAgent(client, key, name, profile))
    const made = await client({
      key,
      path: `/api/v1/agents/${agentId}/keys`,
      body: { name: session },
      idempotencyKey: crypto.randomUUID(),
    })
    const agentKey = made as { key_id: string; key: string }
    keyIds.push(agentKey.key_id)
    members.push({ agentId, key: agentKey.key, choosesRunIds: profile.choosesRunIds, profile })
  }
  return {
    members,
    async dismiss() {
      try {
        for (const keyId of keyIds) await client({ key, path: `/api/v1/keys/${keyId}/revoke`, body: {} })
        return true
      } catch (error) {
        if (isCallFailure(error)) return false
        throw error
      }
    },
  }
}

/** Ids of the workspace's agents that can report, by name. */
async function listAgents(client: Client, key: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (let cursor: string | null = ''; cursor !== null; ) {
    const after: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const page = (await client({ key, path: `/api/v1/agents?runtime_type=external&limit=200${after}` })) as {
      items: { agent_id: string; name: string }[]
      next_cursor: string | null
    }
    for (const { name, agent_id } of page.items) found.set(name, agent_id)
    cursor = page.next_cursor
  }
  return found
}

async function createAgent(client: Client, key: string, name: string, profile: Profile): Promise<string> {
  const body = { name, description: profile.description, stale_after_seconds: 3_600, metadata: { demo: true } }
  const made = await client({ key, path: '/api/v1/agents', body, idempotencyKey: crypto.randomUUID() })
  return (made as { agent_id: string }).agent_id
}

async function explain<T>({ url }: DemoOptions, first: Promise<T>): Promise<T> {
  try {
    return await first
  } catch (error) {
    if (error instanceof CallUnconfirmed)
      throw new CliError(
        `no service answers at ${url}: start one with "bun run start", set AGENT_RUN_URL, or give --url`,
        1,
        {
          cause: error,
        },
      )
    if (error instanceof CallRefused && [401, 403].includes(error.status))
      throw new CliError(
        `the service at ${url} does not take the key (${error.message}).\nIs it a workspace key of this service, and not revoked? ` +
          'The service prints one to its terminal on its very first start.',
        1,
        { cause: error },
      )
    throw error
  }
}
