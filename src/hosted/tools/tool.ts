import type { ModelTool } from '../../outbound/model/model.ts'
import type { HostedContext } from '../run/context.ts'
import type { McpLists } from './mcp-lists.ts'

/** What tools need of their process. */
export interface ToolContext extends Pick<HostedContext, 'egress' | 'secrets'> {
  readonly lists: McpLists
}

/** What the executor knows of a tool before it calls it. */
export interface ToolDefinition extends ModelTool {
  /** A person has to approve each call. */
  readonly requiresApproval: boolean
}

/** A tool as the executor calls it, whatever its type (docs/hosted-agents.md#tools). */
export interface CallableTool extends ToolDefinition {
  /** Whether a call whose outcome is unknown, because the process died, may be repeated with the same key. */
  readonly isRepeatable: boolean
  /**
   * Carries a call out. A failure of the other side is an outcome for the model; the method throws only when the signal
   * aborts.
   */
  call(input: Record<string, unknown>, context: ToolCallContext): Promise<ToolOutcome>
}

export interface ToolCallContext {
  /** The same for every attempt at one call, and for no other call. */
  readonly idempotencyKey: string
  readonly signal: AbortSignal
}

/** `output` is any JSON value; `error` is safe for the model, the caller and the log: it contains no secret. */
export type ToolOutcome =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly error: string }
