import { isObject, parsedJson } from '../base/json-object.ts'
import type { ModelMessage, ModelRequest, ModelToolCall } from './model.ts'
import type { Fault } from './openai-failure.ts'
import { isStrictSchema } from './strict-schema.ts'

/** The body of a request. */
export interface Body {
  readonly model: string
  readonly messages: readonly Message[]
  readonly tools?: readonly ToolParam[]
  readonly temperature?: number
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
  readonly response_format?: ResponseFormat
  readonly stream?: true
  readonly stream_options?: { readonly include_usage: true }
}

type Message =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string | null; readonly tool_calls?: readonly ToolCallParam[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

interface ToolCallParam {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

interface ToolParam {
  readonly type: 'function'
  readonly function: Pick<ModelRequest['tools'][number], 'name' | 'description' | 'parameters'>
}

interface ResponseFormat {
  readonly type: 'json_schema'
  readonly json_schema: { readonly name: string; readonly schema: Record<string, unknown>; readonly strict: boolean }
}

/** The variant of the API that one server accepts for one model, where compatible servers differ. */
export interface Dialect {
  /**
   * OpenAI's newer models refuse `max_tokens`; most other servers know no other name, and some ignore unknown fields,
   * which would silently remove the limit.
   */
  readonly limitName: 'max_tokens' | 'max_completion_tokens'
  /** Whether streams request usage: otherwise most servers send none. */
  readonly asksForUsage: boolean
  /** How the output schema is sent: as strict, as a guide, or in the prompt, which any server accepts. */
  readonly schemaMode: 'strict' | 'guide' | 'words'
}

/** Not every server names the field that it does not know. */
const UNKNOWN_FIELD = /stream_options|include_usage|\b(extra|unknown|unexpected|unrecogni[sz]ed|not permitted)\b/i

/** The dialect to try first. @param isOpenAi the server is OpenAI's own */
export function firstDialect(isOpenAi: boolean): Dialect {
  return {
    limitName: isOpenAi ? 'max_completion_tokens' : 'max_tokens',
    asksForUsage: true,
    schemaMode: 'strict',
  }
}

/**
 * The dialect for a retry after a server refused an optional feature; undefined if it refused something else. Every
 * step gives up one more feature, so there are at most four.
 */
export function fallBack(dialect: Dialect, sent: Body, { message, details: { status } }: Fault): Dialect | undefined {
  if (status !== 400 && status !== 422 && status !== 501) return undefined
  if (sent.max_tokens !== undefined && message.includes('max_completion_tokens'))
    return { ...dialect, limitName: 'max_completion_tokens' }
  if (sent.response_format !== undefined && /response_format|json_schema|structured/i.test(message)) {
    return { ...dialect, schemaMode: sent.response_format.json_schema.strict ? 'guide' : 'words' }
  }
  if (sent.stream_options !== undefined && UNKNOWN_FIELD.test(message)) return { ...dialect, asksForUsage: false }
  return undefined
}

/** The body of a request, in the part of chat completions that any compatible server accepts. */
export function toBody(request: ModelRequest, dialect: Dialect): Body {
  const { tools, temperature, maxOutputTokens, outputSchema } = request
  const isStream = request.onText !== undefined
  const inWords = outputSchema !== null && dialect.schemaMode === 'words'
  return {
    model: request.model,
    messages: (inWords ? withInstruction(request.messages, outputSchema) : request.messages).map(toMessage),
    ...(tools.length > 0 && { tools: tools.map(toTool) }),
    ...(temperature !== null && { temperature }),
    ...(maxOutputTokens !== null && { [dialect.limitName]: maxOutputTokens }),
    ...(outputSchema !== null && !inWords && { response_format: toFormat(outputSchema, dialect) }),
    ...(isStream && { stream: true }),
    ...(isStream && dialect.asksForUsage && { stream_options: { include_usage: true } }),
  }
}

function toMessage(message: ModelMessage): Message {
  switch (message.role) {
    case 'tool':
      return { role: 'tool', tool_call_id: message.toolCallId, content: message.content }
    case 'assistant': {
      const { content, toolCalls = [] } = message
      if (toolCalls.length === 0) return { role: 'assistant', content: content ?? '' }
      return { role: 'assistant', content, tool_calls: toolCalls.map(toToolCall) }
    }
    default:
      return { role: message.role, content: message.content }
  }
}

/** Servers that fill a template with the arguments fail if they are not a JSON object. */
function toToolCall({ id, name, arguments: text }: ModelToolCall): ToolCallParam {
  const safe = text.trim() === '' ? '{}' : isObject(parsedJson(text)) ? text : JSON.stringify({ malformed: text })
  return { id, type: 'function', function: { name, arguments: safe } }
}

/** OpenAI requires both fields even for a tool without arguments. */
function toTool({ name, description, parameters }: ModelRequest['tools'][number]): ToolParam {
  return {
    type: 'function',
    function: { name, description, parameters: { type: 'object', properties: {}, ...parameters } },
  }
}

function toFormat(schema: Record<string, unknown>, dialect: Dialect): ResponseFormat {
  const strict = dialect.schemaMode === 'strict' && isStrictSchema(schema)
  return { type: 'json_schema', json_schema: { name: 'output', schema, strict } }
}

/** In the first system message, because some models allow only one. */
function withInstruction(messages: readonly ModelMessage[], schema: Record<string, unknown>): ModelMessage[] {
  const instruction = `Answer with JSON only, without any other text, that follows this JSON Schema:\n${JSON.stringify(schema)}`
  const [first, ...rest] = messages
  if (first?.role !== 'system') return [{ role: 'system', content: instruction }, ...messages]
  return [{ role: 'system', content: `${first.content}\n\n${instruction}` }, ...rest]
}
