import { createPrices } from '../../base/conventions/prices.ts'
import type { JsonObject } from '../../client/json.ts'
import { note, type PlannedEvent, type Step } from './plan.ts'
import type { Random } from './random.ts'

interface Model {
  readonly provider: string
  /** One that has a list price. */
  readonly name: string
  readonly typicalMs: number
  readonly isReasoning?: boolean
}

export const GPT: Model = { provider: 'openai', name: 'gpt-5-mini', typicalMs: 900, isReasoning: true }
export const CLAUDE: Model = { provider: 'anthropic', name: 'claude-sonnet-4-5', typicalMs: 1_500 }
export const HAIKU: Model = { provider: 'anthropic', name: 'claude-haiku-4-5', typicalMs: 600 }
export const GEMINI: Model = { provider: 'gcp.gemini', name: 'gemini-2.5-pro', typicalMs: 1_800, isReasoning: true }
export const MINI: Model = { provider: 'openai', name: 'gpt-4.1-mini', typicalMs: 500 }

/** A call of a tool that the model asks for. */
export interface ToolUse {
  readonly tool: string
  readonly args: JsonObject
  readonly result: JsonObject
  readonly typicalMs: number
  /** Takes exactly this long, such as a timeout. */
  readonly exactMs?: number | undefined
  /** The call fails with this. */
  readonly error?: string | undefined
}

/** A part of a message, as OpenTelemetry's semantic conventions for generative AI write it. */
type Part =
  | { readonly type: 'text'; readonly content: string }
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; readonly arguments: JsonObject }
  | { readonly type: 'tool_call_response'; readonly id: string; readonly response: JsonObject }

interface Message {
  readonly role: 'user' | 'assistant' | 'tool'
  readonly parts: readonly Part[]
}

interface Usage {
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
}

const PRICES = await createPrices().loaded()
const CHARACTERS_PER_TOKEN = 3.8
/** Providers cache prefixes of at least this many tokens, in steps of this many. */
const CACHE_MIN = 1_024
const CACHE_STEP = 128

/**
 * A conversation with a model, which grows with each call. `otel` reports calls as the OpenTelemetry conventions do, `plain`
 * with the names that people choose themselves.
 */
export class Talk {
  private readonly messages: Message[] = []
  /** Input tokens of the definitions of tools. */
  private readonly overhead: number
  private sentTokens = 0

  constructor(
    private readonly random: Random,
    private readonly model: Model,
    private readonly system: string,
    private readonly style: 'otel' | 'plain' = 'otel',
  ) {
    this.overhead = random.int(700, 2_600)
  }

  user(text: string): this {
    this.messages.push({ role: 'user', parts: [{ type: 'text', content: text }] })
    return this
  }

  /** Adds a turn of an earlier run. */
  before(user: string, answer: string): this {
    this.user(user).messages.push({ role: 'assistant', parts: [{ type: 'text', content: answer }] })
    return this
  }

  /** The model answers with text. @returns the event of its call */
  says(text: string): PlannedEvent {
    return this.call([{ type: 'text', content: text }], 'stop')
  }

  /** The model asks for calls of tools. @returns the event of its call, and those of the tools, one after the other */
  uses(...calls: readonly ToolUse[]): Step[] {
    const named = calls.map((call) => ({ ...call, id: `call_${this.random.int(1e9, 9e9).toString(36)}` }))
    const parts = named.map(({ id, tool, args }) => ({ type: 'tool_call' as const, id, name: tool, arguments: args }))
    const asked = this.call(parts, 'tool_calls')
    const results = named.map(({ id, result, error }) => {
      return { type: 'tool_call_response' as const, id, response: error === undefined ? result : { error } }
    })
    this.messages.push({ role: 'tool', parts: results })
    return [asked, ...named.flatMap((call) => this.toolCall(call))]
  }

  private call(answer: readonly Part[], finish: 'stop' | 'tool_calls'): PlannedEvent {
    const given = [...this.messages]
    const usage = this.usageOf(answer)
    this.messages.push({ role: 'assistant', parts: answer })
    const ms = this.random.latencyMs(this.model.typicalMs + usage.outputTokens * 4)
    const payload =
      this.style === 'otel'
        ? this.inOtel(given, answer, { finish, usage, ms })
        : this.inPlain(given, answer, { finish, usage, ms })
    return note('info', 'llm.call', payload, ms)
  }

