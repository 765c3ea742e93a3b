import type { Limits } from '../../../base/limits.ts'
import type { Hosted } from '../../../hosted/hosted.ts'
import type { Sql } from '../../../stores/postgres/connect.ts'
import type { McpFeature } from '../provider.ts'
import { AgentCalls } from './calls.ts'
import { AgentCatalog } from './catalog.ts'
import { TaskStore } from './task-store.ts'
import { AgentTasks, TASKS_EXTENSION } from './tasks.ts'

interface McpAgentsDeps {
  readonly sql: Sql
  readonly hosted: Pick<Hosted, 'invocations' | 'responder' | 'resume' | 'slice'>
  readonly limits: Limits
  /** How long a call may be open. */
  readonly waitMs: number
  /** Names of the other tools of the server. */
  readonly reservedNames: ReadonlySet<string>
}

/** Hosted agents as tools and tasks of the MCP server (docs/mcp.md#hosted-agents-as-tools). */
export function agentFeature({ sql, hosted, limits, waitMs, reservedNames }: McpAgentsDeps): McpFeature {
  const catalog = new AgentCatalog({ sql, slice: hosted.slice, reservedNames })
  const tasks = new AgentTasks({ store: new TaskStore(sql), hosted })
  const calls = new AgentCalls({ hosted, tasks, limits, waitMs })
  return {
    tools: {
      list: ({ caller }, after) => catalog.list(caller, after),
      find: async (caller, name) => {
        const tool = await catalog.find(caller, name)
        return tool && { budget: 'invokes', call: (context, input) => calls.call(tool, context, input) }
      },
    },
    methods: tasks.methods(),
    extensions: { [TASKS_EXTENSION]: {} },
  }
}
