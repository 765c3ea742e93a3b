import type { Clock } from '../../base/clock.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import { dataText } from '../../base/http/answer.ts'
import { callerToken } from '../../base/http/bearer.ts'
import { type Reservation, settle } from '../../base/http/reservation.ts'
import { type Mint, NIL_UUID } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { type Sql, sweepRows, unavailableOf } from '../postgres/connect.ts'
import { isGone, type Sign } from '../postgres/liveness.ts'
import { open, seal } from './seal.ts'
import { seededMint } from './seeded-mint.ts'

/** Stands for the operator token in `idempotency_keys`; there is no such row in `api_keys`. */
const OPERATOR_KEY_ID = NIL_UUID

/** How long a response is stored (docs/api.md#idempotency). */
const KEPT_MS = 24 * 60 * 60 * 1000
/** A longer response is not stored: a retry runs the request again with the same ids. In UTF-16 units. */
const ANSWER_LENGTH_MAX = 1 << 20
const PRINTABLE = /^[\x20-\x7e]{1,255}$/
/** The owner of a row that no process works on. */
const NO_OWNER = NIL_UUID
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
  /** Other processes in that table that are gone. */
  readonly gone: () => readonly Sign[]
}

/** A request with an `Idempotency-Key`. */
interface IdempotentCall {
  readonly request: Request
  /** Undefined for the operator. */
  readonly caller?: { readonly keyId: string } | undefined
  /** The decompressed body. */
  readonly bytes: Uint8Array
}

/** What identifies a call. */
interface Slot {
  /** `api_keys.key_id`, or {@link OPERATOR_KEY_ID}. */
  readonly keyId: string
  /** The caller's token. The stored response is sealed with it, because it may contain a secret. */
  readonly token: string
  /** Value of the header. */
  readonly idemKey: string
  readonly hash: Uint8Array
  /** The key in the set of requests in progress. */
  readonly name: string
}

