import type { AgentRow } from '../../activity/agents/schema.ts'
import type { Tool } from '../../activity/agents/tools.ts'
import { stringMember } from '../../base/http/json-reader.ts'
import type { RawJson } from '../../base/raw-json.ts'

/**
 * Everything that determines what a hosted run does, fixed when it is invoked, so that neither an edit of the agent nor
 * a restart changes it. Stored as JSON.
 */
export interface RunPlan {
  readonly agent: PlannedAgent
  /** The system prompt with its placeholders filled. */
  readonly system: string
  /** Earlier messages from the caller; those of a session are read when the run starts. */
  readonly history: readonly HistoryMessage[]
  /** The user message. */
  readonly user: string
  /** The model is asked to stream, because the caller reads a stream. */
  readonly isStreamed: boolean
  /** How many ancestors it has. */
  readonly depth: number
  /** The budgets of its ancestors, the outermost first. */
  readonly budgetsAbove: readonly Budget[]
}

/** What a run and its descendants may cost. */
export interface Budget {
  readonly runId: string
  readonly usd: number
}

/** The budgets that cover a run, the outermost first, its own last. */
export function budgetsOver({ runId, plan }: { readonly runId: string; readonly plan: RunPlan }): readonly Budget[] {
  const { agent, budgetsAbove } = plan
  return agent.budgetUsd === null ? budgetsAbove : [...budgetsAbove, { runId, usd: agent.budgetUsd }]
}

interface PlannedAgent {
  readonly name: string
  readonly model: string
  readonly tools: readonly Tool[]
  readonly outputSchema: Record<string, unknown> | null
  readonly allowInputRequests: boolean
  readonly temperature: number | null
  readonly maxOutputTokens: number | null
  readonly maxSteps: number
  readonly timeoutSeconds: number
  readonly budgetUsd: number | null
}

export interface HistoryMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/** The settings of a hosted agent that become part of the plan. */
export function plannedAgent(row: HostedAgentRow): PlannedAgent {
  return {
    name: row.name,
    model: row.model,
    tools: row.tools.parse() as Tool[],
    outputSchema: row.output_schema === null ? null : (row.output_schema.parse() as Record<string, unknown>),
    allowInputRequests: row.allow_input_requests,
    temperature: row.temperature,
    maxOutputTokens: row.max_output_tokens,
    maxSteps: row.max_steps,
    timeoutSeconds: row.timeout_seconds,
    budgetUsd: row.budget_usd,
  }
}

type MayBeNull =
  | 'description'
  | 'output_schema'
  | 'input_schema'
  | 'temperature'
  | 'max_output_tokens'
  | 'budget_usd'
  | 'stale_after_seconds'

/** A row of `agents` of runtime type hosted, with the columns that such an agent must have. */
export type HostedAgentRow = { readonly [K in Exclude<keyof AgentRow, MayBeNull>]: NonNullable<AgentRow[K]> } & Pick<
  AgentRow,
  MayBeNull
>

/**
 * The user message of an input: its `message` when that is a string, else the whole as JSON
 * (docs/hosted-agents.md#invoke).
 */
export function userMessage(input: RawJson): string {
  return stringMember(input, 'message') ?? input.text
}
