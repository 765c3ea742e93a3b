import { LRUCache } from 'lru-cache'
import type { Caller } from '../../tenants/keys/schema.ts'
import { isText } from '../traces/attributes.ts'
import { encodeValue } from '../traces/json-writer.ts'
import type { AnyValue, Attributes, Span } from '../traces/telemetry.ts'
import { SPAN_TYPE } from './span-data.ts'

const TRACES_MAX = 10_000
const REMEMBERED_LENGTH_MAX = 16 << 20
/** Of a longer answer the run has none if its end comes in a later call. */
const ANSWER_LENGTH_MAX = 1 << 20
const INPUT = 'gen_ai.input.messages'
const OUTPUT = 'gen_ai.output.messages'

type Reporter = Pick<Caller, 'workspaceId' | 'agentId'>

interface Answer {
  readonly endNano: number
  /** As text: a tree of values takes up to fifty times the memory. */
  readonly message: string
}

/**
 * What a workflow was asked and has answered, from its model calls: no other span has it. Those of the Responses API have
 * nothing either, because the SDK does not send it.
 */
export class TraceContent {
  /** The last answers of traces: the spans of a trace come in several calls. */
  private readonly answers = new LRUCache<string, Answer>({
    max: TRACES_MAX,
    maxSize: REMEMBERED_LENGTH_MAX,
    maxEntrySize: ANSWER_LENGTH_MAX,
    sizeCalculation: ({ message }) => 1 + message.length,
  })

  /** The last answer of a trace so far, as attributes; undefined if none is known. */
  answerOf({ workspaceId, agentId }: Reporter, traceId: string, spans: readonly Span[]): Attributes | undefined {
    // Agents that share a trace have a run each.
    const key = `${workspaceId} ${agentId} ${traceId}`
    const known = this.answers.get(key)
    let lastNano = known?.endNano ?? 0
    let message: AnyValue | undefined
    for (const { endNano, attributes } of spans) {
      if (!isModelCall(attributes) || endNano === 0 || endNano < lastNano) continue
      const own = lastOf(attributes.get(OUTPUT))
      if (own === undefined) continue
      lastNano = endNano
      message = own
    }
    // Also at the end of the trace: the call with it is repeated if it cannot be stored.
    if (message !== undefined) this.answers.set(key, { endNano: lastNano, message: answerText(message) })
    const answer = message ?? known?.message
    return answer === undefined ? undefined : new Map([[OUTPUT, answer]])
  }
}

function answerText(message: AnyValue): string {
  return isText(message) ? `${message}` : encodeValue(message)
}

/** The first message of the user, as attributes; undefined if these spans have none. */
export function questionOf(spans: readonly Span[]): Attributes | undefined {
  const calls = spans.filter(({ attributes }) => isModelCall(attributes) && attributes.has(INPUT))
  const [first] = calls.sort((a, b) => a.startNano - b.startNano)
  const messages = first?.attributes.get(INPUT)
  if (!Array.isArray(messages)) return isText(messages) ? new Map([[INPUT, messages]]) : undefined
  const message = messages.find((each) => each instanceof Map && each.get('role') === 'user')
  return message === undefined ? undefined : new Map([[INPUT, [message]]])
}

function isModelCall(attributes: Attributes): boolean {
  const type = attributes.get(SPAN_TYPE)
  return type === 'generation' || type === 'response'
}

function lastOf(messages: AnyValue | undefined): AnyValue | undefined {
  if (Array.isArray(messages)) return messages.length === 0 ? undefined : messages.slice(-1)
  return messages === null || messages === '' ? undefined : messages
}