/** A stored response, to be sent again. */
interface Replay {
  readonly status: number
  /** The whole envelope. */
  readonly text: string
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
 * Idempotency keys (docs/api.md#idempotency), in the Postgres table `idempotency_keys`, shared by all
 * processes.
 */
export class Idempotency {
  /**
   * Requests in progress in this process, to tell them from rows that an earlier attempt of this process left behind.
   */
  private readonly running = new Set<string>()

  constructor(private readonly deps: IdempotencyDeps) {}

  /**
   * A `beforeHandle` hook for POST routes: replays the stored response, or sets `context.mint` and
   * `context.reservation`, which the envelope layer settles when the response is known. Requests without the header
   * cost one header lookup.
   */
  readonly beforeHandle = async (context: IdempotencyContext): Promise<Response | undefined> => {
    const { request, caller, bodyBytes } = context
    if (!request.headers.has('idempotency-key') || request.method !== 'POST') return
    const begun = await this.begin({ request, caller, bytes: bodyBytes })
    if ('replay' in begun) return replayResponse(begun.replay)
    context.mint = begun.reservation.mint
    context.reservation = begun.reservation
    return
  }

  /**
   * The same around one piece of work, for a route without hooks. Resolves with the data of `work`, which must be a 200
   * response, or with the stored response.
   */
  async carryOut<T>(call: IdempotentCall, work: (mint: Mint) => Promise<T>): Promise<T | Response> {
    const begun = await this.begin(call)
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
  }

  /**
   * @throws ApiError CONFLICT (used for another request, or still running), VALIDATION_ERROR (header), UNAVAILABLE
   */
  async begin(call: IdempotentCall): Promise<{ replay: Replay } | { reservation: Reservation }> {
    const slot = slotOf(call)
    const { name } = slot
    if (this.running.has(name)) throw stillRunning()
    this.running.add(name)
    try {
      const seed = await reserve(this.deps, slot)
      if (seed !== undefined) return { reservation: this.reservation(slot, seed) }
      const replay = await replayOf(this.deps, slot)
      this.running.delete(name)
      return { replay }
    } catch (error) {
      this.running.delete(name)
      // The row may have been stored nevertheless.
      if (unavailableOf(error) !== null) this.handOverLater(slot)
      throw error
    }
  }

  private reservation(slot: Slot, { seed, createdAtMs }: Seed): Reservation {
    const { sql, log, instanceId } = this.deps
    const { keyId, idemKey, name } = slot
    const row = sql`key_id = ${keyId} and idem_key = ${idemKey} and seed = ${seed} and status is null`
    const settle = async (work: () => PromiseLike<unknown>) => {
      try {
        await work()
        this.running.delete(name)
      } catch (error) {
        log.warn('the outcome of an idempotent request was not stored; a retry runs it again', { keyId, error })
        this.running.delete(name)
        this.handOverLater(slot)
      }
    }
    const release = () => settle(() => sql`delete from idempotency_keys where ${row} and owner = ${instanceId}`)
    const suspend = () => settle(() => handOver(this.deps, slot))
    return {
      mint: seededMint(seed, createdAtMs, slot.token),
      release,
      suspend,
      async finish(status, text) {
        if (status < 200 || status > 299) return release()
        if (text.length > ANSWER_LENGTH_MAX) return suspend()
        const sealed = seal(text, sealContext(slot))
        await settle(() => sql`update idempotency_keys set status = ${status}, response = ${sealed} where ${row}`)
      },
    }
  }

  /** Hands the request over once the database can be reached, unless the same request runs here again by then. */
  private handOverLater(slot: Slot): void {
    const { log } = this.deps
    const attempt = async () => {
      for (let attempt = 0; attempt < HAND_OVER_ATTEMPTS; attempt++) {
        await Bun.sleep(HAND_OVER_RETRY_MS)
        if (this.running.has(slot.name)) return
        // A repeat that began here meanwhile would lose its row to another process.
        this.running.add(slot.name)
        try {
          return await handOver(this.deps, slot)
        } catch (error) {
          if (unavailableOf(error) === null) throw error
        } finally {
          this.running.delete(slot.name)
        }
      }
    }
    void attempt().catch((error) => log.warn('an idempotent request was not handed over', { keyId: slot.keyId, error }))
  }
}

/** @throws ApiError VALIDATION_ERROR for an invalid header */
function slotOf({ request, caller, bytes }: IdempotentCall): Slot {
  const idemKey = request.headers.get('idempotency-key') ?? ''
  if (!PRINTABLE.test(idemKey)) throw invalid('header Idempotency-Key', 'expected 1 to 255 printable ASCII characters')
  const keyId = caller?.keyId ?? OPERATOR_KEY_ID
  const hash = requestHash(request, bytes)
  return { keyId, token: callerToken(request) ?? '', idemKey, hash, name: `${keyId} ${idemKey}` }
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
export function sweepIdempotencyKeys(sql: Sql, clock: Clock): Promise<number> {
  const before = new Date(clock.now() - KEPT_MS)
  return sweepRows(
    (limit) => sql`
      delete from idempotency_keys where (key_id, idem_key) in
        (select key_id, idem_key from idempotency_keys where created_at < ${before} limit ${limit})`,
  )
}

interface Seed {
  readonly seed: string
  readonly createdAtMs: number
}

/** The seed, if this process may run the request: it is new, or the process that ran it is gone. */
async function reserve(deps: IdempotencyDeps, { keyId, idemKey, hash }: Slot) {
  const { sql, clock, expiryClock, instanceId, gone } = deps
  const now = new Date(clock.now())
  const expired = new Date(expiryClock.now() - KEPT_MS)
  const [row] = await sql<{ seed: string; created_at: Date }[]>`
    insert into idempotency_keys as kept (key_id, idem_key, request_hash, seed, owner, created_at)
    values (${keyId}, ${idemKey}, ${hash}, ${crypto.randomUUID()}, ${instanceId}, ${now})
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
          or not exists (select from instances i where i.instance_id = kept.owner and not ${isGone(sql, 'i', gone())})))
    returning seed, created_at`
  return row === undefined ? undefined : { seed: row.seed, createdAtMs: row.created_at.getTime() }
}

/** The response stored for the same request. */
async function replayOf({ sql }: IdempotencyDeps, slot: Slot): Promise<Replay> {
  const [row] = await sql<Row[]>`
    select request_hash, status, response from idempotency_keys
    where key_id = ${slot.keyId} and idem_key = ${slot.idemKey}`
  // Deleted between the two statements: the other attempt has just failed.
  if (row === undefined) throw stillRunning()
  if (!Buffer.from(slot.hash).equals(row.request_hash))
    throw new ApiError('CONFLICT', 'this Idempotency-Key was used for another request', {
      reason: 'idempotency_key_reused',
      param: 'header Idempotency-Key',
    })
  if (row.status === null || row.response === null) throw stillRunning()
  return { status: row.status, text: open(row.response, sealContext(slot)) }
}

/** Lets any process run the request again: others cannot know that this one has stopped working on it. */
async function handOver({ sql, instanceId }: IdempotencyDeps, { keyId, idemKey }: Slot): Promise<void> {
  await sql`
    update idempotency_keys set owner = ${NO_OWNER}
    where key_id = ${keyId} and idem_key = ${idemKey} and status is null and owner = ${instanceId}`
}

function sealContext({ keyId, token, idemKey }: Slot) {
  return { secret: token, context: `${keyId} ${idemKey}` }
}

/** Two requests are the same if method, path with query, and body are equal. */
function requestHash({ method, url }: Request, bytes: Uint8Array): Uint8Array {
  const pathAndQuery = url.slice(url.indexOf('/', url.indexOf('//') + 2))
  return new Bun.CryptoHasher('sha256').update(`${method} ${pathAndQuery}\n`).update(bytes).digest()
}

function stillRunning(): ApiError {
  return new ApiError('CONFLICT', 'a request with this Idempotency-Key is still running', {
    reason: 'idempotency_key_running',
    param: 'header Idempotency-Key',
    retryAfterSeconds: 1,
  })
}
