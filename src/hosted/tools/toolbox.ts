import type { AgentTool, Tool } from '../../activity/agents/tools.ts'
import type { RawJson } from '../../base/raw-json.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { HostedContext } from '../run/context.ts'
import type { HostedRun } from '../run/run.ts'
import { httpTool } from './http-tool.ts'
import type { CallableTool, ToolContext, ToolDefinition } from './tool.ts'

/** What the model of a run may call, and how each call is carried out. */
export type ToolboxEntry =
  | { readonly kind: 'call'; readonly tool: CallableTool }
  | { readonly kind: 'agent'; readonly tool: ToolDefinition; readonly agentId: string }
  | { readonly kind: 'input'; readonly tool: ToolDefinition }

type InputSchemas = ReadonlyMap<string, Record<string, unknown>>

export type Toolbox = ReadonlyMap<string, ToolboxEntry>

/** Built in, for agents with `allow_input_requests`. */
const REQUEST_INPUT: ToolDefinition = {
  name: 'request_input',
  description: 'Asks the user a question and waits for the answer. Use it when you cannot continue without the answer.',
  parameters: {
    type: 'object',
    properties: {
      question: { type: 'string', minLength: 1, maxLength: 10_000 },
      options: {
        type: 'array',
        items: { type: 'string', maxLength: 1_000 },
        maxItems: 50,
        description: 'Answers to choose from.',
      },
    },
    required: ['question'],
    additionalProperties: false,
  },
  requiresApproval: false,
}

const AGENT_PARAMETERS = {
  type: 'object',
  properties: {
    message: { type: 'string', description: 'The request to the agent, with all the context that it needs.' },
  },
  required: ['message'],
}

/** The parameters of a tool, if they are known without asking a server. */
export async function knownParameters(
  sql: Sql,
  workspaceId: string,
  tool: Tool,
): Promise<Record<string, unknown> | undefined> {
  if (tool.type === 'http') return tool.parameters as Record<string, unknown>
  return tool.type === 'agent' ? agentParameters(await inputSchemas(sql, workspaceId, [tool]), tool) : undefined
}

/**
 * The tools of a run, by the name that the model uses.
 *
 * @param signal ends the sessions with MCP servers
 * @throws McpUnavailable when a server does not list its tools
 */
export async function openToolbox(
  run: HostedRun,
  context: ToolContext & Pick<HostedContext, 'sql'>,
  signal: AbortSignal,
): Promise<Toolbox> {
  const { agent } = run.plan
  const toolbox = new Map<string, ToolboxEntry>()
  if (agent.allowInputRequests) toolbox.set(REQUEST_INPUT.name, { kind: 'input', tool: REQUEST_INPUT })
  const own = agent.tools.filter((tool) => tool.type !== 'mcp')
  const schemas = await inputSchemas(context.sql, run.workspaceId, own)
  for (const tool of own) toolbox.set(tool.name, entryOf(tool, run, context, schemas))
  const servers = agent.tools.filter((tool) => tool.type === 'mcp')
  if (servers.length === 0) return toolbox
  // The MCP SDK takes longer to load than the rest of the service; most agents do not use it.
  const { listMcpTools, prefixed } = await import('./mcp-tool.ts')
  const listed = await Promise.all(
    servers.map((server) => listMcpTools(server, { ...context, workspaceId: run.workspaceId, signal })),
  )
  listed.forEach((tools, index) => {
    for (const tool of tools) {
      const name = toolbox.has(tool.name) ? prefixed(servers[index]!, tool.name) : tool.name
      if (!toolbox.has(name)) toolbox.set(name, { kind: 'call', tool: { ...tool, name } })
    }
  })
  return toolbox
}

function entryOf(
  tool: Exclude<Tool, { type: 'mcp' }>,
  run: HostedRun,
  context: ToolContext,
  schemas: InputSchemas,
): ToolboxEntry {
  if (tool.type === 'http') return { kind: 'call', tool: httpTool(tool, { ...context, workspaceId: run.workspaceId }) }
  return { kind: 'agent', tool: agentTool(tool, schemas), agentId: tool.agent_id.toLowerCase() }
}

function agentTool(tool: AgentTool, schemas: InputSchemas): ToolDefinition {
  const { name, description, requires_approval = false } = tool
  return { name, description, parameters: agentParameters(schemas, tool), requiresApproval: requires_approval }
}

/** The `input_schema`s of the agents that are called, by agent; without those that take any input. */
async function inputSchemas(sql: Sql, workspaceId: string, tools: readonly Tool[]): Promise<InputSchemas> {
  const agentIds = tools.flatMap((tool) => (tool.type === 'agent' ? [tool.agent_id.toLowerCase()] : []))
  if (agentIds.length === 0) return new Map()
  const rows = await sql<{ readonly agent_id: string; readonly input_schema: RawJson }[]>`
    select agent_id, input_schema from agents
    where workspace_id = ${workspaceId} and agent_id in ${sql(agentIds)} and input_schema is not null`
  return new Map(rows.map((row) => [row.agent_id, row.input_schema.parse() as Record<string, unknown>]))
}

function agentParameters(schemas: InputSchemas, { agent_id }: AgentTool): Record<string, unknown> {
  const schema = schemas.get(agent_id.toLowerCase())
  return schema === undefined ? AGENT_PARAMETERS : { type: 'object', ...schema }
}
