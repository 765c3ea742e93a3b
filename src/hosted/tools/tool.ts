/** What a tool is to the agent loop, wherever it is carried out (docs/specification.md#tools). */
export interface CallableTool {
  /** As the model calls it. */
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments, an object. */
  readonly parameters: Record<string, unknown>
  /** A person has to approve each call. */
  readonly requiresApproval: boolean
  /** Whether a call whose outcome is unknown, because the process died, may be made again under the same key. */
  readonly isRepeatable: boolean
  /**
   * Carries a call out. A failure of the other side is an outcome that the model is told; it throws only when the
   * signal aborts.
   */
  call(input: Record<string, unknown>, context: ToolCallContext): Promise<ToolOutcome>
}

export interface ToolCallContext {
  /** The same for every attempt at one call, and for no other call. */
  readonly idempotencyKey: string
  readonly signal: AbortSignal
}

/** `output` is any JSON value; `error` is fit for the model, the caller and the log: it holds no secret. */
export type ToolOutcome =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly error: string }
