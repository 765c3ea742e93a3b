import { parseIntact } from '../../intact-json.ts'
import { lookup } from '../../lookup.ts'
import { fieldOf, firstOf } from '../payload.ts'
import { blobIn, type Media } from './blobs.ts'

/** A part of a message. */
export type ChatPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | ToolCall
  | ToolResult
  | { readonly type: 'media'; readonly media: Media }
  | { readonly type: 'other'; readonly value: unknown }

/** A call that a model asks for; it has `output` once the result is known. */
export interface ToolCall {
  readonly type: 'call'
  /** The id by which the result refers to the call; null if the sender gave none. */
  readonly id: string | null
  readonly name: string
  readonly input: unknown
  readonly output?: unknown
  readonly isFailed?: boolean
  /** A person refused it, so that it was never made. */
  readonly isRejected?: boolean
}

export interface ToolResult {
  readonly type: 'result'
  readonly id: string | null
  readonly value: unknown
  readonly isFailed?: boolean
}

/** More parts of one message are not read. */
const PARTS_MAX = 200

/** The parts of the content of a message: a text, or a list of blocks in the form of any provider. */
export function partsOf(content: unknown): ChatPart[] {
  if (content === undefined || content === null || content === '') return []
  if (!Array.isArray(content)) return partOf(content)
  return content.slice(0, PARTS_MAX).flatMap(partOf)
}

const BLOCKS = lookup<(part: unknown) => ChatPart[]>({
  refusal: (part) => textPart(fieldOf(part, 'refusal')),
  thinking: (part) => reasoningPart(firstOf(part, ['thinking', 'text'])),
  redacted_thinking: () => reasoningPart('(hidden by the provider)'),
  reasoning: (part) => reasoningPart(reasoningText(part)),
})

const CALL_TYPE = /^(server_|mcp_)?tool_?-?(call|use)$|^(custom_tool|function)_call$/
const RESULT_TYPE = /tool_?-?(call_response|call_output|result|response)$|^(custom_tool|function)_call_output$/
const MEDIA_TYPE = /image|audio|video|file|document|blob|^uri$/

/** Whether a block of this type is text that is said, or could be: no reasoning, and no call of a tool or its result. */
export function isSaid(type: string): boolean {
  return !CALL_TYPE.test(type) && !RESULT_TYPE.test(type) && !/reasoning|thinking/.test(type)
}

/** One block: of OpenAI, Anthropic, OpenTelemetry, the Vercel AI SDK, Gemini or Bedrock. */
function partOf(part: unknown): ChatPart[] {
  if (typeof part === 'string') return textPart(part)
  if (typeof part !== 'object' || part === null) return [{ type: 'other', value: part }]
  const type = String(fieldOf(part, 'type') ?? '')
  const block = BLOCKS.get(type)
  if (block !== undefined) return block(part)
  if (CALL_TYPE.test(type)) return [callPart(part)]
  if (RESULT_TYPE.test(type)) return [resultPart(part)]
  const call = firstOf(part, ['functionCall', 'function_call', 'toolUse'])
  if (call !== undefined) return [callPart(call)]
  const result = firstOf(part, ['functionResponse', 'function_response', 'toolResult'])
  if (result !== undefined) return [resultPart(result)]
  const text = firstOf(part, ['text', 'content', 'message_content.text'])
  if (typeof text === 'string' && !MEDIA_TYPE.test(type)) {
    return fieldOf(part, 'thought') === true ? reasoningPart(text) : textPart(text)
  }
  const media = mediaOf(part, type)
  return media === null ? [{ type: 'other', value: part }] : [{ type: 'media', media }]
}

/** A call of a tool, as the provider, an instrumentation or LangChain writes it. */
export function callPart(call: unknown): ToolCall {
  const name = firstOf(call, ['name', 'toolName', 'function.name', 'tool_name', 'tool_call.function.name'])
  const input = firstOf(call, [
    'arguments',
    'input',
    'args',
    'function.arguments',
    'tool_call.function.arguments',
    'arguments_json',
  ])
  return {
    type: 'call',
    id: idOf(call, ['call_id', 'id', 'toolCallId', 'toolUseId', 'tool_call_id', 'tool_call.id']),
    name: typeof name === 'string' ? name : 'tool',
    input: parsed(input),
  }
}

