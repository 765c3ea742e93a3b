import { LRUCache } from 'lru-cache'
import type { Span } from '../traces/telemetry.ts'
import { addUsage, SPAN_TYPE } from './span-data.ts'

const AWAITED_MAX = 20_000

/**
 * Gives model calls the tokens of their turn. The SDK exports a `response` span, a call of the Responses API, without its
 * tokens; only the `turn` span around it has them, which ends later. A `generation` span has its own, which its turn repeats.
 */
export class TurnUsage {
  /** Turns that have not ended when their `response` span was exported. A lost one costs the tokens of that turn. */
  private readonly awaited = new LRUCache<string, true>({ max: AWAITED_MAX })

  /**
   * Adds the tokens to the `response` spans of the same call, or to the turn itself if its `response` span came in an earlier
   * call; the turn counts as a model call then.
   */
  assign(workspaceId: string, traceId: string, spans: readonly Span[]): void {
    const responses = new Map<string, Span>()
    for (const span of spans) {
      const { attributes, parentSpanId } = span
      if (attributes.get(SPAN_TYPE) !== 'response' || attributes.has('gen_ai.usage.input_tokens')) continue
      if (parentSpanId !== '' && span.endNano > 0) responses.set(parentSpanId, span)
    }
    for (const { attributes, spanId, endNano } of spans) {
      if (attributes.get(SPAN_TYPE) !== 'turn' || endNano === 0) continue
      const key = `${workspaceId} ${traceId} ${spanId}`
      const response = responses.get(spanId)
      if (response !== undefined) {
        addUsage(response.attributes, attributes.get('usage'))
        responses.delete(spanId)
      } else if (this.awaited.has(key)) {
        attributes.set('gen_ai.operation.name', 'chat')
        addUsage(attributes, attributes.get('usage'))
      }
    }
    for (const turnId of responses.keys()) this.awaited.set(`${workspaceId} ${traceId} ${turnId}`, true)
  }
}
