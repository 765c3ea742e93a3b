import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import { ApiError } from '../../base/errors.ts'
import type { FailureLimit } from '../../base/http/rate-limit.ts'
import type { Log } from '../../base/log.ts'
import { type Batcher, createBatcher } from '../../stores/postgres/batcher.ts'
import { inTransaction, type Sql, type TransactionSql, unavailableOf } from '../../stores/postgres/connect.ts'
import type { Sign } from '../../stores/postgres/liveness.ts'
import { type Credential, readCredentials, readNewestHashes } from './credentials.ts'
import { type CredentialChange, CredentialLease, type LeaseDeps } from './lease.ts'
import type { Caller, CredentialState, FeedCaller } from './schema.ts'
import { tokenTypeOf } from './token.ts'
import { UseLog } from './use-log.ts'

export interface KeyRingDeps extends LeaseDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly limits?: Partial<typeof LIMITS>
  /** Limits lookups of unknown keys; undefined: unlimited. */
  readonly unknownKeys?: FailureLimit | undefined
}

/** Returns the client address, by which failures are counted. Called only if Postgres must be queried. */
type Source = () => string

const LIMITS = {
  /** Cached keys, feed tokens and sign-ins, about 300 bytes each. */
  keys: 100_000,
  /** Entries of the negative cache. */
  unknownTokens: 10_000,
  unknownTokensTtlMs: 5_000,
}
const RENEWAL_RETRY_MS = 100
/** Attempts at a lookup that changes of credentials keep overtaking. */
const LOOKUPS_MAX = 5
const TOKEN_LENGTH_MAX = 100
/** Key hashes that a process loads when it starts. */
const ISSUED_HASHES_LOADED = 20_000

/**
 * Why a caller is no longer valid: its key was revoked, its sign-in ended, its agent archived, or its person or workspace
 * suspended. `unknown`: the lease has ended, so its state is not known.
 */
type InvalidReason = Exclude<CredentialChange['scope'], 'maker'> | 'unknown'
/** Returns null if the caller is still valid. */
export type InvalidReasonOf = (caller: Caller) => InvalidReason | null

/** Result of one database lookup, with `generation` at the time when it began. */
interface Found {
  readonly credential: Credential | null
  readonly generation: number
}

/**
 * Finds the caller for a key, without asking Postgres about a key that is cached (docs/keys.md#revocation). Feed
 * tokens are cached like keys, but can only open feeds (docs/feeds.md#feed-tokens).
 *
 * The cache is keyed by the SHA-256 of the key (0.2 µs per request), so no key stays in memory longer than its request.
 * {@link CredentialLease} decides how long the cache may be trusted; every change of credentials goes through
 * {@link change}. While Postgres is unavailable, cached keys keep working until the lease ends, and all others get 503.
 */
export class KeyRing {
  private readonly credentials: LRUCache<string, Credential>
  /** Hashes of credentials that are known to exist: looking them up never counts as a guess. */
  private readonly issuedHashes: LRUCache<string, true>
  /** Negative cache for unknown tokens; separate, so that it cannot evict valid keys. */
  private readonly unknownTokens: LRUCache<string, true>
  private readonly lookups = new Map<string, Promise<Found>>()
  private readonly reader: Batcher<string, Credential | null>
  private readonly lease: CredentialLease
  private readonly uses: UseLog
  private readonly listeners = new Set<(reasonOf: InvalidReasonOf) => void>()
  private forgotten = 0

  constructor(private readonly deps: KeyRingDeps) {
    const { keys, unknownTokens, unknownTokensTtlMs } = { ...LIMITS, ...deps.limits }
    this.credentials = new LRUCache({ max: keys })
    this.issuedHashes = new LRUCache({ max: keys })
    this.unknownTokens = new LRUCache({
      max: unknownTokens,
      ttl: unknownTokensTtlMs,
      ttlResolution: 0,
      perf: deps.clock,
    })
    this.lease = new CredentialLease(deps, (changes) => this.forget(changes))
    this.uses = new UseLog(deps)
    this.reader = createBatcher({
      run: (hashes) => readCredentials(deps.sql, hashes, deps.clock.now()),
      keyOf: (hash) => hash,
      bytesOf: (hash) => hash.length,
    })
  }

