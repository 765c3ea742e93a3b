import type { ChatMessage } from './messages.ts'

/**
 * Each call of a model is sent all that was said before it. Calls that begin alike and grow are one conversation, of which
 * each message is shown once.
 */

/** What is known of a conversation after a call. */
export interface Known<Key> {
  /** Of its {@link beginningOf}. */
  readonly key: Key
  /** How many messages the call was sent. */
  readonly inputCount: number
}

const KEY_LENGTH_MAX = 500

/** The same conversation has the same system prompt and first message. */
export function beginningOf(input: readonly ChatMessage[]): string {
  const first = input.findIndex(({ role }) => role !== 'system' && role !== 'developer')
  return input
    .slice(0, first + 1)
    .map(({ role, parts }) => `${role} ${JSON.stringify(parts).slice(0, KEY_LENGTH_MAX)}`)
    .join('\n')
}

/** The conversation that a call continues: the last one that fits. */
export function continued<Key, T extends Known<Key>>(
  conversations: readonly T[],
  key: Key,
  input: readonly ChatMessage[],
): T | undefined {
  return conversations.findLast((known) => known.key === key && input.length > known.inputCount)
}

/** The messages that are new since the earlier call. @param isAnswered the answer to that call, which is repeated, is known */
export function saidSince(input: readonly ChatMessage[], inputCount: number, isAnswered: boolean): ChatMessage[] {
  const added = input.slice(inputCount)
  const first = isAnswered ? added.findIndex(({ role }) => role !== 'assistant') : 0
  return first === -1 ? [] : added.slice(first)
}
