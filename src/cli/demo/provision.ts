import { isCallFailure, NoResponseError, ServiceError } from '../../client/errors.ts'
import type { components } from '../../client/generated/api.ts'
import { Client } from '../../client/index.ts'
import type { ClientOptions } from '../../client/options.ts'
import { keyRejected, unreachable } from '../shared/failures.ts'
import { PROFILES } from './content/profiles.ts'
import { type HostedName, type HostedProfile, hostedProfiles, POLICY_EXPERT } from './hosted/agents.ts'
import type { Profile } from './plan.ts'

/** A program that reports, and a client with the key of its agent. */
export interface Member {
  readonly profile: Profile
  readonly agentId: string
  readonly client: Client
}

/** An edit that gives an agent its next version. */
export type Edit = () => Promise<unknown>

type Agent = components['schemas']['Agent']
type NewAgent = components['schemas']['CreateAgent']

/** The agents of the demo in a workspace. */
export class Company {
  readonly members = new Map<string, Member>()
  readonly hosted = new Map<HostedName, string>()
  /** For each new agent, the edits that make its further versions, in order. */
  readonly edits: Edit[][] = []
  private readonly keyIds: string[] = []
  private known: readonly Agent[] = []

  /**
   * @param client with a workspace key
   * @param session becomes the name of the keys
   */
  constructor(
    private readonly client: Client,
    private readonly session: string,
  ) {}

  /**
   * Finds the reporting agents by name or creates them. Each gets a key for this session, because existing keys cannot be
   * read.
   *
   * @throws CliError when the service does not respond or rejects the key
   */
  async hirePrograms(options: ClientOptions): Promise<void> {
    this.known = await findAgents(this.client)
    for (const profile of PROFILES) {
      const { description, versions } = profile
      const [first = {}, ...later] = versions.map((version) => ({ demo: true, ...version }))
      const { agent_id: agentId } = await this.hire(
        { name: profile.name, description, stale_after_seconds: 3_600, metadata: first },
        later.map((metadata) => ({ metadata })),
      )
      const { key_id, key } = await this.client.request('POST', '/api/v1/agents/{agent_id}/keys', {
        path: { agent_id: agentId },
        body: { name: this.session },
      })
      this.keyIds.push(key_id)
      const client = new Client({ ...options, url: this.client.url, key })
      this.members.set(profile.name, { profile, agentId, client })
    }
  }

  /** Finds the agents that the service runs, or creates them. */
  async hireHosted(toolsUrl: string): Promise<void> {
    const expert = await this.hireOne(POLICY_EXPERT, toolsUrl)
    for (const profile of hostedProfiles(toolsUrl, expert)) await this.hireOne(profile, toolsUrl)
  }

  private async hireOne({ name, agent, earlierPrompts }: HostedProfile, toolsUrl: string): Promise<string> {
    const [prompt = '', ...later] = [...earlierPrompts, agent.prompt ?? '']
    const edits = later.map((prompt) => ({ prompt }))
    const { agent_id: agentId, tools } = await this.hire({ ...agent, name, prompt, metadata: { demo: true } }, edits)
    // An earlier demo may have served the tools at another port.
    if (!JSON.stringify(tools).includes(toolsUrl))
      await this.client.agents.update(agentId, { tools: agent.tools ?? [] })
    this.hosted.set(name, agentId)
    return agentId
  }

  private async hire(agent: NewAgent, edits: readonly components['schemas']['EditAgent'][]): Promise<Agent> {
    return this.known.find(({ name }) => name === agent.name) ?? this.create(agent, edits)
  }

  private async create(agent: NewAgent, edits: readonly components['schemas']['EditAgent'][]): Promise<Agent> {
    const created = await this.client.agents.create(agent)
    this.edits.push(edits.map((edit) => () => this.client.agents.update(created.agent_id, edit)))
    return created
  }

  /** Revokes the session's agent keys. @returns false if the service did not respond */
  async revokeKeys(): Promise<boolean> {
    try {
      for (const key_id of this.keyIds)
        await this.client.request('POST', '/api/v1/keys/{key_id}/revoke', { path: { key_id }, body: {} })
      return true
    } catch (error) {
      if (isCallFailure(error)) return false
      throw error
    }
  }
}

/** The agents of the workspace that belong to the demo. @throws CliError that explains why the first call failed */
async function findAgents(client: Client): Promise<readonly Agent[]> {
  const found: Agent[] = []
  try {
    for await (const agent of client.agents.list()) if (agent.metadata.demo === true) found.push(agent)
  } catch (error) {
    if (error instanceof NoResponseError && !isCallFailure(error.cause)) throw unreachable(client.url, error)
    if (error instanceof ServiceError && [401, 403].includes(error.status)) throw keyRejected(client.url, error)
    throw error
  }
  return found
}
