import { type ChatMessage, messagesIn } from '../../../base/conventions/messages/messages.ts'
import { messageIn } from '../../../base/conventions/preview.ts'
import type { Run } from '../data/records.ts'

/** What a run adds to the conversation of its session: the new part of its input, and its answer. */
export function chatOf({ input, output }: Pick<Run, 'input' | 'output'>): ChatMessage[] {
  return [...asked(input), ...said(output, 'output', 'assistant')]
}

/** A program that sends the whole conversation with each run repeats it: only what follows the last answer is new. */
function asked(input: unknown): ChatMessage[] {
  const messages = messagesIn(input, 'user')
  // A single message may stand beside other members, which are part of the question.
  if (messages === undefined || (messages.length === 1 && messageIn(input, 'input') !== undefined))
    return said(input, 'input', 'user')
  const answered = messages.findLastIndex(({ role }, at) => role === 'assistant' && at < messages.length - 1)
  return messages.slice(answered + 1)
}

function said(value: unknown, side: 'input' | 'output', role: string): ChatMessage[] {
  if (value === null || value === undefined || JSON.stringify(value) === '{}') return []
  const message = messageIn(value, side)
  if (message === undefined) {
    const messages = side === 'output' ? messagesIn(value, role) : undefined
    return messages ?? [{ role, parts: [{ type: 'other', value }] }]
  }
  const rest = message.rest === null ? [] : [{ type: 'other' as const, value: message.rest }]
  return [{ role, parts: [{ type: 'text', text: message.text }, ...rest] }]
}