  /** Joins the processes that share the database. Call before the first {@link authenticate}. */
  async start(): Promise<void> {
    await this.lease.start()
    this.uses.start()
  }

  /** Adds the hash of a credential that has just been created. */
  issued(hash: Buffer): void {
    this.issuedHashes.set(hash.toString('base64'), true)
  }

  /** Loads the hashes of the newest keys, so that guesses from the same address do not block their users. */
  async noteIssued(): Promise<void> {
    const hashes = await readNewestHashes(this.deps.sql, ISSUED_HASHES_LOADED)
    for (const hash of hashes) this.issuedHashes.set(hash, true)
  }

  /** Writes pending `last_used_at` values and releases the lease. No key is accepted afterwards. */
  async stop(): Promise<void> {
    await this.uses.stop()
    await this.lease.stop()
  }

  /** Other processes that share the database and are gone: see {@link CredentialLease.gone}. */
  gone(): readonly Sign[] {
    return this.lease.gone()
  }

  /** Makes {@link gone} up to date. A process that has the database for itself does not look at others otherwise. */
  async lookAtOthers(): Promise<void> {
    await this.lease.lookAtOthers()
  }

  /**
   * True while no key can have been revoked without this process knowing. Otherwise resolves once that is so again, or to
   * false a moment after a failed attempt.
   */
  areRevocationsKnown(): true | Promise<boolean> {
    if (this.lease.fresh) return true
    return this.lease.renew().then(
      () => this.lease.fresh,
      () => Bun.sleep(RENEWAL_RETRY_MS).then(() => false),
    )
  }

  /** Increases with each invalidation: a result that was read before must not be cached after it. */
  get generation(): number {
    return this.forgotten
  }

  /** Whether a caller that was accepted at that generation must be checked again. */
  changedSince(generation: number): boolean {
    return generation !== this.forgotten || !this.lease.fresh
  }

  /**
   * The caller for this key: synchronous if it is cached, otherwise a promise.
   * @param from the address that an unknown key is counted against; undefined: not counted
   * @throws ApiError UNAUTHENTICATED (unknown, revoked or expired), FORBIDDEN (suspended workspace), RATE_LIMITED (too many
   *   unknown keys from this address, and this key is not cached), UNAVAILABLE (Postgres is needed and unavailable);
   *   synchronously or as a rejection
   */
  authenticate(token: string, from?: Source): Caller | Promise<Caller> {
    if (token.length > TOKEN_LENGTH_MAX) throw unknownKey()
    const found = this.credentialOf(token, Bun.SHA256.hash(token, 'base64'), from)
    return found instanceof Promise ? found.then((later) => this.admitKey(later)) : this.admitKey(found)
  }

  /**
   * The caller that opens a feed: by a key of either type, a feed token, or the token of a sign-in. As fast as
   * {@link authenticate}.
   * @throws ApiError as there
   */
  authenticateFeed(token: string, from?: Source): FeedCaller | Promise<FeedCaller> {
    if (token.length > TOKEN_LENGTH_MAX) throw unknownToken()
    const hash = Bun.SHA256.hash(token, 'base64')
    this.forgetEndedSignIn(hash)
    const found = this.credentialOf(token, hash, from)
    return found instanceof Promise ? found.then((later) => this.admitFeed(later, hash)) : this.admitFeed(found, hash)
  }

  /** Removes a cached sign-in that seems to have ended, so that it is read again: its use in another process extends it. */
  private forgetEndedSignIn(hash: string): void {
    const known = this.credentials.get(hash)
    if (known?.kind === 'sign-in' && known.expiresAt <= this.deps.clock.now()) this.credentials.delete(hash)
  }

