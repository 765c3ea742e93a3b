import { createHash } from 'node:crypto'

/**
 * Ids of what an export reports, derived from what names it there, so that a repeated export yields the same ids. All are
 * UUIDs of version 8.
 */

/** A UUID from a hash of the parts. */
export function hashedId(...parts: readonly string[]): string {
  return toUuid(createHash('sha256').update(parts.join('\n')).digest('hex'))
}

/**
 * A UUID from fast hashes of two texts, half of it from each. Whoever makes two texts of one hash loses one of their own log
 * records, so it need not be a cryptographic one.
 */
export function contentId(first: string, second: string): string {
  return toUuid(xxHash3(first) + xxHash3(second))
}

function xxHash3(text: string): string {
  return Bun.hash.xxHash3(text).toString(16).padStart(16, '0')
}

/** @param hex at least 32 digits */
function toUuid(hex: string): string {
  const variant = '89ab'[Number.parseInt(hex[16], 16) & 3]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The run of a trace. */
export function traceRunId(workspaceId: string, traceId: string): string {
  return hashedId('run', workspaceId, traceId)
}

/** The run of an agent's part in a trace whose run belongs to another agent. */
export function partRunId(workspaceId: string, traceId: string, agentId: string): string {
  return hashedId('part', workspaceId, traceId, agentId)
}

/**
 * The ids of the spans of a trace. Half of the id is that of the trace's run, the rest is the span's, all 64 bits of it: two
 * bits of it stand before the variant, because that takes their place. So there is one hash a trace, and no two spans of
 * a trace have the same id.
 *
 * @returns the id of the task of a span, which is also that of the event of its end
 */
export function spanTaskIds(workspaceId: string, traceId: string): (spanId: string) => string {
  const run = hashedId('span', workspaceId, traceId)
  const head = run.slice(0, 17)
  return (spanId) => {
    const first = Number.parseInt(spanId[0], 16)
    return `${head}${(first >> 2).toString(16)}-${'89ab'[first & 3]}${spanId.slice(1, 4)}-${spanId.slice(4)}`
  }
}

/** The child run of an agent that was called within a trace. */
export function agentSpanRunId(workspaceId: string, traceId: string, spanId: string): string {
  return hashedId('agent', workspaceId, traceId, spanId)
}

/** The agent that is registered on first sight of its name. */
export function namedAgentId(workspaceId: string, name: string): string {
  return hashedId('name', workspaceId, name)
}
