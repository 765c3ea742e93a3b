import { CallToolResultSchema, ListToolsResultSchema, type Tool } from '@modelcontextprotocol/sdk/types.js'
import type { McpTool } from '../../activity/agents/tools.ts'
import { orAborted } from '../../base/abort.ts'
import { type FilledHeaders, HeadersNotFilled, type Secrets } from '../../tenants/secrets/store.ts'
import { type McpToolList, McpUnavailable } from './mcp-lists.ts'
import { failureText, outcomeOf } from './mcp-outcome.ts'
import { MCP_TIMEOUTS, type McpServer, McpSessions, type McpTimeouts } from './mcp-session.ts'
import type { CallableTool, ToolCallContext, ToolContext, ToolOutcome } from './tool.ts'

/** Limits of what an agent takes from one server: tools, and bytes of their descriptions as JSON. */
const TOOLS_MAX = 500
const TOOLS_BYTES_MAX = 512 * 1024
const PAGES_MAX = 50
/** The same limit as for tools that an agent defines itself. */
const DESCRIPTION_LENGTH_MAX = 10_000
/** What model providers accept as the name of a function. */
const NAME_LENGTH_MAX = 64

interface McpDeps extends ToolContext {
  readonly workspaceId: string
  /** Ends the listing, and later the session of the calls: aborts when the run pauses or ends. */
  readonly signal: AbortSignal
  readonly timeouts?: McpTimeouts
}

/**
 * The tools of an MCP server (streamable HTTP) as the executor calls them: all, or those in `allowed_tools`. Names that
 * the server does not know are ignored, and so are tools that run only as protocol tasks. A tool keeps the server's
 * name, with characters other than letters, digits, `_` and `-` replaced; {@link prefixed} distinguishes tools of two
 * servers with the same name. The listing is at most a minute old (`McpLists`); no connection is opened before the
 * first call.
 *
 * @throws McpUnavailable; the reason of `deps.signal` once that aborts
 */
export async function listMcpTools(definition: McpTool, deps: McpDeps): Promise<CallableTool[]> {
  const { egress, secrets, workspaceId, signal, lists, timeouts = MCP_TIMEOUTS } = deps
  const filled = await filledHeaders(definition, secrets, workspaceId)
  const key = keyOf(definition, workspaceId, filled)
  const server: McpServer = {
    url: definition.server_url,
    headers: filled.headers,
    egress,
    timeouts,
    toolsChanged: () => lists.forget(key),
  }
  const tools = await orAborted(
    lists.get(key, () => listed(definition, server, filled)),
    signal,
  )
  const sessions = new McpSessions(server, signal)
  const names = distinctNames(tools)
  return tools.map((tool, index) => callable(tool, names[index], { definition, sessions, filled, life: signal }))
}

/** The name of a tool, prefixed with the name of its definition. @param name as `listMcpTools` returned it */
export function prefixed(definition: Pick<McpTool, 'name'>, name: string): string {
  return fitted(`${definition.name}__${name}`)
}

interface Origin {
  readonly definition: McpTool
  readonly sessions: McpSessions
  readonly filled: FilledHeaders
  readonly life: AbortSignal
}

function callable(tool: Tool, name: string, { definition, sessions, filled, life }: Origin): CallableTool {
  const { readOnlyHint, idempotentHint } = tool.annotations ?? {}

  async function call(input: Record<string, unknown>, context: ToolCallContext): Promise<ToolOutcome> {
    const _meta = { idempotencyKey: context.idempotencyKey }
    try {
      const result = await sessions.request(
        { method: 'tools/call', params: { name: tool.name, arguments: input, _meta } },
        CallToolResultSchema,
        context.signal,
      )
      return outcomeOf(result, filled.redact)
    } catch (error) {
      for (const signal of [context.signal, life]) signal.throwIfAborted()
      return { ok: false, error: failureText(error, filled.redact) }
    }
  }

  return {
    name,
    description: (tool.description ?? tool.title ?? '').slice(0, DESCRIPTION_LENGTH_MAX),
    parameters: tool.inputSchema,
    requiresApproval: definition.requires_approval === true,
    isRepeatable: readOnlyHint === true || idempotentHint === true,
    call,
  }
}

