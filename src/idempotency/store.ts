import type { Clock } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import type { Mint } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { dataText } from '../http/answer.ts'
import { bearerToken } from '../http/bearer.ts'
import { type Reservation, settle } from '../http/reservation.ts'
import { type Sql, unavailableOf } from '../postgres/connect.ts'
import { open, seal } from './seal.ts'
import { seededMint } from './seeded-mint.ts'

/** Stands for the operator token in `idempotency_keys`; there is no such row in `api_keys`. */
export const OPERATOR_KEY_ID = '00000000-0000-0000-0000-000000000000'

/** How long a response is stored (docs/specification.md#idempotency). */
const KEPT_MS = 24 * 60 * 60 * 1000
/** A longer response is not stored: a retry runs the request again with the same ids. In UTF-16 units. */
const ANSWER_LENGTH_MAX = 1 << 20
const PRINTABLE = /^[\x20-\x7e]{1,255}$/
const ROWS_PER_SWEEP = 10_000
/** The owner of a row that no process works on. */
const NO_OWNER = '00000000-0000-0000-0000-000000000000'
const HAND_OVER_ATTEMPTS = 120
const HAND_OVER_RETRY_MS = 500

interface IdempotencyDeps {
  readonly sql: Sql
  readonly clock: Clock
  /**
   * Decides when keys expire. It never runs ahead of real time, so no request is run twice because a key expired early.
   */
  readonly expiryClock: Clock
  readonly log: Log
  /** This process in the table `instances`. */
  readonly instanceId: string
}

/** A request with an `Idempotency-Key`. */
interface IdempotentCall {
  /** `api_keys.key_id`, or {@link OPERATOR_KEY_ID}. */
  readonly keyId: string
  /** The caller's bearer token. The stored response is sealed with it, because it may contain a secret. */
  readonly token: string
  /** Value of the header. */
  readonly idemKey: string
  readonly request: Request
  /** The decompressed body. */
  readonly bytes: Uint8Array
}

/** A stored response, to be sent again. */
interface Replay {
  readonly status: number
  /** The whole envelope. */
  readonly text: string
}

export interface Idempotency {
  /**
   * @throws ApiError CONFLICT (used for another request, or still running), VALIDATION_ERROR (header), UNAVAILABLE
   */
  begin(call: IdempotentCall): Promise<{ replay: Replay } | { reservation: Reservation }>
  /**
   * A `beforeHandle` hook for POST routes: replays the stored response, or sets `context.mint` and
   * `context.reservation`, which the envelope layer settles when the response is known. Requests without the header
   * cost one header lookup.
   */
  beforeHandle(context: IdempotencyContext): Promise<Response | undefined>
  /**
   * The same around one piece of work, for a route without hooks. Resolves with the data of `work`, which must be a 200
   * response, or with the stored response.
   */
  carryOut<T>(call: BareCall, work: (mint: Mint) => Promise<T>): Promise<T | Response>
}

