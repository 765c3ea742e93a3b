import type { McpTool } from '../../src/activity/agents/tools.ts'
import { systemClock } from '../../src/base/clock.ts'
import { McpLists } from '../../src/hosted/tools/mcp-lists.ts'
import { MCP_TIMEOUTS, type McpTimeouts } from '../../src/hosted/tools/mcp-session.ts'
import { listMcpTools } from '../../src/hosted/tools/mcp-tool.ts'
import type { CallableTool, ToolCallContext } from '../../src/hosted/tools/tool.ts'
import { parseEgressAllow } from '../../src/outbound/egress/allow-list.ts'
import { createEgress } from '../../src/outbound/egress/egress.ts'
import { SecretStore } from '../../src/tenants/secrets/store.ts'
import { createVault } from '../../src/tenants/secrets/vault.ts'
import { freshDatabase } from './postgres.ts'
import { temporaryDirectory } from './teardown.ts'

/** Everything between an agent's tool definition and an MCP server, with real components; loopback is allowed. */
export interface McpAgent {
  readonly lists: McpLists
  /** Set to advance the clock of the lists. */
  readonly clock: { now: () => number }
  readonly secrets: SecretStore
  /** Aborts everything that `list` has opened. */
  readonly life: AbortController
  /** Adds a workspace that can have secrets. @returns its id */
  addWorkspace(): Promise<string>
  list(server: { url: string }, more?: Partial<McpTool>, options?: ListOptions): Promise<CallableTool[]>
}

export interface ListOptions {
  readonly timeouts?: Partial<McpTimeouts>
  readonly signal?: AbortSignal
  readonly workspaceId?: string
  /** `EGRESS_ALLOW`. */
  readonly allow?: string
}

export async function mcpAgent(): Promise<McpAgent> {
  const { sql } = await freshDatabase()
  const clock = { now: systemClock.now }
  const secrets = new SecretStore({
    sql,
    clock,
    vault: createVault({ key: undefined, dataDir: await temporaryDirectory() }),
  })
  const lists = new McpLists(clock)
  const life = new AbortController()
  const egresses = new Map<string, ReturnType<typeof createEgress>>()
  const egressFor = (allow: string) => {
    const egress = egresses.get(allow) ?? createEgress({ allow: parseEgressAllow(allow) })
    egresses.set(allow, egress)
    return egress
  }
  return {
    lists,
    clock,
    secrets,
    life,
    async addWorkspace() {
      const workspaceId = crypto.randomUUID()
      await sql`
        insert into workspaces (workspace_id, name, created_at, updated_at) values (${workspaceId}, 'w', now(), now())`
      return workspaceId
    },
    list: ({ url }, more = {}, options = {}) =>
      listMcpTools(
        { type: 'mcp', name: 'server', description: '', server_url: url, ...more },
        {
          egress: egressFor(options.allow ?? '127.0.0.1'),
          secrets,
          workspaceId: options.workspaceId ?? crypto.randomUUID(),
          signal: options.signal ?? life.signal,
          lists,
          timeouts: { ...MCP_TIMEOUTS, ...options.timeouts },
        },
      ),
  }
}

/** The context of one call. */
export function callContext(signal: AbortSignal = new AbortController().signal): ToolCallContext {
  return { idempotencyKey: crypto.randomUUID(), signal }
}

/** @throws Error if the tool is not among them */
export function named(tools: readonly CallableTool[], name: string): CallableTool {
  const found = tools.find((tool) => tool.name === name)
  if (found === undefined) throw new Error(`there is no tool ${name}`)
  return found
}
