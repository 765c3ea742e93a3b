import { createHash } from 'node:crypto'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import type { Range } from './telemetry.ts'

/**
 * Ids for what an export reports, derived from the ids and names in it, so that a repeated export yields the same ids. All
 * are UUIDs of version 8.
 */

/** A UUID from a cryptographic hash of the parts. */
export function hashedId(...parts: readonly string[]): string {
  return toUuid(createHash('sha256').update(parts.join('\n')).digest('hex'))
}

/**
 * A UUID from fast hashes of a text and of written bytes, half of it from each. The hash need not be cryptographic: a collision
 * only costs the sender one of its own log records.
 */
export function contentId(first: string, { buffer }: Bytes, { start, end }: Range): string {
  return toUuid(xxHash3(first) + xxHash3(new Uint8Array(buffer.buffer, start, end - start)))
}

function xxHash3(text: string | Uint8Array): string {
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

/** The run for what one agent reports of a trace whose run belongs to another agent. */
export function partRunId(workspaceId: string, traceId: string, agentId: string): string {
  return hashedId('part', workspaceId, traceId, agentId)
}

/**
 * The task ids of the spans of a trace. The first half of an id is a hash of the trace, the second half the 64 bits of the
 * span id; the first two of these end the first half, because the UUID variant takes their place. So a trace needs just
 * one hash, and no two of its spans get the same id.
 *
 * @returns maps a span id to the id of its task, which is also the id of the span's own event
 */
export function spanTaskIds(workspaceId: string, traceId: string): (spanId: string) => string {
  const head = hashedId('span', workspaceId, traceId).slice(0, 17)
  return (spanId) => {
    const first = Number.parseInt(spanId[0], 16)
    return `${head}${(first >> 2).toString(16)}-${'89ab'[first & 3]}${spanId.slice(1, 4)}-${spanId.slice(4)}`
  }
}

/** The child run of an agent that was called within a trace. */
export function agentSpanRunId(workspaceId: string, traceId: string, spanId: string): string {
  return hashedId('agent', workspaceId, traceId, spanId)
}

/** The agent that is registered when its name is first reported. */
export function namedAgentId(workspaceId: string, name: string): string {
  return hashedId('name', workspaceId, name)
}
