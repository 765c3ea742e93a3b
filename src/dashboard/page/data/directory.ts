import { computed } from '@preact/signals'
import { type Api, listAll } from './api.ts'
import { LiveResource } from './loading.ts'
import type { Agent } from './records.ts'

/** Agents beyond this number are shown by id. */
const AGENTS_MAX = 2_000
/** An agent that is not listed may be new. */
const REFRESH_MS_MIN = 5_000

interface Listing {
  readonly items: readonly Agent[]
  readonly isPartial: boolean
}

/** The agents of the workspace, newest first: for the list and for names. */
export class Directory {
  readonly agents = computed(() => this.list.value.items)
  /** Their ids and names, to choose from. */
  readonly choices = computed(() => this.agents.value.map(({ agent_id: id }) => [id, this.nameOf(id)] as const))
  /** There are more agents. */
  readonly isPartial = computed(() => this.list.value.isPartial)
  readonly isLoaded = computed(() => this.list.isLoaded.value)
  readonly reading = computed(() => this.list.reading(this.isLoaded.value ? this.agents.value : undefined))
  private readonly byId = computed(() => new Map(this.agents.value.map((agent) => [agent.agent_id, agent])))
  private readonly byName = computed(() => Map.groupBy(this.agents.value, ({ name }) => name))
  private readonly list: LiveResource<Listing>
  private readonly unlisted = new Set<string>()
  private askedAtMs = Number.NEGATIVE_INFINITY

  /** @param closing ends all reads */
  constructor(api: Api, closing: AbortSignal) {
    const load = (signal: AbortSignal) => {
      this.askedAtMs = performance.now()
      return listAll<Agent>(api, '/api/v1/agents', AGENTS_MAX, signal)
    }
    this.list = new LiveResource<Listing>({ items: [], isPartial: false }, { load }, closing)
  }

  find(agentId: string): Agent | undefined {
    return this.byId.value.get(agentId)
  }

  /**
   * The name of an agent, with the end of its id if several have the same name; the end of the id alone for an agent that is
   * not listed, because it is archived.
   */
  nameOf(agentId: string): string {
    const agent = this.find(agentId)
    if (agent === undefined) {
      if (this.isLoaded.value && !this.unlisted.has(agentId)) this.lookFor(agentId)
      return `agent …${agentId.slice(-6)}`
    }
    return this.byName.value.get(agent.name)?.length === 1 ? agent.name : `${agent.name} …${agentId.slice(-4)}`
  }

  /** Reads the agents again. */
  refresh(): Promise<void> {
    return this.list.load()
  }

  /** Shows an agent that was just created or edited. */
  put(agent: Agent): void {
    this.change((agents) => [agent, ...agents.filter(({ agent_id }) => agent_id !== agent.agent_id)].sort(newestFirst))
  }

  remove(agentId: string): void {
    this.change((agents) => agents.filter(({ agent_id }) => agent_id !== agentId))
  }

  private change(change: (agents: readonly Agent[]) => readonly Agent[]): void {
    this.list.update(({ items, isPartial }) => ({ items: change(items), isPartial }))
  }

  private lookFor(agentId: string): void {
    this.unlisted.add(agentId)
    this.list.loadSoon(Math.max(0, this.askedAtMs + REFRESH_MS_MIN - performance.now()))
  }
}

function newestFirst(a: Agent, b: Agent): number {
  return b.created_at.localeCompare(a.created_at)
}
