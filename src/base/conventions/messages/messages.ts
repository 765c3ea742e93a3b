import { lookup } from '../../lookup.ts'
import { MESSAGE_LISTS, MESSAGES, SPREAD_MESSAGES, TEXTS } from '../names.ts'
import { fieldOf, firstOf } from '../payload.ts'
import {
  type ChatPart,
  callPart,
  idOf,
  parsed,
  partsOf,
  reasoningPart,
  reasoningText,
  type ToolCall,
  type ToolResult,
} from './message-parts.ts'

/** A message of a conversation with a model. */
export interface ChatMessage {
  /** `system`, `user`, `assistant`, `tool`, or as the sender calls it. */
  readonly role: string
  readonly parts: readonly ChatPart[]
}

/** What a model was sent, and what it answered. */
export interface Chat {
  readonly input: readonly ChatMessage[]
  readonly output: readonly ChatMessage[]
}

/** Of a longer list, only the last ones are read. */
const MESSAGES_MAX = 1_000

/** Reading that can pause at each `yield`, after a message: the service must not read a large payload at one go. */
type Reading<Result> = Generator<undefined, Result, undefined>

/** The conversation in the payload of an `llm.call`, in any of the usual forms; empty if it has none. */
export function chatOf(payload: unknown): Chat {
  return ended(chatInSteps(payload))
}

/** {@link chatOf}, a message in each step. */
export function* chatInSteps(payload: unknown): Reading<Chat> {
  const system = systemParts(parsed(firstOf(payload, MESSAGES.system)))
  const input = (yield* spread(payload, SPREAD_MESSAGES.input)) ?? (yield* firstListed(payload, MESSAGES.input, 'user'))
  const output =
    (yield* spread(payload, SPREAD_MESSAGES.output)) ?? (yield* firstListed(payload, MESSAGES.output, 'assistant'))
  return {
    input: [
      ...(system.length > 0 ? [{ role: 'system', parts: system }] : []),
      ...(input ?? single('user', promptParts(payload))),
    ],
    output: output ?? single('assistant', answerParts(payload)),
  }
}

function ended<Result>(reading: Reading<Result>): Result {
  for (;;) {
    const { done, value } = reading.next()
    if (done === true) return value
  }
}

/** The messages in a value such as the input of a run; undefined if it is something else. @param role of parts without one */
export function messagesIn(value: unknown, role: string): ChatMessage[] | undefined {
  return ended(messagesInSteps(value, role))
}

/** {@link messagesIn}, a message in each step. */
export function* messagesInSteps(value: unknown, role: string): Reading<ChatMessage[] | undefined> {
  const messages = yield* listed(value, role)
  return messages?.every(({ parts }) => parts.every(({ type }) => type !== 'other')) ? messages : undefined
}

const EVENT_ROLE = /^gen_ai\.(system|user|assistant|tool)\.message$/

/** The message in an event of OpenTelemetry: `gen_ai.user.message`, `gen_ai.choice`, … */
export function chatOfEvent(event: MessageEvent): Chat {
  return ended(eventInSteps(event))
}

interface MessageEvent {
  readonly type: string
  readonly payload: unknown
}

/** {@link chatOfEvent}, a message in each step. */
export function* eventInSteps({ type, payload }: MessageEvent): Reading<Chat> {
  const body = fieldOf(payload, 'body') ?? payload
  const role = EVENT_ROLE.exec(type)?.[1]
  if (role !== undefined) return { input: some(messageOf(withRole(body, role), role)), output: [] }
  if (type === 'gen_ai.choice') return { input: [], output: some(messageOf(body, 'assistant')) }
  return yield* chatInSteps(payload)
}

/**
 * The messages with each call of a tool and its result in one part, where the call stands. Models reuse ids: a result belongs
 * to the last call before it that has its id; one without an id to the first call that has no result yet.
 */
export function answered<T extends ChatMessage>(messages: readonly T[]): T[] {
  const open: ToolCall[] = []
  const results = new Map<ChatPart, ToolResult>()
  const placed = new Set<ChatPart>()
  for (const part of messages.flatMap(({ parts }) => parts)) {
    if (part.type === 'call') open.push(part)
    if (part.type !== 'result') continue
    const index = part.id === null ? 0 : open.findLastIndex(({ id, name }) => (id ?? name) === part.id)
    const [call] = index === -1 ? [] : open.splice(index, 1)
    if (call === undefined) continue
    results.set(call, part)
    placed.add(part)
  }
  const folded = messages.map((message) => ({
    ...message,
    parts: message.parts.filter((part) => !placed.has(part)).map((part) => withResult(part, results.get(part))),
  }))
  return folded.filter(({ parts }) => parts.length > 0)
}

