import { reportedUsage } from '../../base/conventions/usage.ts'
import { lookup } from '../../base/lookup.ts'
import { textOf } from '../traces/attributes.ts'
import { TOKEN_MEMBERS } from '../traces/conventions.ts'
import type { AnyValue, Attributes } from '../traces/telemetry.ts'

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

export function mapOf(value: AnyValue | undefined): Attributes | undefined {
  return value instanceof Map ? (value as Attributes) : undefined
}

/** The tokens of a model call. `turn` and `task` spans repeat them, so only model calls get these names. */
export function addUsage(attributes: Attributes, usage: AnyValue | undefined): void {
  const outer = mapOf(usage)
  if (outer === undefined) return
  const details = mapOf(outer.get('details'))
  const reported = reportedUsage((name) => valueIn(outer, name) ?? (details && valueIn(details, name)))
  const { costUsd, ...tokens } = reported.usage()
  for (const [field, name] of TOKEN_MEMBERS) {
    if (tokens[field] > 0 || reported.has(field)) attributes.set(name, tokens[field])
  }
}

/** The value at a path. Of a list the first item counts: the SDK gives the details of several requests as a list. */
function valueIn(of: Attributes, path: string): AnyValue | undefined {
  const dot = path.indexOf('.')
  if (dot < 0) return of.get(path)
  const value = of.get(path.slice(0, dot))
  const inner = mapOf(Array.isArray(value) ? value[0] : value)
  return inner === undefined ? undefined : valueIn(inner, path.slice(dot + 1))
}

function modelName(data: Attributes): string {
  const type = textOf(data.get('type'))
  return [type, textOf(data.get('model'))].filter((part) => part !== '').join(' ')
}
