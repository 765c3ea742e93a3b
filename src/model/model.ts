import type { CallableTool } from '../hosted/tools/tool.ts'

/**
 * A language model that answers conversations: what the agent loop needs of a provider
 * (docs/specification.md#hosted-agents).
 */
export interface Model {
  /**
   * Asks for the next turn of a conversation. Faults that may pass are retried within; the deadline is the signal's.
   *
   * @throws ModelFailure when the provider could not or would not answer
   * @throws the signal's reason, as soon as it aborts
   */
  ask(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer>
}

export interface ModelRequest {
  /** The provider's name for it. */
  readonly model: string
  readonly messages: readonly ModelMessage[]
  /** What the model may call, each name once. */
  readonly tools: readonly Pick<CallableTool, 'name' | 'description' | 'parameters'>[]
  /** Null: the provider's default. */
  readonly temperature: number | null
  /** In tokens; null: the provider's default. */
  readonly maxOutputTokens: number | null
  /** JSON Schema that the answer has to follow; null: any text. The answer still has to be checked against it. */
  readonly outputSchema: Record<string, unknown> | null
  /** Given: the answer is streamed. Called with each piece of text as it comes. */
  readonly onText?: (delta: string) => void
  /** The answer broke off and is asked for again: what onText was told so far does not count any more. */
  readonly onRestart?: () => void
}

export type ModelMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string | null; readonly toolCalls?: readonly ModelToolCall[] }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly content: string }

export interface ModelToolCall {
  /** Unlike every other of the same answer. */
  readonly id: string
  readonly name: string
  /** JSON text as the model wrote it; may be malformed. */
  readonly arguments: string
}

export interface ModelAnswer {
  /** Null: the model said nothing. */
  readonly content: string | null
  /** What the model said instead of an answer, when it declined to give one. */
  readonly refusal: string | null
  /** In the order in which the model made them. */
  readonly toolCalls: readonly ModelToolCall[]
  /** As the provider names it, as in `stop`, `length` or `tool_calls`. */
  readonly finishReason: string
  /** In tokens; 0 where the provider did not say. */
  readonly usage: ModelUsage
  /** The model that answered, as the provider names it; the one asked for where it did not say. */
  readonly model: string
  readonly responseId: string | null
}

export interface ModelUsage {
  readonly inputTokens: number
  readonly outputTokens: number
}

/** The provider could not or would not answer. `message` says what it said, without the key. */
export class ModelFailure extends Error {
  /** @param fault `status`: of the provider's HTTP answer, where it gave one; `code`: the provider's own name for it */
  constructor(
    message: string,
    fault: { readonly status?: number | undefined; readonly code?: string | undefined } = {},
  ) {
    super(message)
    this.name = 'ModelFailure'
    this.status = fault.status
    this.code = fault.code
  }

  readonly status: number | undefined
  readonly code: string | undefined
}