  /** From the cache if it can be trusted, otherwise from Postgres; null if there is none. */
  private credentialOf(token: string, hash: string, from?: Source): Credential | null | Promise<Credential | null> {
    const known = this.credentials.get(hash)
    if (known !== undefined && this.lease.fresh) return known
    if (known === undefined && tokenTypeOf(token) === null) return null
    return this.lookUp(hash, known === undefined ? from : undefined)
  }

  /**
   * Returns the state of an open feed's credential: synchronously from the cache while the lease lasts, otherwise as a
   * promise. Unlike {@link onKeysInvalidated} it takes expiry into account. It does not count as a use of the key.
   *
   * @param credential of the {@link FeedCaller}
   * @throws ApiError UNAVAILABLE (Postgres is needed and unavailable), as a rejection
   */
  credentialState(credential: string): CredentialState | Promise<CredentialState> {
    this.forgetEndedSignIn(credential)
    const known = this.credentials.get(credential)
    if (known !== undefined && this.lease.fresh) return this.stateOf(known)
    return this.lookUp(credential).then((found) => this.stateOf(found))
  }

  /**
   * Changes credentials: runs `work` in a transaction, then invalidates the caches of this and all other processes. Once it
   * has resolved, no process accepts a credential that `work` has revoked.
   * @throws what `work` throws; ApiError UNAVAILABLE if another process has not confirmed in time
   */
  async change<T>(change: CredentialChange, work: (sql: TransactionSql) => Promise<T>): Promise<T> {
    let result: T
    let changeId = 0
    try {
      result = await inTransaction(this.deps.sql, async (tx) => {
        const worked = await work(tx)
        changeId = await this.lease.record(tx, change)
        return worked
      })
    } catch (error) {
      // If the response to the commit was lost, the change may have been committed.
      this.lease.forgetOwn(changeId)
      if (!(error instanceof ApiError)) this.forget([{ ...change, invalidates: false }])
      throw unavailableOf(error) ?? error
    }
    this.forget([change])
    await this.lease.settle(changeId)
    return result
  }

