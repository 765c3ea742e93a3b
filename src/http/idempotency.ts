import type { Clock } from '../clock.ts'
import type { Mint } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Sql } from '../postgres/connect.ts'
import { dataText } from './answer.ts'
import { bearerToken } from './bearer.ts'
import { ApiError, invalid } from './errors.ts'
import { open, seal } from './seal.ts'
import { seededMint } from './seeded-mint.ts'

/** The API key that calls with the operator's token are counted under: it is no row of `api_keys`. */
export const OPERATOR_KEY_ID = '00000000-0000-0000-0000-000000000000'

/** How long an answer is kept (docs/specification.md#idempotency). */
const KEPT_MS = 24 * 60 * 60 * 1000
/** A longer answer is not kept: a repeat carries the call out again, minting the same ids. In UTF-16 units. */
const ANSWER_LENGTH_MAX = 1 << 20
const PRINTABLE = /^[\x20-\x7e]{1,255}$/
const ROWS_PER_SWEEP = 10_000

export interface IdempotencyDeps {
  readonly sql: Sql
  readonly clock: Clock
  /** Says which keys have been kept long enough: one that never runs ahead, so that a call is not carried out twice. */
  readonly expiryClock: Clock
  readonly log: Log
  /** This process in the table `instances`. */
  readonly instanceId: string
}

/** One call that carries an `Idempotency-Key`. */
export interface IdempotentCall {
  /** `api_keys.key_id`, or {@link OPERATOR_KEY_ID}. */
  readonly keyId: string
  /** The caller's bearer token: what the kept answer is sealed with, as it may hold a secret. */
  readonly token: string
  /** Value of the header. */
  readonly idemKey: string
  readonly request: Request
  /** The body, inflated. */
  readonly bytes: Uint8Array
}

/** An answer that was given before, to be given again. */
export interface Replay {
  readonly status: number
  /** The whole envelope. */
  readonly text: string
}

/** A call that is being carried out. Exactly one of the three must follow. */
export interface Reservation {
  /** Mints the same ids again when the call is repeated after a crash between its effect and {@link finish}. */
  readonly mint: Mint
  /** Keeps a 2xx answer. Resolves once it is stored; a failure to store is logged, the answer stands. */
  finish(status: number, text: string): Promise<void>
  /** Nothing happened: the key is free for another request. */
  release(): Promise<void>
  /** The outcome is unknown: only the same request may use the key again, and it will mint the same ids. */
  suspend(): void
}

export interface Idempotency {
  /**
   * @throws ApiError CONFLICT (used for another request, or still running), VALIDATION_ERROR (header), UNAVAILABLE
   */
  begin(call: IdempotentCall): Promise<{ replay: Replay } | { reservation: Reservation }>
  /**
   * A `beforeHandle` hook for POST routes: replays, or sets `context.mint` and `context.reservation`, which the envelope layer
   * settles when the answer is known. Costs one header look-up without the header.
   */
  beforeHandle(context: IdempotencyContext): Promise<Response | undefined>
  /**
   * The whole of it around one piece of work, for a route without hooks. Answers the data of `work`, or the answer that
   * was given before. `work` must answer 200 with the data it resolves with.
   */
  carryOut<T>(call: BareCall, work: (mint: Mint) => Promise<T>): Promise<T | Response>
}

/** A call that carries an `Idempotency-Key`, before its headers have been looked at. */
export interface BareCall {
  readonly request: Request
  readonly caller: { readonly keyId: string } | undefined
  /** The body, inflated. */
  readonly bytes: Uint8Array
}

export interface IdempotencyContext {
  request: Request
  caller?: { readonly keyId: string }
  bodyBytes: Uint8Array
  mint: Mint
  reservation: Reservation | undefined
}

interface Row {
  request_hash: Uint8Array
  status: number | null
  response: Uint8Array | null
}

/** Idempotency keys (docs/specification.md#idempotency), kept in `idempotency_keys` of Postgres, shared by all processes. */
export function createIdempotency(deps: IdempotencyDeps): Idempotency {
  /** What this process is working on: told apart from what an earlier attempt of its own has left behind. */
  const running = new Set<string>()

  async function begin(call: IdempotentCall): Promise<{ replay: Replay } | { reservation: Reservation }> {
    if (!PRINTABLE.test(call.idemKey))
      throw invalid('header Idempotency-Key', 'expected 1 to 255 printable ASCII characters')
    const slot = `${call.keyId} ${call.idemKey}`
    if (running.has(slot)) throw stillRunning()
    running.add(slot)
    try {
      const hash = requestHash(call)
      const seed = await reserve(deps, call, hash)
      if (seed !== undefined) return { reservation: reservation(deps, call, seed, () => running.delete(slot)) }
      const replay = await replayOf(deps, call, hash)
      running.delete(slot)
      return { replay }
    } catch (error) {
      running.delete(slot)
      throw error
    }
  }

  const beginBare = ({ request, caller, bytes }: BareCall) =>
    begin({
      keyId: caller?.keyId ?? OPERATOR_KEY_ID,
      token: bearerToken(request) ?? '',
      idemKey: request.headers.get('idempotency-key') ?? '',
      request,
      bytes,
    })

  return {
    begin,
    async carryOut(call, work) {
      const begun = await beginBare(call)
      if ('replay' in begun) return replayResponse(begun.replay)
      const { reservation } = begun
      try {
        const data = await work(reservation.mint)
        await reservation.finish(200, dataText(data))
        return data
      } catch (error) {
        await giveUp(reservation, error instanceof ApiError ? error : { hasEffect: true })
        throw error
      }
    },
    async beforeHandle(context) {
      const { request, caller, bodyBytes } = context
      if (!request.headers.has('idempotency-key') || request.method !== 'POST') return
      const begun = await beginBare({ request, caller, bytes: bodyBytes })
      if ('replay' in begun) return replayResponse(begun.replay)
      context.mint = begun.reservation.mint
      context.reservation = begun.reservation
      return
    },
  }
}

