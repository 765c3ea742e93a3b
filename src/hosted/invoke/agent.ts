import { invalid } from '../../base/errors.ts'
import type { SchemaChecks } from '../../model/output-schema.ts'
import type { Sql } from '../../postgres/connect.ts'
import { HeadersNotFilled, type Secrets } from '../../secrets/store.ts'
import { type HostedAgentRow, plannedAgent } from './plan.ts'

/** The agent as it is now, unless it is archived. */
export async function findAgent(sql: Sql, workspaceId: string, agentId: string): Promise<HostedAgentRow | null> {
  const [row] = await sql<HostedAgentRow[]>`
    select agent_id, name, description, runtime_type, status, model, prompt, tools, output_schema,
      allow_input_requests, temperature, max_output_tokens, max_steps, timeout_seconds, budget_usd,
      stale_after_seconds, metadata, version, created_at, updated_at
    from agents where agent_id = ${agentId} and workspace_id = ${workspaceId} and status <> 'archived'`
  return row ?? null
}

export interface ToolChecks {
  readonly secrets: Secrets
  readonly schemas: SchemaChecks
}

/**
 * Reports a missing secret before the run starts, not in the middle of it.
 * @throws ApiError VALIDATION_ERROR
 */
export async function checkTools(
  agent: HostedAgentRow,
  workspaceId: string,
  { secrets, schemas }: ToolChecks,
): Promise<void> {
  const { tools, outputSchema } = plannedAgent(agent)
  const problem = outputSchema === null ? undefined : schemas.schemaProblem(outputSchema)
  if (problem !== undefined) throw invalid('output_schema', `the agent's schema cannot be used: ${problem}`)
  for (const tool of tools) {
    if (!('headers' in tool) || !JSON.stringify(tool.headers).includes('{{secret:')) continue
    try {
      await secrets.fill(workspaceId, tool.headers ?? {})
    } catch (error) {
      if (error instanceof HeadersNotFilled) throw invalid(`tool ${tool.name} of the agent`, error.message)
      throw error
    }
  }
}
