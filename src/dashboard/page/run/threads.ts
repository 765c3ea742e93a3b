import { beginningOf, continued, type Known } from '../../../base/conventions/messages/history.ts'
import { parsed, type ToolCall } from '../../../base/conventions/messages/message-parts.ts'
import {
  answered,
  type Chat,
  type ChatMessage,
  chatOf,
  chatOfEvent,
  messagesIn,
} from '../../../base/conventions/messages/messages.ts'
import { TOOL } from '../../../base/conventions/names.ts'
import { type CallUsage, errorOf, fieldOf, firstOf } from '../../../base/conventions/payload.ts'
import type { Event } from '../data/records.ts'
import type { Bar } from './bars.ts'

/** The call of a model that gave an answer. */
export interface Answer {
  readonly stepId: string
  readonly usage: CallUsage
  readonly durationMs: number
}

/** A message, and for an answer the call that it comes from. */
export interface Turn extends ChatMessage {
  readonly answer?: Answer
}

/** What was said in one conversation with a model, over all its calls. */
export interface Thread {
  /** The first of its calls. */
  readonly stepId: string
  readonly turns: readonly Turn[]
}

/** Of a run with more calls, only the first and the last ones are read. */
const CALLS_MAX = 200

/** Cached by event: each event of a live run reads all anew, but an event does not change. */
const chats = new WeakMap<Event, Chat>()

function chatOfCall(event: Event): Chat {
  const known = chats.get(event) ?? chatOf(event.payload)
  chats.set(event, known)
  return known
}

/** The messages of a model call: those of its payload, or those that events of its own report, or the content of its task. */
export function chatOfBar({ events, task }: Pick<Bar, 'events' | 'task'>): Chat {
  const own = events.findLast(({ type }) => type === 'llm.call')
  const chat = own === undefined ? NOTHING : chatOfCall(own)
  if (chat.input.length + chat.output.length > 0) return chat
  const said = events.filter((event) => event !== own).map(chatOfEvent)
  const input = said.flatMap((each) => each.input)
  const output = said.flatMap((each) => each.output)
  return input.length + output.length > 0 || task === undefined ? { input, output } : chatOfTask(task)
}

/** Cached by task, like those of events. */
const chatsOfTasks = new WeakMap<object, Chat>()

function chatOfTask(task: NonNullable<Bar['task']>): Chat {
  const { input, output } = task
  const known = chatsOfTasks.get(task) ?? {
    input: messagesIn(fieldOf(input, 'messages') ?? input, 'user') ?? [],
    output: messagesIn(fieldOf(output, 'messages') ?? output, 'assistant') ?? [],
  }
  chatsOfTasks.set(task, known)
  return known
}

const NOTHING: Chat = { input: [], output: [] }

interface OpenThread extends Known<string> {
  readonly stepId: string
  turns: Turn[]
}

/**
 * The conversations of a run. Each model call is sent all that was said before it, so calls that begin alike and grow are one
 * conversation, which is shown once. If no message contains a tool call, the reported tool calls stand between the answers.
 */
export function threadsOf(bars: readonly Bar[]): Thread[] {
  const models = bars.filter(({ kind }) => kind === 'model').toSorted((a, b) => endOf(a) - endOf(b))
  const read =
    models.length <= CALLS_MAX ? models : [...models.slice(0, CALLS_MAX / 4), ...models.slice(-CALLS_MAX * 0.75)]
  const threads: OpenThread[] = []
  for (const bar of read) {
    const { input, output } = chatOfBar(bar)
    if (input.length + output.length === 0) continue
    const key = beginningOf(input)
    const known = continued(threads, key, input)
    const answer = { stepId: bar.id, usage: bar.usage as CallUsage, durationMs: endOf(bar) - bar.startMs }
    const said = input.map((message, at) => withAnswer(message, known?.turns[at]))
    const turns = [
      ...said,
      ...output.map((message, at) => (at === output.length - 1 ? { ...message, answer } : message)),
    ]
    if (known === undefined) threads.push({ stepId: bar.id, key, inputCount: input.length, turns })
    else Object.assign(known, { inputCount: input.length, turns })
  }
  const hasCalls = threads.some(({ turns }) => turns.some(({ parts }) => parts.some(({ type }) => type === 'call')))
  const results = resultsOf(bars)
  const said = threads.map(({ stepId, turns }) => ({
    stepId,
    turns: answered(turns).map((turn) => withResults(turn, results)),
  }))
  return hasCalls || said.length === 0 ? said : withTools(said, bars)
}

/** Each call is sent the earlier answers again; their figures stay with them. */
function withAnswer(message: ChatMessage, before: Turn | undefined): Turn {
  return message.role === 'assistant' && before?.answer !== undefined ? { ...message, answer: before.answer } : message
}

/** The reported tool calls by the ids that the models gave them. */
function resultsOf(bars: readonly Bar[]): ReadonlyMap<string, Bar> {
  return new Map(
    bars.flatMap((bar) => {
      const id = bar.kind === 'tool' ? firstOf(bar.events.at(-1)?.payload, TOOL.callId) : undefined
      return typeof id === 'string' ? [[id, bar]] : []
    }),
  )
}

/** Adds results to the tool calls that have none, such as the last ones: no later model call was sent their results. */
function withResults(turn: Turn, results: ReadonlyMap<string, Bar>): Turn {
  const parts = turn.parts.map((part) => {
    const bar = part.type === 'call' && part.output === undefined ? results.get(part.id ?? '') : undefined
    if (bar === undefined || part.type !== 'call') return part
    const { output, isFailed, isRejected } = callOfBar(bar)
    return {
      ...part,
      output: output ?? errorOf(bar.events.at(-1)?.payload) ?? undefined,
      ...(isFailed && { isFailed }),
      ...(isRejected && { isRejected }),
    }
  })
  return { ...turn, parts }
}

/** Adds the tool calls as turns of their own, in the order of time. */
function withTools(threads: readonly Thread[], bars: readonly Bar[]): Thread[] {
  const placeOf = new Map(bars.map((bar) => [bar.id, endOf(bar)]))
  const tools = bars.filter(({ kind }) => kind === 'tool').slice(0, CALLS_MAX)
  const turnOf = (bar: Bar): Thread => ({ stepId: bar.id, turns: [{ role: 'tool', parts: [callOfBar(bar)] }] })
  return [...threads, ...tools.map(turnOf)].toSorted(
    (a, b) => (placeOf.get(a.stepId) ?? 0) - (placeOf.get(b.stepId) ?? 0),
  )
}

/** A call of a tool as its events or its task report it. */
export function callOfBar({ id, name, status, events, task }: Bar): ToolCall {
  const [first, last] = [events[0]?.payload, events.at(-1)?.payload]
  const input = firstOf(first, TOOL.arguments) ?? firstOf(last, TOOL.arguments) ?? task?.input ?? undefined
  const output = firstOf(last, TOOL.result) ?? task?.output ?? undefined
  return {
    type: 'call',
    id,
    name,
    input: parsed(input),
    output: parsed(output),
    ...(status === 'failed' && { isFailed: true }),
    ...(status === 'rejected' && { isRejected: true }),
  }
}

function endOf({ startMs, endMs }: Bar): number {
  return endMs ?? startMs
}
