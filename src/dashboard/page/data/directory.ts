import { computed } from '@preact/signals'
import { type Api, listAll } from './api.ts'
import { LiveResource, type Loading } from './loading.ts'
import type { Agent } from './records.ts'

/** Agents beyond this number are shown by id. */
const AGENTS_MAX = 2_000
/** An agent that is not listed may be new. */
const REFRESH_MS_MIN = 5_000

interface Listing {
  readonly items: readonly Agent[]
  readonly isPartial: boolean
}

/** Agents of the workspace, newest first. */
class AgentList {
  readonly agents = computed(() => this.list.value.items)
  readonly isPartial = computed(() => this.list.value.isPartial)
  readonly isLoaded = computed(() => this.list.isLoaded.value)
  private readonly byId = computed(() => new Map(this.agents.value.map((agent) => [agent.agent_id, agent])))
  private readonly byName = computed(() => Map.groupBy(this.agents.value, ({ name }) => name))
  private readonly list: LiveResource<Listing>
  private askedAtMs = Number.NEGATIVE_INFINITY

  constructor(api: Api, closing: AbortSignal, status?: Agent['status']) {
    const load = (signal: AbortSignal) => {
      this.askedAtMs = performance.now()
      return listAll<Agent>(api, '/api/v1/agents', AGENTS_MAX, signal, { status })
    }
    this.list = new LiveResource<Listing>({ items: [], isPartial: false }, { load }, closing)
  }

  find(agentId: string): Agent | undefined {
    return this.byId.value.get(agentId)
  }

  /** The name of an agent, with the end of its id if several have the same name; undefined if it is not listed. */
  nameOf(agentId: string): string | undefined {
    const name = this.find(agentId)?.name
    if (name === undefined || this.byName.value.get(name)?.length === 1) return name
    return `${name} …${agentId.slice(-4)}`
  }

  reading(): Loading<readonly Agent[]> {
    return this.list.reading(this.isLoaded.value ? this.agents.value : undefined)
  }

  load(): Promise<void> {
    return this.list.load()
  }

  /** Reads the list again, if that was not done a moment ago. */
  loadSoon(): void {
    this.list.loadSoon(Math.max(0, this.askedAtMs + REFRESH_MS_MIN - performance.now()))
  }

  change(change: (agents: readonly Agent[]) => readonly Agent[]): void {
    this.list.update(({ items, isPartial }) => ({ items: change(items), isPartial }))
  }
}

/** The agents of the workspace: for the list and for names. */
export class Directory {
  private readonly present: AgentList
  /** Read when a name of one is needed, or the list of them. */
  private readonly archived: AgentList
  readonly agents = computed(() => this.present.agents.value)
  /** Their ids and names, to choose from. */
  readonly choices = computed(() => this.agents.value.map(({ agent_id: id }) => [id, this.nameOf(id)] as const))
  /** There are more agents. */
  readonly isPartial = computed(() => this.present.isPartial.value)
  readonly isLoaded = computed(() => this.present.isLoaded.value)
  readonly reading = computed(() => this.present.reading())
  /** Of the archived agents, once {@link refreshArchived} was called. */
  readonly readingArchived = computed(() => this.archived.reading())
  private readonly unlisted = new Set<string>()

  /** @param closing ends all reads */
  constructor(api: Api, closing: AbortSignal) {
    this.present = new AgentList(api, closing)
    this.archived = new AgentList(api, closing, 'archived')
  }

  /** An agent that is not archived. */
  find(agentId: string): Agent | undefined {
    return this.present.find(agentId)
  }

  /** The name of an agent, also of one that is archived; the end of its id as long as that is not known. */
  nameOf(agentId: string): string {
    const present = this.present.nameOf(agentId)
    if (present !== undefined) return present
    if (this.isLoaded.value && !this.unlisted.has(agentId)) this.lookFor(agentId)
    const archived = this.archived.nameOf(agentId)
    return archived === undefined ? `agent …${agentId.slice(-6)}` : `${archived} (archived)`
  }

  /** Reads the agents again. */
  refresh(): Promise<void> {
    return this.present.load()
  }

  refreshArchived(): Promise<void> {
    return this.archived.load()
  }

  /** Shows an agent that was just created, edited or restored. */
  put(agent: Agent): void {
    const isOther = ({ agent_id }: Agent) => agent_id !== agent.agent_id
    this.present.change((agents) => [agent, ...agents.filter(isOther)].sort(newestFirst))
    this.archived.change((agents) => agents.filter(isOther))
  }

  /** Shows that an agent was just archived. */
  archive(agentId: string): void {
    this.present.change((agents) => agents.filter(({ agent_id }) => agent_id !== agentId))
    void this.refreshArchived()
  }

  private lookFor(agentId: string): void {
    this.unlisted.add(agentId)
    this.present.loadSoon()
    this.archived.loadSoon()
  }
}

function newestFirst(a: Agent, b: Agent): number {
  return b.created_at.localeCompare(a.created_at)
}