/** Settles a call that has failed. After a refusal the key is free again; after a failure nobody knows what has happened. */
export async function giveUp(reservation: Reservation, { hasEffect }: Pick<ApiError, 'hasEffect'>): Promise<void> {
  if (hasEffect) reservation.suspend()
  else await reservation.release()
}

export function replayResponse({ status, text }: Replay): Response {
  return new Response(text, {
    status,
    headers: { 'content-type': 'application/json', 'idempotent-replayed': 'true' },
  })
}

/**
 * Deletes answers that have been kept long enough. For a job that runs every so often.
 * @returns how many were deleted
 */
export async function sweepIdempotencyKeys(sql: Sql, clock: Clock): Promise<number> {
  const before = new Date(clock.now() - KEPT_MS)
  for (let swept = 0; ; ) {
    const { count } = await sql`
      delete from idempotency_keys where (key_id, idem_key) in
        (select key_id, idem_key from idempotency_keys where created_at < ${before} limit ${ROWS_PER_SWEEP})`
    swept += count
    if (count < ROWS_PER_SWEEP) return swept
  }
}

interface Seed {
  readonly seed: string
  readonly createdAtMs: number
}

/** The seed of the call if it is ours to carry out: nobody has before, or whoever did is gone. */
async function reserve(
  { sql, clock, expiryClock, instanceId }: IdempotencyDeps,
  call: IdempotentCall,
  hash: Uint8Array,
) {
  const now = new Date(clock.now())
  const expired = new Date(expiryClock.now() - KEPT_MS)
  const [row] = await sql<{ seed: string; created_at: Date }[]>`
    insert into idempotency_keys as kept (key_id, idem_key, request_hash, seed, owner, created_at)
    values (${call.keyId}, ${call.idemKey}, ${hash}, ${crypto.randomUUID()}, ${instanceId}, ${now})
    on conflict (key_id, idem_key) do update set
      owner = excluded.owner,
      request_hash = excluded.request_hash,
      status = null,
      response = null,
      seed = case when kept.created_at < ${expired} then excluded.seed else kept.seed end,
      created_at = case when kept.created_at < ${expired} then excluded.created_at else kept.created_at end
    where kept.created_at < ${expired}
      or (kept.status is null and kept.request_hash = excluded.request_hash
        and (kept.owner = excluded.owner
          or not exists (select from instances where instance_id = kept.owner and lease_until > now())))
    returning seed, created_at`
  return row === undefined ? undefined : { seed: row.seed, createdAtMs: row.created_at.getTime() }
}

/** The answer that was kept for this very request. */
async function replayOf({ sql }: IdempotencyDeps, call: IdempotentCall, hash: Uint8Array): Promise<Replay> {
  const [row] = await sql<Row[]>`
    select request_hash, status, response from idempotency_keys
    where key_id = ${call.keyId} and idem_key = ${call.idemKey}`
  // Gone between the two statements: whoever ran it has failed just now.
  if (row === undefined) throw stillRunning()
  if (!Buffer.from(hash).equals(row.request_hash))
    throw new ApiError('CONFLICT', 'this Idempotency-Key was used for another request')
  if (row.status === null || row.response === null) throw stillRunning()
  return { status: row.status, text: open(row.response, sealContext(call)) }
}

function reservation(
  { sql, log, instanceId }: IdempotencyDeps,
  call: IdempotentCall,
  { seed, createdAtMs }: Seed,
  done: () => void,
): Reservation {
  const { keyId, idemKey } = call
  const settle = async (work: () => PromiseLike<unknown>) => {
    try {
      await work()
    } catch (error) {
      log.warn('the outcome of an idempotent call was not stored; a repeat carries it out again', { keyId, error })
    } finally {
      done()
    }
  }
  const release = () =>
    settle(
      () => sql`delete from idempotency_keys where key_id = ${keyId} and idem_key = ${idemKey} and seed = ${seed}
        and status is null and owner = ${instanceId}`,
    )
  return {
    mint: seededMint(seed, createdAtMs),
    release,
    suspend: done,
    async finish(status, text) {
      if (status < 200 || status > 299) return release()
      if (text.length > ANSWER_LENGTH_MAX) return done()
      const sealed = seal(text, sealContext(call))
      await settle(
        () => sql`
          update idempotency_keys set status = ${status}, response = ${sealed}
          where key_id = ${keyId} and idem_key = ${idemKey} and seed = ${seed} and status is null`,
      )
    },
  }
}

function sealContext({ keyId, token, idemKey }: IdempotentCall) {
  return { secret: token, context: `${keyId} ${idemKey}` }
}

/** What makes two requests the same: method, path with query, body. */
function requestHash({ request, bytes }: IdempotentCall): Uint8Array {
  const { url } = request
  const pathAndQuery = url.slice(url.indexOf('/', url.indexOf('//') + 2))
  return new Bun.CryptoHasher('sha256').update(`${request.method} ${pathAndQuery}\n`).update(bytes).digest()
}

function stillRunning(): ApiError {
  return new ApiError('CONFLICT', 'a request with this Idempotency-Key is still running', { retryAfterSeconds: 1 })
}
