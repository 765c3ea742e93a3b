import { LRUCache } from 'lru-cache'
import type { SharedSlice } from '../../../base/http/shared-slice.ts'
import { placeholdersOf } from '../../../base/placeholders.ts'
import type { RawJson } from '../../../base/raw-json.ts'
import type { Sql } from '../../../stores/postgres/connect.ts'
import type { Caller } from '../../../tenants/keys/schema.ts'
import type { ToolDefinition, ToolPage } from '../provider.ts'
import { byToolName } from './names.ts'
import { shownSchema } from './shown-schema.ts'

/** An agent that MCP clients may call, as a tool. */
export interface AgentTool {
  readonly agentId: string
  readonly definition: ToolDefinition
  /** The arguments are the input of the run; otherwise they have its message, and values for placeholders of the prompt. */
  readonly hasInputSchema: boolean
  /** Null if there are too many to be listed. */
  readonly placeholders: readonly string[] | null
}

interface Exposed {
  readonly agent_id: string
  readonly version: number
  readonly name: string
  readonly status: 'active' | 'paused'
}

interface AgentRow extends Omit<Exposed, 'status'> {
  readonly description: string | null
  readonly input_schema: RawJson | null
  readonly output_schema: RawJson | null
  readonly has_input_schema: boolean
  /** Null if it has no placeholders that matter. */
  readonly prompt: string | null
}

interface CatalogDeps {
  readonly sql: Sql
  readonly slice: SharedSlice
  /** Names of the other tools of the server. */
  readonly reservedNames: ReadonlySet<string>
}

/** Agents of a workspace that are tools: the oldest. */
const AGENTS_MAX = 1_000
const PAGE_TOOLS = 50
/** Serialized schemas of a page. One page is encoded at a time, and must not block the event loop. */
const PAGE_LENGTH = 256 * 1024
/** A longer schema can be used by nobody (`outbound/model/output-schema.ts`), and is not shown. */
const SCHEMA_LENGTH_MAX = 64 * 1024
/** The arguments for more are not listed. */
const PLACEHOLDERS_MAX = 50
const CACHE_LENGTH = 16 << 20
/** An estimate of a definition without its texts. */
const DEFINITION_LENGTH = 500

interface Cached {
  readonly tool: Omit<AgentTool, 'definition'> & { readonly definition: Omit<ToolDefinition, 'name'> }
  readonly length: number
}

/** The hosted agents that MCP clients may call (docs/mcp.md#hosted-agents-as-tools). */
export class AgentCatalog {
  /** By agent and version, which never change. */
  private readonly definitions = new LRUCache<string, Cached>({
    maxSize: CACHE_LENGTH,
    sizeCalculation: ({ length }) => length,
  })

  constructor(private readonly deps: CatalogDeps) {}

  /** The tools that the caller may use, the oldest agent first. @param after the `next` of the page before */
  async list(caller: Caller, after: string | undefined): Promise<ToolPage> {
    const named = [...(await this.exposed(caller))].filter(
      ([, { agent_id }]) => after === undefined || agent_id > after,
    )
    const page = named.slice(0, PAGE_TOOLS)
    await this.load(
      caller.workspaceId,
      page.map(([, agent]) => agent),
    )
    const tools: ToolDefinition[] = []
    let length = 0
    let last: string | undefined
    for (const [name, agent] of page) {
      const cached = this.definitions.get(keyOf(agent))
      // The agent has been edited in the meantime; its new version is on the next list.
      if (cached === undefined) continue
      length += cached.length
      if (tools.length > 0 && length > PAGE_LENGTH) return { tools, next: last }
      tools.push({ name, ...cached.tool.definition })
      last = agent.agent_id
    }
    return { tools, next: named.length > page.length ? page.at(-1)![1].agent_id : undefined }
  }

  /** The tool of this name, if the caller may use it. */
  async find(caller: Caller, name: string): Promise<AgentTool | undefined> {
    const agent = (await this.exposed(caller)).get(name)
    if (agent === undefined) return undefined
    await this.load(caller.workspaceId, [agent])
    const tool = this.definitions.get(keyOf(agent))?.tool
    return tool && { ...tool, definition: { name, ...tool.definition } }
  }

  /** Active agents by the names of their tools. The name of an agent does not depend on who asks, or on paused agents. */
  private async exposed({ workspaceId, agentId }: Caller): Promise<Map<string, Exposed>> {
    const { sql, reservedNames } = this.deps
    const agents = await sql<Exposed[]>`
      select agent_id, version, name, status from agents
      where workspace_id = ${workspaceId} and cardinality(expose) > 0 and 'mcp' = any(expose) and status <> 'archived'
      order by agent_id limit ${AGENTS_MAX}`
    const named = byToolName(agents, reservedNames)
    for (const [name, agent] of named)
      if (agent.status !== 'active' || (agentId !== null && agentId !== agent.agent_id)) named.delete(name)
    return named
  }

  /** Reads the definitions that are not cached. */
  private async load(workspaceId: string, agents: readonly Exposed[]): Promise<void> {
    const { sql, slice } = this.deps
    const missing = agents.filter((agent) => !this.definitions.has(keyOf(agent)))
    if (missing.length === 0) return
    const shown = (column: string) => {
      const schema = sql.unsafe(column)
      return sql`case when octet_length(${schema}::text) <= ${SCHEMA_LENGTH_MAX} then ${schema} end as ${schema}`
    }
    const rows = await sql<AgentRow[]>`
      select agent_id, version, name, description, ${shown('input_schema')}, ${shown('output_schema')},
        input_schema is not null as has_input_schema,
        case when input_schema is null and position('{{' in prompt) > 0 then prompt end as prompt
      from agents
      where workspace_id = ${workspaceId} and agent_id in ${sql(missing.map(({ agent_id }) => agent_id))}`
    const turn = slice.of(workspaceId)
    for (const row of rows) {
      if (turn.isOver) await turn.yield()
      this.definitions.set(keyOf(row), cached(row))
    }
  }
}

const ANY_OBJECT = { type: 'object' }

function cached(row: AgentRow): Cached {
  const names = row.prompt === null ? [] : placeholdersOf(row.prompt)
  const placeholders = names.length > PLACEHOLDERS_MAX ? null : names
  const inputSchema = row.has_input_schema ? shownSchema(row.input_schema) : messageSchema(placeholders)
  const outputSchema = shownSchema(row.output_schema)
  const description = row.description || `The agent ${row.name}.`
  const definition = {
    title: row.name,
    description,
    inputSchema: inputSchema ?? ANY_OBJECT,
    ...(outputSchema !== undefined && { outputSchema }),
    annotations: { openWorldHint: true },
  }
  const texts = (row.input_schema?.text.length ?? 0) + (row.output_schema?.text.length ?? 0) + description.length
  return {
    tool: { agentId: row.agent_id, definition, hasInputSchema: row.has_input_schema, placeholders },
    length: texts + (placeholders ?? []).join().length + DEFINITION_LENGTH,
  }
}

/** The arguments of an agent without an input schema. */
function messageSchema(placeholders: readonly string[] | null): object {
  const input = { type: 'string', description: 'The request to the agent, with all the context that it needs.' }
  const values = (placeholders ?? [])
    .filter((name) => name !== 'input')
    .map((name) => [name, { type: 'string', description: `Fills {{${name}}} in the prompt of the agent.` }])
  const properties = { input, ...Object.fromEntries(values) }
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: placeholders === null }
}

function keyOf({ agent_id, version }: Pick<Exposed, 'agent_id' | 'version'>): string {
  return `${agent_id} ${version}`
}