/** Lists the tools in a session of its own: the list is shared with other runs, whatever happens to this one. */
async function listed(definition: McpTool, server: McpServer, filled: FilledHeaders): Promise<McpToolList> {
  const end = new AbortController()
  const sessions = new McpSessions(server, end.signal)
  const { openMs, silenceMs } = server.timeouts
  const limit = AbortSignal.timeout(openMs + silenceMs)
  try {
    const tools = await allPages(definition, sessions, limit)
    const json = JSON.stringify(tools)
    const clean = filled.redact(json)
    return clean === json ? tools : JSON.parse(clean)
  } catch (error) {
    const reason = limit.aborted ? 'the server did not answer in time' : reasonOf(error, filled)
    throw new McpUnavailable(about(definition, reason), { cause: error })
  } finally {
    end.abort()
  }
}

async function allPages(definition: McpTool, sessions: McpSessions, signal: AbortSignal): Promise<Tool[]> {
  const allowed = definition.allowed_tools && new Set(definition.allowed_tools)
  const tools: Tool[] = []
  let cursor: string | undefined
  let bytes = 0
  for (let page = 0; page < PAGES_MAX; page++) {
    const request = { method: 'tools/list' as const, params: cursor === undefined ? {} : { cursor } }
    const answer = await sessions.request(request, ListToolsResultSchema, signal)
    for (const tool of answer.tools) {
      if (allowed?.has(tool.name) === false || tool.execution?.taskSupport === 'required') continue
      tools.push(tool)
      bytes += Buffer.byteLength(JSON.stringify(tool))
    }
    if (tools.length > TOOLS_MAX || bytes > TOOLS_BYTES_MAX) throw new TooMuch()
    cursor = answer.nextCursor
    if (cursor === undefined) return tools
  }
  throw new TooMuch()
}

class TooMuch extends Error {}

function reasonOf(error: unknown, { redact }: FilledHeaders): string {
  if (!(error instanceof TooMuch)) return failureText(error, redact)
  return `it offers more than ${TOOLS_MAX} tools or ${TOOLS_BYTES_MAX / 1024} KiB of descriptions; allowed_tools can name those that are needed`
}

function about({ name, server_url }: McpTool, reason: string): string {
  return `MCP server ${new URL(server_url).host} of tool ${name}: ${reason}`
}

async function filledHeaders(definition: McpTool, secrets: Secrets, workspaceId: string): Promise<FilledHeaders> {
  try {
    return await secrets.fill(workspaceId, definition.headers ?? {})
  } catch (error) {
    if (!(error instanceof HeadersNotFilled)) throw error
    throw new McpUnavailable(about(definition, error.message), { cause: error })
  }
}

/** Everything that determines what a server lists, and for whom; hashed, because it contains secrets. */
function keyOf({ server_url, allowed_tools }: McpTool, workspaceId: string, { headers }: FilledHeaders): string {
  const parts = [workspaceId, server_url, Object.entries(headers).sort(), allowed_tools]
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(parts)).digest('base64')
}

/** Names for the model, in the order of the tools. Names that differ only in replaced characters get a number. */
function distinctNames(tools: McpToolList): string[] {
  const taken = new Set<string>()
  return tools.map((tool) => {
    const plain = fitted(tool.name.replaceAll(/[^a-zA-Z0-9_-]/g, '_') || '_')
    let name = plain
    for (let number = 2; taken.has(name); number++) name = fitted(`${plain}_${number}`)
    taken.add(name)
    return name
  })
}

/** A name that is too long ends in a hash of the whole, so that it stays distinct. */
function fitted(name: string): string {
  if (name.length <= NAME_LENGTH_MAX) return name
  const hash = Bun.hash.crc32(name).toString(16).padStart(8, '0')
  return `${name.slice(0, NAME_LENGTH_MAX - 9)}_${hash}`
}
