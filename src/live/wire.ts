import type { ActivityKind } from '../journal/journal.ts'
import type { ServerMessage } from './messages.ts'

/**
 * What the service sends on a WebSocket (docs/specification.md#websocket), as clients see it: declared once for the
 * service, the tail command and the dashboard. Records list only the members that these clients read.
 */
export interface ActivityItem {
  readonly cursor: string
  readonly kind: ActivityKind
  readonly agent_id: string
  readonly run_id: string
  readonly received_at: string
  readonly event?: { readonly type: string; readonly level: string; readonly payload: unknown }
  readonly task?: { readonly name: string; readonly status: string; readonly error_message: string | null }
  readonly run?: {
    readonly status: string
    readonly duration_ms: number | null
    readonly error_message: string | null
    readonly tags: readonly string[]
  }
}

/** A message of the service. */
export type FeedMessage =
  | ServerMessage
  | { readonly op: 'activity'; readonly id: string; readonly items: readonly ActivityItem[]; readonly skipped?: number }
