import { createHash } from 'node:crypto'

/**
 * Ids of what an export reports, derived from what names it there, so that a repeated export yields the same ids.
 */

/** A UUID of version 8 from a hash of the parts. */
export function hashedId(...parts: readonly string[]): string {
  const hex = createHash('sha256').update(parts.join('\n')).digest('hex')
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

/** The task of a span, and the id of the event of its end. */
export function spanTaskId(workspaceId: string, traceId: string, spanId: string): string {
  return hashedId('span', workspaceId, traceId, spanId)
}

/** The child run of an agent that was called within a trace. */
export function agentSpanRunId(workspaceId: string, traceId: string, spanId: string): string {
  return hashedId('agent', workspaceId, traceId, spanId)
}

/** The agent that is registered on first sight of its name. */
export function namedAgentId(workspaceId: string, name: string): string {
  return hashedId('name', workspaceId, name)
}
