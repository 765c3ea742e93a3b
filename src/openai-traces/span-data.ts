import { lookup } from '../base/lookup.ts'
import { isPlausible } from '../conventions/usage-names.ts'
import type { AnyValue, Attributes } from '../otlp/telemetry.ts'

/**
 * What spans of the OpenAI Agents SDK record (`span_data`), in the names of OpenTelemetry's conventions, so that the
 * mapping of spans, the statistics and the page read both. Members without such a name keep their own.
 */
interface Described {
  readonly name: string
  readonly attributes: Attributes
}

interface Kind {
  /** `gen_ai.operation.name`; none for spans that are neither a call nor an agent. */
  readonly operation?: string
  /** The conventional names of members. */
  readonly names?: ReadonlyMap<string, string>
  readonly nameOf?: (data: Attributes) => string
}

const MODEL_CALL_NAMES = {
  input: 'gen_ai.input.messages',
  output: 'gen_ai.output.messages',
  model: 'gen_ai.request.model',
  response_id: 'gen_ai.response.id',
} as const
const SOUND_NAMES = { input: 'input.value', output: 'output.value', model: 'gen_ai.request.model' } as const
const TOOL_NAMES = {
  name: 'gen_ai.tool.name',
  input: 'gen_ai.tool.call.arguments',
  output: 'gen_ai.tool.call.result',
} as const

const KINDS = lookup<Kind>({
  agent: { operation: 'invoke_agent', names: lookup({ name: 'gen_ai.agent.name' }) },
  generation: { operation: 'chat', names: lookup(MODEL_CALL_NAMES), nameOf: modelName },
  response: { operation: 'chat', names: lookup(MODEL_CALL_NAMES), nameOf: modelName },
  function: { operation: 'execute_tool', names: lookup(TOOL_NAMES) },
  transcription: { operation: 'generate_content', names: lookup(SOUND_NAMES), nameOf: modelName },
  speech: { operation: 'generate_content', names: lookup(SOUND_NAMES), nameOf: modelName },
  speech_group: { names: lookup({ input: 'input.value' }) },
  handoff: { nameOf: (data) => `handoff to ${textOf(data.get('to_agent')) || 'an agent'}` },
  mcp_tools: {
    names: lookup({ result: 'output.value' }),
    nameOf: (data) => `list tools of ${textOf(data.get('server')) || 'a server'}`,
  },
  turn: { nameOf: (data) => `turn ${data.get('turn') ?? ''}`.trimEnd() },
})

/** Members of a name that is not conventional may not take one that means something else here. */
export const SPAN_TYPE = 'span_type'

/** @returns null if the data have no type */
export function describe(data: Attributes): Described | null {
  const type = textOf(data.get('type'))
  if (type === '') return null
  // Older versions of the service know no such types, so the SDK sends them as custom spans.
  const inner = type === 'custom' ? data.get('data') : undefined
  const innerType = inner instanceof Map ? textOf((inner as Attributes).get('sdk_span_type')) : ''
  if (innerType === 'task' || innerType === 'turn') return described(innerType, inner as Attributes)
  return described(type, data)
}

function described(type: string, data: Attributes): Described {
  const kind = KINDS.get(type) ?? {}
  const attributes: Attributes = new Map<string, AnyValue>([[SPAN_TYPE, type]])
  if (kind.operation !== undefined) attributes.set('gen_ai.operation.name', kind.operation)
  if (kind.operation === 'chat') {
    addUsage(attributes, data.get('usage'))
    addCompletion(attributes, data.get('output'))
  }
  for (const [name, value] of data) {
    if (name === 'type' || name === 'sdk_span_type') continue
    const wanted = kind.names?.get(name) ?? name
    // Only a name that was given above, or by another member, is taken.
    if (!attributes.has(wanted)) attributes.set(wanted, value)
  }
  return { name: kind.nameOf?.(data) ?? (textOf(data.get('name')) || type), attributes }
}

/**
 * The SDK gives a model call that is not streamed the whole answer of the chat completions API as its output, which has the
 * usage, instead of usage and messages.
 */
function addCompletion(attributes: Attributes, output: AnyValue | undefined): void {
  const answer = mapOf(Array.isArray(output) ? output[0] : undefined)
  const choices = answer?.get('choices')
  if (answer?.get('object') !== 'chat.completion' || !Array.isArray(choices)) return
  if (!attributes.has('gen_ai.usage.input_tokens')) addUsage(attributes, answer.get('usage'))
  for (const [name, member] of [
    ['gen_ai.response.id', 'id'],
    ['gen_ai.response.model', 'model'],
  ] as const) {
    const text = textOf(answer.get(member))
    if (text !== '') attributes.set(name, text)
  }
  const messages = choices.flatMap((choice) => mapOf(choice)?.get('message') ?? [])
  if (messages.length > 0) attributes.set('gen_ai.output.messages', messages)
  const reasons = choices.flatMap((choice) => textOf(mapOf(choice)?.get('finish_reason')) || [])
  if (reasons.length > 0) attributes.set('gen_ai.response.finish_reasons', reasons)
}

function mapOf(value: AnyValue | undefined): Attributes | undefined {
  return value instanceof Map ? (value as Attributes) : undefined
}

const CACHED = ['cached_tokens', 'cached_input_tokens', 'cache_read_input_tokens']
const REASONING = ['reasoning_tokens']
const DETAILS = ['input_tokens_details', 'prompt_tokens_details', 'output_tokens_details', 'completion_tokens_details']

/** The tokens of a model call. `turn` and `task` spans repeat them, so only model calls get these names. */
export function addUsage(attributes: Attributes, usage: AnyValue | undefined): void {
  if (!(usage instanceof Map)) return
  const outer = usage as Attributes
  const details = outer.get('details')
  const levels = details instanceof Map ? [outer, details as Attributes] : [outer]
  const within = levels.flatMap((level) => DETAILS.flatMap((name) => mapIn(level, name)))
  const add = (name: string, places: readonly Attributes[], names: readonly string[]) => {
    for (const place of places) {
      for (const each of names) {
        const value = place.get(each)
        if (typeof value !== 'number' || !isPlausible('inputTokens', value)) continue
        attributes.set(name, value)
        return
      }
    }
  }
  add('gen_ai.usage.input_tokens', [outer], ['input_tokens', 'prompt_tokens'])
  add('gen_ai.usage.output_tokens', [outer], ['output_tokens', 'completion_tokens'])
  add('gen_ai.usage.cache_read.input_tokens', [...within, ...levels], CACHED)
  add('gen_ai.usage.reasoning.output_tokens', [...within, ...levels], REASONING)
}

/** The map with this name, or those in the list with it: the SDK sums up several requests as a list. */
function mapIn(of: Attributes, name: string): Attributes[] {
  const value = of.get(name)
  const all = Array.isArray(value) ? value.slice(0, 1) : [value]
  return all.filter((each) => each instanceof Map) as Attributes[]
}

function modelName(data: Attributes): string {
  const type = textOf(data.get('type'))
  return [type, textOf(data.get('model'))].filter((part) => part !== '').join(' ')
}

function textOf(value: AnyValue | undefined): string {
  return typeof value === 'string' ? value : ''
}
