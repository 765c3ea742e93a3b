import { CliError } from '../cli/error.ts'
import { CallRefused, type Client } from '../demo/client.ts'

/** Where a tail is asked to begin. */
export type Since =
  | { readonly kind: 'now' }
  | { readonly kind: 'cursor'; readonly cursor: string }
  | { readonly kind: 'ago'; readonly seconds: number }

/** Where it does begin. */
export interface Start {
  /** Undefined: with what comes from now on. */
  readonly after: string | undefined
  /** What was received before this time is not to be shown; a timestamp as activities have it. */
  readonly notBefore: string | undefined
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
const SECONDS_MAX = 10 * 365 * 86_400
const NEAR_SECONDS = 86_400
/** Activities are numbered by when they were made durable, which may differ from the order of their times by a moment. */
const MARGIN_SECONDS = 10

/** @returns null for what is neither a duration nor could be a cursor */
export function parseSince(text: string): Since | null {
  const [, amount, unit] = /^(\d+)([smhd])$/.exec(text) ?? []
  if (amount === undefined) return /^\w[\w.:=-]*$/.test(text) ? { kind: 'cursor', cursor: text } : null
  const seconds = Number(amount) * SECONDS[unit as keyof typeof SECONDS]
  return seconds <= SECONDS_MAX ? { kind: 'ago', seconds } : null
}

/**
 * Feeds begin at a position, not at a time. SQL knows the last event from before that time, and the clock is the
 * service's: the feed begins after that event, and what precedes the time (changes of runs and tasks that no event came
 * after) is left out on arrival.
 *
 * @throws CliError when the key may not use SQL; CallUnconfirmed when SQL does not answer
 */
export async function findStart(since: Since, client: Client, key: string): Promise<Start> {
  if (since.kind === 'now') return { after: undefined, notBefore: undefined }
  if (since.kind === 'cursor') return { after: since.cursor, notBefore: undefined }
  try {
    const near = await lastBefore(client, key, since.seconds, NEAR_SECONDS)
    return near.after === '0' ? await lastBefore(client, key, since.seconds, SECONDS_MAX) : near
  } catch (error) {
    if (!(error instanceof CallRefused)) throw error
    throw new CliError(`${explanation(key)} (${error.message})`, 1, { cause: error })
  }
}

/**
 * The last event from before that time, or zero, which is the beginning, when there is none.
 *
 * Asked for a day before it first: events are kept in parts of a day each, so that the answer takes the same 10 ms
 * however long the history is. All of it costs 10 ms a million events.
 */
async function lastBefore(client: Client, key: string, seconds: number, reach: number): Promise<Start> {
  const params = { seconds, upTo: seconds + MARGIN_SECONDS, from: seconds + reach }
  const data = await client({ key, path: '/api/v1/query', body: { query: LAST_BEFORE, params } })
  const [row] = (data as { rows: { seq: number | string; not_before: string }[] }).rows
  return { after: String(row?.seq ?? 0), notBefore: row?.not_before }
}

const LAST_BEFORE = `
  SELECT max(seq) AS seq, now64(3, 'UTC') - toIntervalSecond({seconds:UInt32}) AS not_before FROM events
  WHERE received_at >= now64(3, 'UTC') - toIntervalSecond({from:UInt32})
    AND received_at < now64(3, 'UTC') - toIntervalSecond({upTo:UInt32})`

function explanation(key: string): string {
  if (!key.startsWith('svc_agent_')) return 'SQL could not say where that time begins'
  return (
    '--since with a duration asks SQL where to begin, and SQL needs a workspace key. With an agent key give --since 0 ' +
    'for all that is kept, or the "cursor" of an activity seen with --json'
  )
}