function withResult(part: ChatPart, result: ToolResult | undefined): ChatPart {
  if (part.type !== 'call' || result === undefined) return part
  return { ...part, output: result.value, ...(result.isFailed && { isFailed: true }) }
}

function single(role: string, parts: readonly ChatPart[]): ChatMessage[] {
  return parts.length === 0 ? [] : [{ role, parts }]
}

function some(message: ChatMessage): ChatMessage[] {
  return message.parts.length === 0 ? [] : [message]
}

/** Gemini wraps them: `{ parts: [{ text }] }`. */
function systemParts(value: unknown): ChatPart[] {
  return partsOf(fieldOf(value, 'parts') ?? value)
}

function promptParts(payload: unknown): ChatPart[] {
  return plainParts(parsed(firstOf(payload, MESSAGES.prompt)))
}

function answerParts(payload: unknown): ChatPart[] {
  const text = plainParts(parsed(firstOf(payload, MESSAGES.text)))
  const calls = parsed(firstOf(payload, MESSAGES.calls))
  return [...text, ...(Array.isArray(calls) ? calls.map(callPart) : [])]
}

const ANY_TEXTS = [...new Set([...TEXTS.input, ...TEXTS.output])]

/** A text; an object with a single text is that text. */
export function plainParts(value: unknown): ChatPart[] {
  if (typeof value !== 'object' || value === null) return partsOf(value)
  const text = Object.keys(value).length === 1 ? firstOf(value, ANY_TEXTS) : undefined
  if (typeof text === 'string') return partsOf(text)
  return Object.keys(value).length === 0 ? [] : [{ type: 'other', value }]
}

function* firstListed(payload: unknown, paths: readonly string[], role: string): Reading<ChatMessage[] | undefined> {
  for (const path of paths) {
    const messages = yield* listed(fieldOf(payload, path), role)
    if (messages !== undefined) return messages
  }
  return undefined
}

const LISTS = [...MESSAGE_LISTS, 'output', 'content']

/** A list of messages or of their parts, an object with one, or the text of one. @param role of parts without a message */
function* listed(value: unknown, role: string): Reading<ChatMessage[] | undefined> {
  const found = parsed(value)
  if (typeof found !== 'object' || found === null) return undefined
  if (isMessage(found)) return nonEmpty([messageOf(found, role)])
  const list = Array.isArray(found) ? found : LISTS.map((name) => fieldOf(found, name)).find(Array.isArray)
  if (list === undefined) return undefined
  const messages: { role: string; parts: ChatPart[] }[] = []
  for (const item of list.flat(2).slice(-MESSAGES_MAX)) {
    const message = messageOf(item, role)
    const last = messages.at(-1)
    // Parts that belong to one message may be listed one by one.
    if (!isMessage(item) && last?.role === message.role) last.parts.push(...message.parts)
    else messages.push({ role: message.role, parts: [...message.parts] })
    yield
  }
  return nonEmpty(messages)
}

function nonEmpty(messages: readonly ChatMessage[]): ChatMessage[] | undefined {
  const found = messages.filter(({ parts }) => parts.length > 0)
  return found.length === 0 ? undefined : found
}

const ROLES = lookup<string>({
  human: 'user',
  HumanMessage: 'user',
  ai: 'assistant',
  model: 'assistant',
  AIMessage: 'assistant',
  AIMessageChunk: 'assistant',
  SystemMessage: 'system',
  developer: 'developer',
  function: 'tool',
  ToolMessage: 'tool',
})
/** Roles that LangChain writes as `type`. */
const LANGCHAIN_TYPES = ['human', 'ai', 'system', 'tool', 'function']

function isMessage(value: unknown): boolean {
  return (
    typeof roleIn(unwrapped(value)) === 'string' || (fieldOf(value, 'message') !== undefined && !Array.isArray(value))
  )
}

/** Unwraps a message: a choice or candidate of an answer contains it; LangChain has its members in `kwargs` or `data`. */
function unwrapped(value: unknown): unknown {
  const inner =
    fieldOf(value, 'message') ?? (fieldOf(value, 'content.parts') === undefined ? value : fieldOf(value, 'content'))
  return fieldOf(inner, 'role') === undefined && fieldOf(inner, 'kwargs.content') !== undefined
    ? { ...(fieldOf(inner, 'kwargs') as object), type: langChainType(inner) }
    : inner
}

function langChainType(message: unknown): unknown {
  const id = fieldOf(message, 'id')
  return Array.isArray(id) ? id.at(-1) : fieldOf(message, 'type')
}

function roleIn(message: unknown): unknown {
  const role = fieldOf(message, 'role')
  if (role !== undefined) return role
  const type = fieldOf(message, 'type')
  return typeof type === 'string' && (LANGCHAIN_TYPES.includes(type) || type.endsWith('Message')) ? type : undefined
}

function withRole(body: unknown, role: string): unknown {
  return typeof body === 'object' && body !== null ? { role, ...body } : { role, content: body }
}

