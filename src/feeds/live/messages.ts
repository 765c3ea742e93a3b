import { ApiError, invalid } from '../../base/errors.ts'
import { hasMoreValues } from '../../base/http/json-scan.ts'
import { isObject } from '../../base/json-object.ts'
import type { ActivityKind } from '../../stores/journal/kinds.ts'
import type { FilterInput } from './filter.ts'
import { MAX_PER_SECOND_MAX, type ServerMessage, SUBSCRIPTION_ID_LENGTH_MAX } from './message-schema.ts'

/** Messages between client and service on a WebSocket (docs/feeds.md#websocket): one JSON object per text message. */

export interface Subscribe {
  readonly op: 'subscribe'
  /** The client's name for the subscription. */
  readonly id: string
  readonly filter: FilterInput
  readonly after: string | undefined
  readonly maxPerSecond: number | undefined
}

export type ClientMessage = Subscribe | { readonly op: 'unsubscribe'; readonly id: string } | { readonly op: 'ping' }

/**
 * What the service sends on a WebSocket (docs/feeds.md#websocket), as clients see it: declared once for the
 * service, the tail command and the dashboard. Records list only the members that these clients read.
 */
export interface ActivityItem {
  readonly cursor: string
  readonly kind: ActivityKind
  readonly agent_id: string
  readonly run_id: string
  readonly received_at: string
  readonly event?: {
    readonly task_id?: string
    readonly type: string
    readonly level: string
    readonly payload: unknown
  }
  readonly task?: { readonly name: string; readonly status: string; readonly error_message: string | null }
  readonly run?: {
    readonly status: string
    readonly duration_ms: number | null
    readonly error_message: string | null
    readonly tags: readonly string[]
  }
  readonly score?: {
    readonly name: string
    readonly value: number | boolean | null
    readonly label: string | null
    readonly text: string | null
    readonly comment: string | null
    readonly source: string
  }
}

/** A message of the service. */
export type FeedMessage =
  | ServerMessage
  | { readonly op: 'activity'; readonly id: string; readonly items: readonly ActivityItem[]; readonly skipped?: number }

const CURSOR_LENGTH_MAX = 100
/** More than a filter can have. Messages that wait are handled without a pause, so that each must cost little. */
const MESSAGE_VALUES_MAX = 2_000

const FIELDS = {
  subscribe: ['op', 'id', 'filter', 'after', 'max_per_second'],
  unsubscribe: ['op', 'id'],
  ping: ['op'],
} as const

/** A message of a client, or why it is none. */
export type Received =
  | { readonly message: ClientMessage }
  /** The error names the `id` of the message, if it has one. */
  | { readonly error: ApiError; readonly id: string | undefined }

/** Reads what a client has sent. */
export function readMessage(sent: string | Buffer): Received {
  let object: Record<string, unknown> | undefined
  try {
    if (typeof sent !== 'string') throw invalid('', 'send JSON in text messages, not binary ones')
    object = parseObject(sent)
    return { message: toMessage(object) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { error, id: isId(object?.id) ? object.id : undefined }
  }
}

/** @throws ApiError VALIDATION_ERROR that names the field */
function toMessage(message: Record<string, unknown>): ClientMessage {
  const op = message.op as keyof typeof FIELDS
  if (typeof op !== 'string' || !Object.hasOwn(FIELDS, op))
    throw invalid('op', `expected one of subscribe, unsubscribe, ping; got ${shown(message.op)}`)
  const known: readonly string[] = FIELDS[op]
  for (const name of Object.keys(message))
    if (!known.includes(name))
      throw invalid(name.slice(0, 100), `unknown field; ${op} takes ${known.slice(1).join(', ') || 'none'}`)
  if (op === 'ping') return { op }
  const id = readId(message.id)
  if (op === 'unsubscribe') return { op, id }
  return {
    op,
    id,
    filter: readFilter(message.filter),
    after: readAfter(message.after),
    maxPerSecond: readRate(message.max_per_second),
  }
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown
  let isTooLarge: boolean
  try {
    isTooLarge = hasMoreValues(text, MESSAGE_VALUES_MAX)
    if (!isTooLarge) value = JSON.parse(text)
  } catch {
    throw invalid('', 'the message is not JSON')
  }
  if (isTooLarge) throw invalid('', `expected at most ${MESSAGE_VALUES_MAX} values in a message`)
  if (isObject(value)) return value
  throw invalid('', 'a message must be a JSON object with an op')
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= SUBSCRIPTION_ID_LENGTH_MAX
}

function readId(value: unknown): string {
  if (isId(value)) return value
  throw invalid('id', `expected text of 1 to ${SUBSCRIPTION_ID_LENGTH_MAX} characters`)
}

function readFilter(value: unknown): FilterInput {
  if (value === undefined || value === null) return {}
  if (typeof value === 'object' && !Array.isArray(value)) return value as FilterInput
  throw invalid('filter', 'expected an object')
}

function readAfter(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  if (Number.isSafeInteger(value) && (value as number) >= 0) return String(value)
  if (typeof value === 'string' && value.length <= CURSOR_LENGTH_MAX) return value
  throw invalid('after', 'expected the cursor of an activity, or 0 for the oldest retained activity')
}

function readRate(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_PER_SECOND_MAX)
    return value as number
  throw invalid('max_per_second', `expected a whole number from 1 to ${MAX_PER_SECOND_MAX}`)
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : (JSON.stringify(value) ?? 'nothing').slice(0, 100)
}