  /**
   * Calls `listener` when keys become invalid, in any process, so that their open connections can be closed. Does not
   * report that keys and feed tokens expire.
   * @returns a function that unsubscribes
   */
  onKeysInvalidated(listener: (reasonOf: InvalidReasonOf) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /**
   * The caller of a request that writes a score with a feed token.
   * @throws ApiError as {@link authenticate}; FORBIDDEN for a token that may write none
   */
  async authenticateScoring(token: string, from?: Source): Promise<Caller> {
    if (token.length > TOKEN_LENGTH_MAX) throw unknownToken()
    const found = await this.credentialOf(token, Bun.SHA256.hash(token, 'base64'), from)
    if (found === null) throw unknownToken()
    const caller = this.admit(found)
    if (found.scoring === null)
      throw new ApiError('FORBIDDEN', 'this feed token may not write scores', { reason: 'feed_token' })
    return { ...caller, scoring: found.scoring }
  }

  private admitKey(found: Credential | null): Caller {
    if (found === null) throw unknownKey()
    if (found.kind === 'feed token')
      throw new ApiError('UNAUTHENTICATED', 'a feed token can only open live feeds; send a key', {
        reason: 'key_invalid',
      })
    if (found.kind === 'sign-in') throw unknownKey()
    return this.admit(found)
  }

  private admitFeed(found: Credential | null, credential: string): FeedCaller {
    if (found === null) throw unknownToken()
    const caller = this.admit(found)
    return { caller, agentId: caller.agentId, runId: found.runId, credential, isToken: found.kind === 'feed token' }
  }

  private admit(found: Credential): Caller {
    const now = this.deps.clock.now()
    const what = found.kind
    if (found.revoked) throw new ApiError('UNAUTHENTICATED', `the ${what} has been revoked`, { reason: 'key_revoked' })
    if (found.expiresAt <= now)
      throw new ApiError('UNAUTHENTICATED', `the ${what} has expired`, { reason: 'key_expired' })
    if (found.suspended)
      throw new ApiError('FORBIDDEN', `no workspace: the workspace of this ${what} is suspended`, {
        reason: 'no_workspace',
      })
    this.uses.record(found.caller, now)
    return found.caller
  }

  private stateOf(found: Credential | null): CredentialState {
    if (found === null || found.revoked || found.expiresAt <= this.deps.clock.now()) return 'invalid'
    return found.suspended ? 'suspended' : 'valid'
  }

  /**
   * The credential with this hash, from Postgres if necessary; null if there is none.
   * @throws ApiError UNAVAILABLE, RATE_LIMITED
   */
  private async lookUp(hash: string, from?: Source): Promise<Credential | null> {
    if (this.unknownTokens.has(hash)) return null
    const counted = from !== undefined && this.issuedHashes.get(hash) === undefined && !this.lookups.has(hash)
    const attempt = counted ? this.deps.unknownKeys?.begin(from()) : undefined
    try {
      const found = await this.find(hash)
      if (found !== null) attempt?.forgive()
      return found
    } catch (error) {
      attempt?.forgive()
      throw error
    }
  }

  private async find(hash: string): Promise<Credential | null> {
    for (let attempt = 0; attempt < LOOKUPS_MAX; attempt++) {
      if (!this.lease.fresh) await this.lease.renew()
      const known = this.credentials.get(hash)
      if (known !== undefined && this.lease.fresh) return known
      const { credential, generation } = await this.read(hash)
      if (generation !== this.forgotten || !this.lease.fresh) continue
      if (credential === null) this.unknownTokens.set(hash, true)
      else this.credentials.set(hash, credential)
      return credential
    }
    throw new ApiError('UNAVAILABLE', 'keys cannot be checked right now; try again')
  }

  /** Concurrent requests with the same new key share one lookup; concurrent lookups share one statement. */
  private read(hash: string): Promise<Found> {
    const running = this.lookups.get(hash)
    if (running !== undefined) return running
    const generation = this.forgotten
    const lookup = this.reader
      .submit(hash)
      .then((credential) => ({ credential, generation }))
      .catch((error: unknown) => {
        throw unavailableOf(error) ?? error
      })
      .finally(() => this.lookups.delete(hash))
    this.lookups.set(hash, lookup)
    return lookup
  }

  private forget(changes: readonly CredentialChange[] | 'everything'): void {
    this.forgotten++
    if (changes === 'everything') {
      this.credentials.clear()
      this.notify(() => 'unknown')
      return
    }
    const touched = matcherOf(changes)
    const stale = [...this.credentials.entries()].filter(([, { caller }]) => touched(caller) !== null)
    for (const [hash] of stale) this.credentials.delete(hash)
    const invalidating = changes.filter((change) => change.invalidates)
    if (invalidating.length > 0) this.notify(matcherOf(invalidating))
  }

  private notify(reasonOf: InvalidReasonOf): void {
    for (const listener of this.listeners) listener(reasonOf)
  }
}

/** The narrowest scope of the changes that affect a caller; null if none does. */
function matcherOf(changes: readonly CredentialChange[]): InvalidReasonOf {
  const ids = new Set(changes.map((change) => `${change.scope}:${change.id}`))
  return ({ keyId, agentId, workspaceId, person, makerId }) => {
    if (ids.has(`key:${keyId}`)) return 'key'
    if (ids.has(`agent:${agentId}`)) return 'agent'
    if (person !== undefined && ids.has(`person:${person.personId}`)) return 'person'
    const maker = person?.personId ?? makerId
    if (maker !== undefined && ids.has(`maker:${maker}`)) return 'person'
    return ids.has(`workspace:${workspaceId}`) ? 'workspace' : null
  }
}

/** The message reveals nothing else to a client that guesses. */
function unknownKey(): ApiError {
  return new ApiError('UNAUTHENTICATED', 'the key is not valid', { reason: 'key_invalid' })
}

function unknownToken(): ApiError {
  return new ApiError('UNAUTHENTICATED', 'the key or feed token is not valid', { reason: 'key_invalid' })
}
