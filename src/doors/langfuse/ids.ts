import { isUuid } from '../../base/ids.ts'
import { spanTaskIds } from '../traces/ids.ts'
import { isSpanId } from '../traces/mapping.ts'

/** Ids for what the Langfuse SDKs report, derived from theirs, so that a repeated batch yields the same ids. */

const TRACE_ID = /^[0-9a-f]{32}$/i

/** A trace id as OTLP has it, so that what both report of a trace meets in one run; any other is kept as it was sent. */
export function traceIdOf(text: string): string {
  return TRACE_ID.test(text) ? text.toLowerCase() : text
}

/**
 * Maps the ids of a trace's observations to task ids: a UUID is one already, a span id becomes the task of that span, and any
 * other text a hash. The hash need not be cryptographic: a collision only costs the sender one of its own observations.
 */
export function observationTaskIds(workspaceId: string, traceId: string): (observationId: string) => string {
  let ofSpans: ((spanId: string) => string) | undefined
  return (observationId) => {
    if (observationId.length === 36 && isUuid(observationId)) return observationId.toLowerCase()
    if (isSpanId(observationId)) {
      ofSpans ??= spanTaskIds(workspaceId, traceId)
      return ofSpans(observationId)
    }
    const hex = [0n, 1n].map((seed) => Bun.hash.xxHash3(observationId, seed).toString(16).padStart(16, '0')).join('')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`
  }
}