function resultPart(part: unknown): ToolResult {
  const value = firstOf(part, ['response', 'result', 'output', 'content'])
  const isFailed = firstOf(part, ['is_error', 'isError']) === true || fieldOf(part, 'status') === 'error'
  return {
    type: 'result',
    id: idOf(part, ['tool_use_id', 'toolUseId', 'toolCallId', 'tool_call_id', 'call_id', 'id']),
    value: plainResult(parsed(value)),
    ...(isFailed && { isFailed }),
  }
}

/** The text of a result that is wrapped into blocks of text, or into the Vercel AI SDK's `{ type, value }`. */
function plainResult(value: unknown): unknown {
  if (Array.isArray(value) && value.length > 0) {
    const texts = value.map((each) => fieldOf(each, 'text'))
    if (texts.every((text) => typeof text === 'string')) return parsed(texts.join('\n'))
  }
  const type = fieldOf(value, 'type')
  return type === 'text' || type === 'json' ? (fieldOf(value, 'value') ?? value) : value
}

function textPart(text: unknown): ChatPart[] {
  if (typeof text !== 'string' || text === '') return []
  const media = blobIn(text)
  return [media === null ? { type: 'text', text } : { type: 'media', media }]
}

export function reasoningPart(text: unknown): ChatPart[] {
  return typeof text === 'string' && text.trim() !== '' ? [{ type: 'reasoning', text }] : []
}

/** The Responses API sends a list of summaries. */
export function reasoningText(part: unknown): unknown {
  const found = firstOf(part, ['text', 'reasoning', 'content', 'summary'])
  if (!Array.isArray(found)) return found
  return found
    .map((each) => fieldOf(each, 'text'))
    .filter((text) => typeof text === 'string')
    .join('\n\n')
}

const MEDIA_NAMES = ['image', 'audio', 'video', 'document', 'file'] as const
const ADDRESSES = [
  'image_url.url',
  'image_url',
  'source.url',
  'file_url',
  'url',
  'uri',
  'fileData.fileUri',
  'source.uri',
]
const MEDIA_TYPES = [
  'source.media_type',
  'mediaType',
  'mimeType',
  'mime_type',
  'inlineData.mimeType',
  'inline_data.mime_type',
  'fileData.mimeType',
]
const DATA = [
  'source.data',
  'inlineData.data',
  'inline_data.data',
  'input_audio.data',
  'data',
  'image',
  'file.file_data',
  'file_data',
]

/** An image, a sound or a file; null if the part is something else. */
function mediaOf(part: unknown, type: string): Media | null {
  const mediaType = firstOf(part, MEDIA_TYPES)
  const address = firstOf(part, ADDRESSES)
  const data = firstOf(part, DATA)
  if (typeof address === 'string' && address.startsWith('data:')) return blobIn(address)
  const isMedia = MEDIA_TYPE.test(type) || typeof mediaType === 'string'
  if (!isMedia) return null
  const kind = typeof mediaType === 'string' ? mediaType : type
  return {
    name: MEDIA_NAMES.find((name) => kind.includes(name)) ?? 'file',
    mediaType: typeof mediaType === 'string' ? mediaType : null,
    bytes: typeof data === 'string' ? Math.floor(data.length * 0.75) : null,
    href: typeof address === 'string' && /^https?:/i.test(address) ? address : null,
  }
}

export function idOf(value: unknown, paths: readonly string[]): string | null {
  const id = firstOf(value, paths)
  return typeof id === 'string' ? id : null
}

const DEPTH_MAX = 500
/** Brackets, commas and strings. */
const TOKENS_MAX = 40_000

/**
 * Conventions put JSON into strings. It stays text if it is very deep, so that it could not be printed again, or has so many
 * values that parsing takes long.
 */
export function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value) || isTooLarge(value)) return value
  try {
    return parseIntact(value)
  } catch {
    return value
  }
}

const DEPTHS = lookup({ '[': 1, '{': 1, ']': -1, '}': -1 })

function isTooLarge(json: string): boolean {
  const tokens = /[",[\]{}]/g
  let depth = 0
  for (let count = 0; count <= TOKENS_MAX && depth <= DEPTH_MAX; count++) {
    const token = tokens.exec(json)
    if (token === null) return false
    if (token[0] === '"') tokens.lastIndex = endOfString(json, token.index) + 1
    else depth += DEPTHS.get(token[0]) ?? 0
  }
  return true
}

/** @returns where the quote is that ends the string; the end of the text if none does */
function endOfString(json: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = json.indexOf('"', at)
    if (at === -1) return json.length
    let before = at - 1
    while (json.charCodeAt(before) === 92) before--
    if ((at - before) % 2 === 1) return at
  }
}
