import type OpenAI from 'openai'
import { isObject, parsedJson } from '../../base/json-object.ts'
import type { ModelMessage, ModelRequest, ModelToolCall } from './model.ts'
import type { Fault } from './openai-failure.ts'
import { isStrictSchema } from './strict-schema.ts'

type Body = OpenAI.Chat.ChatCompletionCreateParams

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
  /** Most reasoning models know no temperature, or only their own. */
  readonly sendsTemperature: boolean
  /** Whether what the provider said beside its answers, like reasoning, goes back to it: some demand it, some refuse it. */
  readonly returnsExtra: boolean
}

/** Not every server names the field that it does not know. */
const UNKNOWN_FIELD = /stream_options|include_usage|\b(extra|unknown|unexpected|unrecogni[sz]ed|not permitted)\b/i

/** Says that a field is not known or not supported. One that is out of range is a mistake for the agent's owner to correct. */
const REFUSED = /unsupported|not support|only the default|deprecated|not permitted|unknown|unrecogni[sz]ed/i

/** The dialect to try first. @param isOpenAi the server is OpenAI's own */
export function firstDialect(isOpenAi: boolean): Dialect {
  return {
    limitName: isOpenAi ? 'max_completion_tokens' : 'max_tokens',
    asksForUsage: true,
    schemaMode: 'strict',
    sendsTemperature: true,
    returnsExtra: true,
  }
}

/**
 * The dialect for a retry after a server refused an optional feature; undefined if it refused something else. Every
 * step gives up one more feature, so there are at most six.
 */
export function fallBack(dialect: Dialect, sent: Body, { message, details: { status } }: Fault): Dialect | undefined {
  if (status !== 400 && status !== 422 && status !== 501) return undefined
  if (sent.max_tokens !== undefined && message.includes('max_completion_tokens'))
    return { ...dialect, limitName: 'max_completion_tokens' }
  if (sent.response_format !== undefined && /response_format|json_schema|structured/i.test(message)) {
    const isStrict = sent.response_format.type === 'json_schema' && sent.response_format.json_schema.strict
    return { ...dialect, schemaMode: isStrict ? 'guide' : 'words' }
  }
  if (sent.temperature !== undefined && /\btemperature\b/i.test(message) && REFUSED.test(message))
    return { ...dialect, sendsTemperature: false }
  if (dialect.returnsExtra && extraNames(sent).some((name) => message.includes(name)))
    return { ...dialect, returnsExtra: false }
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
    messages: (inWords ? withInstruction(request.messages, outputSchema) : request.messages).map((message) =>
      toMessage(message, dialect),
    ),
    ...(tools.length > 0 && { tools: tools.map(toTool) }),
    ...(temperature !== null && dialect.sendsTemperature && { temperature }),
    ...(maxOutputTokens !== null && { [dialect.limitName]: maxOutputTokens }),
    ...(outputSchema !== null && !inWords && { response_format: toFormat(outputSchema, dialect) }),
    ...(isStream && { stream: true }),
    ...(isStream && dialect.asksForUsage && { stream_options: { include_usage: true } }),
  }
}

function toMessage(message: ModelMessage, { returnsExtra }: Dialect): OpenAI.Chat.ChatCompletionMessageParam {
  switch (message.role) {
    case 'tool':
      return { role: 'tool', tool_call_id: message.toolCallId, content: message.content }
    case 'assistant': {
      const { content, toolCalls = [] } = message
      const extra = returnsExtra ? message.extra : undefined
      if (toolCalls.length === 0) return { role: 'assistant', content: content ?? '', ...extra }
      return {
        role: 'assistant',
        content,
        tool_calls: toolCalls.map((call) => toToolCall(call, returnsExtra)),
        ...extra,
      }
    }
    default:
      return { role: message.role, content: message.content }
  }
}

/** The names of the members that a request gives back to the provider. */
function extraNames({ messages }: Body): string[] {
  const known = new Set(['role', 'content', 'tool_calls', 'tool_call_id', 'id', 'type', 'function'])
  const sent = messages.flatMap((message) => [message, ...('tool_calls' in message ? (message.tool_calls ?? []) : [])])
  return [...new Set(sent.flatMap((each) => Object.keys(each)))].filter((name) => !known.has(name))
}

/** Servers that fill a template with the arguments fail if they are not a JSON object. */
function toToolCall(
  { id, name, arguments: text, extra }: ModelToolCall,
  returnsExtra: boolean,
): OpenAI.Chat.ChatCompletionMessageToolCall {
  const safe = text.trim() === '' ? '{}' : isObject(parsedJson(text)) ? text : JSON.stringify({ malformed: text })
  return { id, type: 'function', function: { name, arguments: safe }, ...(returnsExtra && extra) }
}

/** OpenAI requires both fields even for a tool without arguments. */
function toTool({ name, description, parameters }: ModelRequest['tools'][number]): OpenAI.Chat.ChatCompletionTool {
  return {
    type: 'function',
    function: { name, description, parameters: { type: 'object', properties: {}, ...parameters } },
  }
}

function toFormat(schema: Record<string, unknown>, dialect: Dialect): OpenAI.ResponseFormatJSONSchema {
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