  private usageOf(answer: readonly Part[]): Usage {
    const inputTokens = this.overhead + tokensOf(this.system) + tokensOf(this.messages)
    const cached = this.sentTokens < CACHE_MIN ? 0 : Math.floor(this.sentTokens / CACHE_STEP) * CACHE_STEP
    const reasoningTokens = this.model.isReasoning === true ? this.random.int(1, 9) * 64 : 0
    this.sentTokens = inputTokens
    return { inputTokens, cachedTokens: cached, reasoningTokens, outputTokens: tokensOf(answer) + 9 + reasoningTokens }
  }

  private inOtel(given: readonly Message[], answer: readonly Part[], { finish, usage, ms }: CallFacts): JsonObject {
    const { provider, name } = this.model
    return {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': provider,
      'gen_ai.request.model': name,
      'gen_ai.response.model': name,
      'gen_ai.response.finish_reasons': [finish],
      'gen_ai.usage.input_tokens': usage.inputTokens,
      'gen_ai.usage.output_tokens': usage.outputTokens,
      ...(usage.cachedTokens > 0 && { 'gen_ai.usage.cache_read.input_tokens': usage.cachedTokens }),
      ...(usage.reasoningTokens > 0 && { 'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens }),
      cost_usd: this.costOf(usage),
      latency_ms: ms,
      'gen_ai.system_instructions': [{ type: 'text', content: this.system }],
      'gen_ai.input.messages': given,
      'gen_ai.output.messages': [{ role: 'assistant', parts: answer, finish_reason: finish }],
    }
  }

  private inPlain(given: readonly Message[], answer: readonly Part[], { finish, usage, ms }: CallFacts): JsonObject {
    const messages = [{ role: 'system', content: this.system }, ...given.flatMap(plainMessages)]
    const [choice] = plainMessages({ role: 'assistant', parts: answer })
    return {
      model: this.model.name,
      messages,
      choices: [{ message: choice, finish_reason: finish }],
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      cost_usd: this.costOf(usage),
      latency_ms: ms,
    }
  }

  /** In USD, by the list price. */
  private costOf(usage: Usage): number {
    return Math.round((PRICES.costUsd(this.model.name, usage, Date.now()) ?? 0) * 1e6) / 1e6
  }

  private toolCall({
    id,
    tool,
    args,
    result,
    error,
    typicalMs,
    exactMs,
  }: ToolUse & { readonly id: string }): PlannedEvent[] {
    const ms = exactMs ?? this.random.latencyMs(typicalMs)
    const level = error === undefined ? 'info' : 'error'
    if (this.style === 'plain') {
      const ended = error === undefined ? { output: result } : { error_message: error }
      return [
        note('info', 'tool.call.started', { tool, tool_call_id: id, input: args }),
        note(level, 'tool.call.finished', { tool, tool_call_id: id, ...ended, duration_ms: ms }, ms),
      ]
    }
    const call = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool,
      'gen_ai.tool.call.id': id,
      'gen_ai.tool.call.arguments': args,
    }
    const ended = error === undefined ? { 'gen_ai.tool.call.result': result } : { 'error.message': error }
    return [
      note('info', 'tool.call.started', call),
      note(level, 'tool.call.finished', { ...call, ...ended, latency_ms: ms }, ms),
    ]
  }
}

interface CallFacts {
  readonly finish: string
  readonly usage: Usage
  readonly ms: number
}

function tokensOf(value: unknown): number {
  return Math.ceil((typeof value === 'string' ? value : JSON.stringify(value)).length / CHARACTERS_PER_TOKEN)
}

/** In the form of chat completions. */
function plainMessages({ role, parts }: Message): JsonObject[] {
  if (role === 'tool')
    return parts.flatMap((part) =>
      part.type === 'tool_call_response'
        ? [{ role, tool_call_id: part.id, content: JSON.stringify(part.response) }]
        : [],
    )
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.content] : [])).join('\n')
  const calls = parts.flatMap((part) =>
    part.type === 'tool_call'
      ? [{ id: part.id, type: 'function', function: { name: part.name, arguments: JSON.stringify(part.arguments) } }]
      : [],
  )
  return [{ role, content: text === '' ? null : text, ...(calls.length > 0 && { tool_calls: calls }) }]
}
