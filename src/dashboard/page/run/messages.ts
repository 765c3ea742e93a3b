import { MESSAGES, SPREAD_MESSAGES } from '../../../conventions/names.ts'
import { fieldOf, firstOf } from './payload.ts'

/** A message of a conversation with a model. */
export interface ChatMessage {
  readonly role: string
  readonly parts: readonly ChatPart[]
}

export type ChatPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'call'; readonly name: string; readonly input: unknown }
  | { readonly type: 'result'; readonly value: unknown }
  | { readonly type: 'other'; readonly value: unknown }

const DEPTH_MAX = 500

/** The conversation that the payload of an `llm.call` contains, in any of the usual conventions; empty if it has none. */
export function messagesOf(payload: unknown): ChatMessage[] {
  const system = partsOf(parsed(firstOf(payload, MESSAGES.system)))
  const input = firstListed(payload, MESSAGES.input) ?? spread(payload, SPREAD_MESSAGES.input)
  const output = firstListed(payload, MESSAGES.output) ?? spread(payload, SPREAD_MESSAGES.output)
  const answer = output.length > 0 ? output : answerOf(payload)
  return [...(system.length > 0 ? [{ role: 'system', parts: system }] : []), ...input, ...answer]
}

function answerOf(payload: unknown): ChatMessage[] {
  const text = partsOf(firstOf(payload, MESSAGES.text))
  const calls = listOf(parsed(firstOf(payload, MESSAGES.calls))).map(callPart)
  return text.length + calls.length === 0 ? [] : [{ role: 'assistant', parts: [...text, ...calls] }]
}

function firstListed(payload: unknown, paths: readonly string[]): ChatMessage[] | undefined {
  for (const path of paths) {
    const messages = listed(fieldOf(payload, path))
    if (messages !== undefined) return messages
  }
  return undefined
}

/** A list of messages, or the text of one. */
function listed(value: unknown): ChatMessage[] | undefined {
  const found = parsed(value)
  const list = Array.isArray(found) ? found : fieldOf(found, 'messages')
  if (!Array.isArray(list)) return undefined
  const messages = list.map(messageOf).filter(({ parts }) => parts.length > 0)
  return messages.length === 0 ? undefined : messages
}

function messageOf(value: unknown): ChatMessage {
  // OpenAI wraps an answer into a choice.
  const message = fieldOf(value, 'message') ?? value
  const role = fieldOf(message, 'role')
  const content = firstOf(message, ['parts', 'content', 'text'])
  const calls = listOf(fieldOf(message, 'tool_calls')).map(callPart)
  const isResult = role === 'tool'
  const parts =
    isResult && !Array.isArray(content) ? [{ type: 'result' as const, value: parsed(content) }] : partsOf(content)
  return { role: typeof role === 'string' ? role : 'assistant', parts: [...parts, ...calls] }
}

function partsOf(content: unknown): ChatPart[] {
  if (content === undefined || content === null || content === '') return []
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content)) return [partOf(content)]
  return content.map(partOf)
}

function partOf(part: unknown): ChatPart {
  if (typeof part === 'string') return { type: 'text', text: part }
  const type = String(fieldOf(part, 'type') ?? '')
  if (/^tool_?-?(call|use)$/.test(type)) return callPart(part)
  if (/^tool_?-?(call_response|result)$/.test(type)) {
    return { type: 'result', value: parsed(firstOf(part, ['response', 'result', 'output', 'content'])) }
  }
  const text = firstOf(part, ['text', 'content'])
  return typeof text === 'string' ? { type: 'text', text } : { type: 'other', value: part }
}

function callPart(call: unknown): ChatPart {
  const name = firstOf(call, ['name', 'toolName', 'function.name', 'tool_name'])
  const input = firstOf(call, ['arguments', 'input', 'args', 'function.arguments'])
  return { type: 'call', name: typeof name === 'string' ? name : 'tool', input: parsed(input) }
}

/** `gen_ai.prompt.0.role`, `gen_ai.prompt.0.content`, …, with or without `message.` between. */
function spread(payload: unknown, prefixes: readonly string[]): ChatMessage[] {
  for (const prefix of prefixes) {
    const messages: ChatMessage[] = []
    for (let index = 0; ; index++) {
      const at = `${prefix}.${index}`
      const role = firstOf(payload, [`${at}.role`, `${at}.message.role`])
      const content = firstOf(payload, [`${at}.content`, `${at}.message.content`])
      const calls = spreadCalls(payload, at)
      if (role === undefined && content === undefined && calls.length === 0) break
      messages.push({
        role: typeof role === 'string' ? role : 'assistant',
        parts: [...partsOf(parsed(content)), ...calls],
      })
    }
    if (messages.length > 0) return messages
  }
  return []
}

function spreadCalls(payload: unknown, at: string): ChatPart[] {
  const calls: ChatPart[] = []
  for (let index = 0; ; index++) {
    const paths = [`${at}.tool_calls.${index}`, `${at}.message.tool_calls.${index}.tool_call.function`]
    const [names, inputs] = ['name', 'arguments'].map((member) => paths.map((path) => `${path}.${member}`))
    const name = firstOf(payload, names ?? [])
    if (typeof name !== 'string') return calls
    calls.push({ type: 'call', name, input: parsed(firstOf(payload, inputs ?? [])) })
  }
}

/** Conventions put JSON into strings. Very deep JSON stays text: it could not be printed again. */
function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value) || depthOf(value) > DEPTH_MAX) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

/** The nesting of a text in JSON, or more: brackets in its strings count, too. */
function depthOf(json: string): number {
  let depth = 0
  let deepest = 0
  for (const [bracket] of json.matchAll(/[[\]{}]/g)) {
    depth += bracket === '[' || bracket === '{' ? 1 : -1
    deepest = Math.max(deepest, depth)
  }
  return deepest
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
