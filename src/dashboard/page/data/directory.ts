import { signal } from '@preact/signals'
import { type Api, listAll } from './api.ts'
import type { Agent } from './records.ts'

/** Agents beyond this number are shown by id. */
const AGENTS_MAX = 2_000
/** An agent that is not listed may be new. */
const REFRESH_MS_MIN = 5_000

/** The agents of the workspace, newest first: for the list and for names. */
export class Directory {
  readonly agents = signal<readonly Agent[]>([])
  readonly isLoaded = signal(false)
  /** There are more agents. */
  readonly isPartial = signal(false)
  private byId = new Map<string, Agent>()
  private labels = new Map<string, string>()
  private unlisted = new Set<string>()
  private askedAtMs = Number.NEGATIVE_INFINITY

  constructor(private readonly api: Api) {}

  find(agentId: string): Agent | undefined {
    // Subscribes the component that asks.
    this.agents.value
    return this.byId.get(agentId)
  }

  /**
   * The name of an agent, with the end of its id if several have the same name; the end of the id alone for an agent that is
   * not listed, because it is archived.
   */
  nameOf(agentId: string): string {
    this.agents.value
    const name = this.labels.get(agentId)
    if (name !== undefined) return name
    if (this.isLoaded.value && !this.unlisted.has(agentId)) this.lookFor(agentId)
    return `agent …${agentId.slice(-6)}`
  }

  /** @throws ApiFailure */
  async refresh(): Promise<void> {
    this.askedAtMs = performance.now()
    const { items, isPartial } = await listAll<Agent>(this.api, '/api/v1/agents', AGENTS_MAX)
    this.show(items, isPartial)
  }

  /** Shows an agent that was just created or edited. */
  put(agent: Agent): void {
    const others = this.agents.value.filter(({ agent_id }) => agent_id !== agent.agent_id)
    this.show([agent, ...others].sort(newestFirst), this.isPartial.value)
  }

  remove(agentId: string): void {
    this.show(
      this.agents.value.filter(({ agent_id }) => agent_id !== agentId),
      this.isPartial.value,
    )
  }

  private show(agents: readonly Agent[], isPartial: boolean): void {
    this.byId = new Map(agents.map((agent) => [agent.agent_id, agent]))
    const uses = Map.groupBy(agents, ({ name }) => name)
    this.labels = new Map(
      agents.map(({ agent_id, name }) => {
        const isUnique = uses.get(name)?.length === 1
        return [agent_id, isUnique ? name : `${name} …${agent_id.slice(-4)}`]
      }),
    )
    this.isPartial.value = isPartial
    this.isLoaded.value = true
    this.agents.value = agents
  }

  private lookFor(agentId: string): void {
    this.unlisted.add(agentId)
    const waitMs = Math.max(0, this.askedAtMs + REFRESH_MS_MIN - performance.now())
    setTimeout(() => void this.refresh().catch(() => this.unlisted.delete(agentId)), waitMs)
  }
}

function newestFirst(a: Agent, b: Agent): number {
  return b.created_at.localeCompare(a.created_at)
}