/** @param fallback the role if the message names none: that of a request or of an answer */
function messageOf(value: unknown, fallback: string): ChatMessage {
  const message = unwrapped(value)
  const given = roleIn(message)
  if (given === undefined) return block(message, fallback)
  const role = typeof given === 'string' ? (ROLES.get(given) ?? given) : fallback
  const content = firstOf(message, ['parts', 'content', 'text', 'data.content', 'contents'])
  const calls = fieldOf(message, 'tool_calls') ?? fieldOf(message, 'additional_kwargs.tool_calls')
  const legacy = fieldOf(message, 'function_call')
  const parts: ChatPart[] = role === 'tool' ? resultParts(message, content) : partsOf(content)
  const known = new Set(parts.flatMap((part) => (part.type === 'call' && part.id !== null ? [part.id] : [])))
  const listedCalls = (Array.isArray(calls) ? calls : legacy ? [legacy] : []).map(callPart)
  return {
    role,
    parts: [
      ...reasoningPart(firstOf(message, ['reasoning_content', 'reasoning'])),
      ...parts,
      // LangChain lists Anthropic's calls twice: in the content and in `tool_calls`.
      ...listedCalls.filter(({ id }) => id === null || !known.has(id)),
    ],
  }
}

/** The result in a message of a tool: the message itself, or parts of its content. */
function resultParts(message: unknown, content: unknown): ChatPart[] {
  const parts = Array.isArray(content) ? partsOf(content) : []
  if (parts.some(({ type }) => type === 'result')) return parts
  if (content === undefined) return []
  const id = idOf(message, ['tool_call_id', 'toolCallId', 'id', 'name'])
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const value = parts.length > 0 && texts.length === parts.length ? texts.join('\n') : content
  return [
    { type: 'result', id, value: parsed(value), ...(fieldOf(message, 'status') === 'error' && { isFailed: true }) },
  ]
}

/** A part that stands where a message could. */
function block(value: unknown, fallback: string): ChatMessage {
  if (typeof value !== 'object' || value === null) {
    return { role: fallback, parts: typeof value === 'string' ? partsOf(value) : [] }
  }
  const parts = fieldOf(value, 'type') === 'reasoning' ? reasoningPart(reasoningText(value)) : partsOf([value])
  const [first] = parts
  if (first?.type === 'call' || first?.type === 'reasoning') return { role: 'assistant', parts }
  return { role: first?.type === 'result' ? 'tool' : fallback, parts }
}

/** `gen_ai.prompt.0.role`, `gen_ai.prompt.0.content`, …, with or without `message.` between. */
function* spread(payload: unknown, prefixes: readonly string[]): Reading<ChatMessage[] | undefined> {
  for (const prefix of prefixes) {
    const messages: ChatMessage[] = []
    for (let index = 0; index < MESSAGES_MAX; index++) {
      const at = `${prefix}.${index}`
      const role = firstOf(payload, [`${at}.role`, `${at}.message.role`])
      const content = firstOf(payload, [`${at}.content`, `${at}.message.content`]) ?? spreadTexts(payload, at)
      const calls = spreadCalls(payload, at)
      if (role === undefined && content === undefined && calls.length === 0) break
      const name = typeof role === 'string' ? (ROLES.get(role) ?? role) : 'assistant'
      const id = idOf(payload, [`${at}.tool_call_id`, `${at}.message.tool_call_id`])
      const parts = name === 'tool' ? resultParts({ id }, parsed(content)) : partsOf(parsed(content))
      messages.push({ role: name, parts: [...parts, ...calls] })
      yield
    }
    if (messages.length > 0) return messages
  }
  return undefined
}

/** OpenInference spreads the blocks of a message, too. */
function spreadTexts(payload: unknown, at: string): unknown {
  const texts: unknown[] = []
  for (let index = 0; index < 50; index++) {
    const text = fieldOf(payload, `${at}.message.contents.${index}.message_content.text`)
    if (typeof text !== 'string') break
    texts.push(text)
  }
  return texts.length === 0 ? undefined : texts
}

function spreadCalls(payload: unknown, at: string): ChatPart[] {
  const calls: ChatPart[] = []
  for (let index = 0; index < 200; index++) {
    const paths = [
      `${at}.tool_calls.${index}`,
      `${at}.message.tool_calls.${index}.tool_call.function`,
      `${at}.message.tool_calls.${index}.tool_call`,
    ]
    const member = (name: string) =>
      firstOf(
        payload,
        paths.map((path) => `${path}.${name}`),
      )
    const name = member('name')
    if (typeof name !== 'string') break
    const id = member('id')
    calls.push({ type: 'call', id: typeof id === 'string' ? id : null, name, input: parsed(member('arguments')) })
  }
  return calls
}
