import type { AgentTool, Tool } from '../../agents/tools.ts'
import type { HostedRun } from '../run/run.ts'
import { httpTool } from './http-tool.ts'
import type { CallableTool, ToolContext, ToolDefinition } from './tool.ts'

/** What the model of a run may call, and how each call is carried out. */
export type ToolboxEntry =
  | { readonly kind: 'call'; readonly tool: CallableTool }
  | { readonly kind: 'agent'; readonly tool: ToolDefinition; readonly agentId: string }
  | { readonly kind: 'input'; readonly tool: ToolDefinition }

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
export function knownParameters(tool: Tool): Record<string, unknown> | undefined {
  if (tool.type === 'http') return tool.parameters as Record<string, unknown>
  return tool.type === 'agent' ? AGENT_PARAMETERS : undefined
}

/**
 * The tools of a run, by the name that the model uses.
 *
 * @param signal ends the sessions with MCP servers
 * @throws McpUnavailable when a server does not list its tools
 */
export async function openToolbox(run: HostedRun, context: ToolContext, signal: AbortSignal): Promise<Toolbox> {
  const { agent } = run.plan
  const toolbox = new Map<string, ToolboxEntry>()
  if (agent.allowInputRequests) toolbox.set(REQUEST_INPUT.name, { kind: 'input', tool: REQUEST_INPUT })
  const own = agent.tools.filter((tool) => tool.type !== 'mcp')
  for (const tool of own) toolbox.set(tool.name, entryOf(tool, run, context))
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

function entryOf(tool: Exclude<Tool, { type: 'mcp' }>, run: HostedRun, context: ToolContext): ToolboxEntry {
  if (tool.type === 'http') return { kind: 'call', tool: httpTool(tool, { ...context, workspaceId: run.workspaceId }) }
  return { kind: 'agent', tool: agentTool(tool), agentId: tool.agent_id.toLowerCase() }
}

function agentTool({ name, description, requires_approval = false }: AgentTool): ToolDefinition {
  return { name, description, parameters: AGENT_PARAMETERS, requiresApproval: requires_approval }
}