/** A request with an `Idempotency-Key`, before its headers have been read. */
interface BareCall {
  readonly request: Request
  readonly caller: { readonly keyId: string } | undefined
  /** The decompressed body. */
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

/**
 * Idempotency keys (docs/specification.md#idempotency), in the Postgres table `idempotency_keys`, shared by all
 * processes.
 */
export function createIdempotency(deps: IdempotencyDeps): Idempotency {
  /**
   * Requests in progress in this process, to tell them from rows that an earlier attempt of this process left behind.
   */
  const running = new Set<string>()

  function slotOf(slot: string, call: IdempotentCall): Slot {
    return {
      free: () => void running.delete(slot),
      handOverLater: () =>
        void handOverEventually(deps, call, () => running.has(slot)).catch((error) =>
          deps.log.warn('an idempotent request was not handed over', { keyId: call.keyId, error }),
        ),
    }
  }

  async function begin(call: IdempotentCall): Promise<{ replay: Replay } | { reservation: Reservation }> {
    if (!PRINTABLE.test(call.idemKey))
      throw invalid('header Idempotency-Key', 'expected 1 to 255 printable ASCII characters')
    const slot = `${call.keyId} ${call.idemKey}`
    if (running.has(slot)) throw stillRunning()
    running.add(slot)
    try {
      const hash = requestHash(call)
      const seed = await reserve(deps, call, hash)
      if (seed !== undefined) return { reservation: reservation(deps, call, seed, slotOf(slot, call)) }
      const replay = await replayOf(deps, call, hash)
      running.delete(slot)
      return { replay }
    } catch (error) {
      running.delete(slot)
      // The row may have been stored nevertheless.
      if (unavailableOf(error) !== null) slotOf(slot, call).handOverLater()
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
        await settle(reservation, error instanceof ApiError ? error : { hasEffect: true })
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

function replayResponse({ status, text }: Replay): Response {
  return new Response(text, {
    status,
    headers: { 'content-type': 'application/json', 'idempotent-replayed': 'true' },
  })
}

/**
 * Deletes expired keys. Called periodically.
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

/** The seed, if this process may run the request: it is new, or the process that ran it is gone. */
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

/** The response stored for the same request. */
async function replayOf({ sql }: IdempotencyDeps, call: IdempotentCall, hash: Uint8Array): Promise<Replay> {
  const [row] = await sql<Row[]>`
    select request_hash, status, response from idempotency_keys
    where key_id = ${call.keyId} and idem_key = ${call.idemKey}`
  // Deleted between the two statements: the other attempt has just failed.
  if (row === undefined) throw stillRunning()
  if (!Buffer.from(hash).equals(row.request_hash))
    throw new ApiError('CONFLICT', 'this Idempotency-Key was used for another request')
  if (row.status === null || row.response === null) throw stillRunning()
  return { status: row.status, text: open(row.response, sealContext(call)) }
}

/** The place of a request among those in progress in this process. */
interface Slot {
  free(): void
  /** Hands the request over once the database can be reached. */
  handOverLater(): void
}

function reservation(
  deps: IdempotencyDeps,
  call: IdempotentCall,
  { seed, createdAtMs }: Seed,
  slot: Slot,
): Reservation {
  const { sql, log, instanceId } = deps
  const { keyId, idemKey } = call
  const row = sql`key_id = ${keyId} and idem_key = ${idemKey} and seed = ${seed} and status is null`
  const settle = async (work: () => PromiseLike<unknown>) => {
    try {
      await work()
      slot.free()
    } catch (error) {
      log.warn('the outcome of an idempotent request was not stored; a retry runs it again', { keyId, error })
      slot.free()
      slot.handOverLater()
    }
  }
  const release = () => settle(() => sql`delete from idempotency_keys where ${row} and owner = ${instanceId}`)
  const suspend = () => settle(() => handOver(deps, call))
  return {
    mint: seededMint(seed, createdAtMs),
    release,
    suspend,
    async finish(status, text) {
      if (status < 200 || status > 299) return release()
      if (text.length > ANSWER_LENGTH_MAX) return suspend()
      const sealed = seal(text, sealContext(call))
      await settle(() => sql`update idempotency_keys set status = ${status}, response = ${sealed} where ${row}`)
    },
  }
}

/** Lets any process run the request again: others cannot know that this one has stopped working on it. */
async function handOver({ sql, instanceId }: IdempotencyDeps, { keyId, idemKey }: IdempotentCall): Promise<void> {
  await sql`
    update idempotency_keys set owner = ${NO_OWNER}
    where key_id = ${keyId} and idem_key = ${idemKey} and status is null and owner = ${instanceId}`
}

/** Tries until it succeeds, or the same request runs here again. */
async function handOverEventually(
  deps: IdempotencyDeps,
  call: IdempotentCall,
  isRunning: () => boolean,
): Promise<void> {
  for (let attempt = 0; attempt < HAND_OVER_ATTEMPTS; attempt++) {
    await Bun.sleep(HAND_OVER_RETRY_MS)
    if (isRunning()) return
    try {
      return await handOver(deps, call)
    } catch (error) {
      if (unavailableOf(error) === null) throw error
    }
  }
}

function sealContext({ keyId, token, idemKey }: IdempotentCall) {
  return { secret: token, context: `${keyId} ${idemKey}` }
}

/** Two requests are the same if method, path with query, and body are equal. */
function requestHash({ request, bytes }: IdempotentCall): Uint8Array {
  const { url } = request
  const pathAndQuery = url.slice(url.indexOf('/', url.indexOf('//') + 2))
  return new Bun.CryptoHasher('sha256').update(`${request.method} ${pathAndQuery}\n`).update(bytes).digest()
}

function stillRunning(): ApiError {
  return new ApiError('CONFLICT', 'a request with this Idempotency-Key is still running', { retryAfterSeconds: 1 })
}
