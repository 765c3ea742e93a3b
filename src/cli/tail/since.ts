import { ServiceError } from '../../client/errors.ts'
import type { Client } from '../../client/index.ts'
import { CliError } from '../shared/error.ts'

/** The requested start of a tail. */
export type Since =
  | { readonly kind: 'now' }
  | { readonly kind: 'cursor'; readonly cursor: string }
  | { readonly kind: 'ago'; readonly seconds: number }

/** The start of a tail, resolved to a position. */
interface Start {
  /** Undefined: starts with new activity. */
  readonly after: string | undefined
  /** Activity received before this time is not shown; a timestamp in the format of activities. */
  readonly notBefore: string | undefined
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
const SECONDS_MAX = 10 * 365 * 86_400
const NEAR_SECONDS = 86_400
/** Positions follow the order of durability, which may differ slightly from the order of timestamps. */
const MARGIN_SECONDS = 10

/** @returns null if the text is neither a duration nor possibly a cursor */
export function parseSince(text: string): Since | null {
  const [, amount, unit] = /^(\d+)([smhd])$/.exec(text) ?? []
  if (amount === undefined) return /^\w[\w.:=-]*$/.test(text) ? { kind: 'cursor', cursor: text } : null
  const seconds = Number(amount) * SECONDS[unit as keyof typeof SECONDS]
  return seconds <= SECONDS_MAX ? { kind: 'ago', seconds } : null
}

/**
 * Converts a time to a position, because feeds start at positions. SQL finds the last event before that time, by the
 * service's clock. The feed starts after that event; anything older that it still delivers (changes of runs and tasks)
 * is dropped on arrival.
 *
 * @throws CliError when the key may not use SQL; NoResponseError when SQL does not answer
 */
export async function findStart(since: Since, client: Client, key: string): Promise<Start> {
  if (since.kind === 'now') return { after: undefined, notBefore: undefined }
  if (since.kind === 'cursor') return { after: since.cursor, notBefore: undefined }
  try {
    const near = await lastBefore(client, since.seconds, NEAR_SECONDS)
    return near.after === '0' ? await lastBefore(client, since.seconds, SECONDS_MAX) : near
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new CliError(`${explanation(key)} (${error.message})`, 1, { cause: error })
  }
}

/**
 * The position of the last event before that time, or zero if there is none.
 *
 * The caller first searches only the day before it: events are partitioned by day, so that takes about 10 ms for any
 * length of history. Searching everything takes 10 ms per million events.
 */
async function lastBefore(client: Client, seconds: number, reach: number): Promise<Start> {
  const params = { seconds, upTo: seconds + MARGIN_SECONDS, from: seconds + reach }
  const { rows } = await client.query<{ seq: number | string; not_before: string }>(LAST_BEFORE, params)
  const [row] = rows
  return { after: String(row?.seq ?? 0), notBefore: row?.not_before }
}

const LAST_BEFORE = `
  SELECT max(seq) AS seq, now64(3, 'UTC') - toIntervalSecond({seconds:UInt32}) AS not_before FROM events
  WHERE received_at >= now64(3, 'UTC') - toIntervalSecond({from:UInt32})
    AND received_at < now64(3, 'UTC') - toIntervalSecond({upTo:UInt32})`

function explanation(key: string): string {
  if (!key.startsWith('svc_agent_')) return 'SQL could not find the position for that time'
  return (
    '--since with a duration uses SQL to find the start, which needs a workspace key. With an agent key use --since 0 ' +
    'for all retained activity, or the "cursor" of an activity shown by --json'
  )
}
