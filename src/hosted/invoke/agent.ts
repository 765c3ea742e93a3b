import { agentColumns } from '../../activity/agents/rows.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import type { RunIdentity } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import { SCHEMA_LENGTH_MAX, type SchemaChecks } from '../../outbound/model/output-schema.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { HeadersNotFilled } from '../../tenants/secrets/store.ts'
import { storable } from '../executor/tool-calls.ts'
import type { HostedContext } from '../run/context.ts'
import { type HostedAgentRow, plannedAgent, userMessage } from '../run/plan.ts'
import type { PlannedRun } from '../store/begin.ts'

/** The agent as it is now, unless it is archived. */
export async function findAgent(sql: Sql, workspaceId: string, agentId: string): Promise<HostedAgentRow | null> {
  const [row] = await sql<HostedAgentRow[]>`
    select ${agentColumns(sql)} from agents
    where agent_id = ${agentId} and workspace_id = ${workspaceId} and status <> 'archived'`
  return row ?? null
}

/** A run that continues no session and has no parent; the caller changes what is different. */
export function plannedRun(agent: HostedAgentRow, identity: RunIdentity, input: RawJson, system: string): PlannedRun {
  return {
    ...identity,
    agentId: agent.agent_id,
    agentVersion: agent.version,
    rootRunId: identity.runId,
    parentRunId: null,
    parentCallId: null,
    sessionId: null,
    startsSession: false,
    externalUserId: null,
    input,
    plan: {
      agent: plannedAgent(agent),
      system,
      history: [],
      user: storable(userMessage(input)),
      isStreamed: false,
      depth: 0,
      budgetsAbove: [],
    },
  }
}

/**
 * Checks an input against the `input_schema` of the agent.
 * @throws ApiError VALIDATION_ERROR naming the place, as in `input.items[3].price`
 */
export function checkInput(agent: HostedAgentRow, input: RawJson, schemas: SchemaChecks): void {
  if (agent.input_schema === null) return
  const unusable = (why: string) => invalid('input_schema', `the agent's schema cannot be used: ${why}`)
  if (agent.input_schema.text.length > SCHEMA_LENGTH_MAX)
    throw unusable(`it is longer than ${SCHEMA_LENGTH_MAX} characters`)
  const schema = agent.input_schema.parse() as Record<string, unknown>
  const broken = schemas.schemaProblem(schema)
  if (broken !== undefined) throw unusable(broken)
  const problem = schemas.inputProblem(schema, input.text)
  if (problem !== undefined) throw new ApiError('VALIDATION_ERROR', problem)
}

/**
 * Reports a missing secret before the run starts, not in the middle of it.
 * @throws ApiError VALIDATION_ERROR
 */
export async function checkTools(
  agent: HostedAgentRow,
  workspaceId: string,
  { secrets, schemas }: Pick<HostedContext, 'secrets' | 'schemas'>,
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
