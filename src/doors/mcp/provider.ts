import type { Budget } from '../../base/http/rate-limit.ts'
import type { RawJson } from '../../base/raw-json.ts'
import type { Caller } from '../../tenants/keys/schema.ts'

/**
 * What the server offers to its clients, in pieces: each feature implements the interfaces that it needs, and `mcp.ts`
 * puts them together. Every method may throw an ApiError: in a call of a tool it becomes a result with `isError`, anywhere
 * else an error of JSON-RPC.
 */
export interface McpFeature {
  readonly tools?: ToolProvider
  readonly resources?: ResourceProvider
  readonly prompts?: PromptProvider
  /** Methods of extensions, such as `tasks/get`. */
  readonly methods?: ReadonlyMap<string, MethodHandler>
  /** Extensions that the server announces, with their settings. */
  readonly extensions?: Readonly<Record<string, object>>
}

/** One request of a client: who makes it, and how to talk to the client meanwhile. */
export interface CallContext {
  readonly caller: Caller
  /** The key of the request. */
  readonly key: string
  /** Aborted when the client disconnects, or the key is no longer valid. */
  readonly signal: AbortSignal
  /** `modern`: revision 2026-07-28 or later. `legacy`: before, with `initialize`. */
  readonly era: 'legacy' | 'modern'
  /** What the client says that it can do. Always empty for a legacy client: it says so in `initialize`, which is not kept. */
  readonly clientCapabilities: Readonly<Record<string, unknown>>
  /** The client's answers to the `inputRequests` of an earlier result, if it repeats the request with them. */
  readonly inputResponses: Readonly<Record<string, unknown>> | undefined
  /** Tells the client how far the call is, if it asked for that. The answer is then an event stream. */
  progress(notification: Progress): Promise<void>
}

interface Progress {
  /** Rises with each notification. */
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

export interface ToolProvider {
  /**
   * The tools that the caller may use.
   * @param after the `next` of the page before; undefined: the first page
   */
  list(context: CallContext, after: string | undefined): Promise<ToolPage> | ToolPage
  /** The tool of this name, or undefined if there is none here. Called before anything of the call is answered. */
  find(caller: Caller, name: string): Promise<CallableTool | undefined> | CallableTool | undefined
}

/** Some tools, and where the next page begins; undefined at the end. */
export interface ToolPage {
  readonly tools: readonly ToolDefinition[]
  readonly next?: string | undefined
}

/** A tool as clients see it. */
export interface ToolDefinition {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: object
  readonly outputSchema?: object
  readonly annotations?: ToolAnnotations
}

interface ToolAnnotations {
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

export interface CallableTool {
  /** The budget of the key that a call costs, beside that of the request. A call without it is answered with HTTP 429. */
  readonly budget?: Budget
  /**
   * @param input the arguments as they were sent, an object
   * @returns a result, as `toolResult` makes it, or one of an extension, with `resultType`
   */
  call(context: CallContext, input: RawJson): Promise<object>
}

/** @param params the parameters as they were sent, an object; undefined if there were none */
export type MethodHandler = (context: CallContext, params: RawJson | undefined) => Promise<object> | object

export interface ResourceProvider {
  list(context: CallContext): readonly ResourceDefinition[]
  readonly templates: readonly ResourceTemplateDefinition[]
  /** Undefined if the address belongs to no resource of this provider. @throws ApiError NOT_FOUND, FORBIDDEN */
  read(context: CallContext, uri: string): Promise<ResourceText | undefined> | ResourceText | undefined
}

interface ResourceDefinition {
  readonly uri: string
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType: string
}

interface ResourceTemplateDefinition {
  readonly uriTemplate: string
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType: string
}

interface ResourceText {
  readonly mimeType: string
  readonly text: string
}

export interface PromptProvider {
  list(context: CallContext): readonly PromptDefinition[]
  /** The text of a prompt; undefined if there is none of this name. @throws ApiError VALIDATION_ERROR */
  get(context: CallContext, name: string, given: ReadonlyMap<string, string>): PromptText | undefined
}

export interface PromptDefinition {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly arguments: readonly { readonly name: string; readonly description?: string; readonly required: boolean }[]
}

interface PromptText {
  readonly description?: string
  readonly text: string
}
