import type { TokenCounts } from '../../base/conventions/usage.ts'
import type { Slice } from '../../base/http/shared-slice.ts'

/**
 * A language model that continues conversations: the interface that the executor needs of a provider
 * (docs/hosted-agents.md).
 */
export interface Model {
  /**
   * Requests the next turn of a conversation. Retries transient faults by itself, until the signal aborts.
   *
   * @throws ModelFailure when the provider could not be reached, failed or refused
   * @throws the signal's reason as soon as it aborts
   */
  ask(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer>
}

export interface ModelRequest {
  /** The provider's name for it. */
  readonly model: string
  readonly messages: readonly ModelMessage[]
  /** The tools that the model may call, with unique names. */
  readonly tools: readonly ModelTool[]
  /** Null: the provider's default. */
  readonly temperature: number | null
  /** In tokens; null: the provider's default. */
  readonly maxOutputTokens: number | null
  /** JSON Schema that the answer should match; null: any text. The caller must still check the answer against it. */
  readonly outputSchema: Record<string, unknown> | null
  /** If given, the answer is streamed. Called with each piece of text as it arrives. */
  readonly onText?: (delta: string) => void
  /** When this time slice is used up, the reader of a stream yields before its next read. */
  readonly slice?: Slice
  /** The stream broke and is requested again: the text passed to onText so far is void. */
  readonly onRestart?: () => void
}

/** A tool as the model sees it. */
export interface ModelTool {
  /** The name that the model uses. */
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments, an object. */
  readonly parameters: Record<string, unknown>
}

export type ModelMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | {
      readonly role: 'assistant'
      readonly content: string | null
      readonly toolCalls?: readonly ModelToolCall[]
      readonly extra?: ProviderMembers
    }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly content: string }

/**
 * Members of a provider's message or tool call that mean nothing to this service, but that the provider may want back
 * unchanged with the next request of the run, such as `reasoning_content` and thought signatures.
 */
export type ProviderMembers = Readonly<Record<string, unknown>>

export interface ModelToolCall {
  /** Unique within the answer. */
  readonly id: string
  readonly name: string
  /** JSON text as the model wrote it; may be malformed. */
  readonly arguments: string
  readonly extra?: ProviderMembers
}

export interface ModelAnswer {
  /** Null: the model wrote no text. */
  readonly content: string | null
  /** The model's explanation when it declined to answer. */
  readonly refusal: string | null
  /** In the model's order. */
  readonly toolCalls: readonly ModelToolCall[]
  /** The provider's name, such as `stop`, `length` or `tool_calls`. */
  readonly finishReason: string
  /** In tokens; 0 if the provider did not report it. */
  readonly usage: ModelUsage
  /** The model that answered, by the provider's name; the requested one if the provider did not report it. */
  readonly model: string
  readonly responseId: string | null
  /** Settings of the request that the provider refuses for this model, so that they were left out. */
  readonly leftOut?: readonly 'temperature'[]
  /** For the assistant message that repeats this answer. */
  readonly extra?: ProviderMembers
}

/** Parts that the provider does not report are absent. */
export type ModelUsage = TokenCounts

/** The provider could not be reached, failed or refused. `message` has the provider's explanation, without the key. */
export class ModelFailure extends Error {
  constructor(
    message: string,
    /** `status` of the provider's HTTP response, if there was one; `code`: the provider's own error code. */
    readonly provider: { readonly status: number | undefined; readonly code: string | undefined },
  ) {
    super(message)
    this.name = 'ModelFailure'
  }
}
