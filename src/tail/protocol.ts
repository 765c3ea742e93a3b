/** What goes over the WebSocket of the live feeds, as far as a tail uses it (docs/specification.md#websocket). */

export interface Activity {
  readonly cursor: string
  readonly kind: 'event' | 'task' | 'run'
  readonly agent_id: string
  readonly run_id: string
  readonly received_at: string
  readonly event?: { readonly type: string; readonly level: string }
  readonly task?: { readonly name: string; readonly status: string; readonly error_message: string | null }
  readonly run?: {
    readonly status: string
    readonly duration_ms: number | null
    readonly error_message: string | null
    readonly tags: readonly string[]
  }
}

/** An activity, and the very text it came as. */
export interface Received {
  readonly activity: Activity
  readonly json: string
}

export interface Subscribe {
  readonly filter: Readonly<Record<string, readonly string[]>>
  readonly max_per_second: number | undefined
  readonly after: string | undefined
}

export type ServerMessage =
  | { readonly op: 'subscribed'; readonly cursor: string; readonly recovered: boolean }
  | { readonly op: 'activity'; readonly items: readonly Activity[]; readonly skipped?: number }
  | { readonly op: 'gap'; readonly after: string; readonly resumed_at: string }
  | { readonly op: 'error'; readonly code: string; readonly message: string }
  | { readonly op: 'closing'; readonly reason: string; readonly reconnect_after_ms: number }
  | { readonly op: 'pong' }
