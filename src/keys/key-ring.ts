import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import { ApiError } from '../http/errors.ts'
import type { FailureLimit } from '../http/failure-limit.ts'
import type { Log } from '../log.ts'
import { type Batcher, createBatcher } from '../postgres/batcher.ts'
import { inTransaction, type Sql, type TransactionSql, unavailableOf } from '../postgres/connect.ts'
import { type Credential, readCredentials, readNewestHashes } from './credentials.ts'
import { type CredentialChange, CredentialLease, type LeaseDeps } from './lease.ts'
import type { Caller, CredentialState, FeedCaller } from './schema.ts'
import { tokenTypeOf } from './token.ts'
import { UseLog } from './use-log.ts'

export interface KeyRingDeps extends LeaseDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly limits?: Partial<KeyRingLimits>
  /** Bounds the look-ups of unknown keys; undefined: unlimited. */
  readonly unknownKeys?: FailureLimit | undefined
}

/** The address that a call comes from, to count failures by; asked only when Postgres has to be. */
export type Source = () => string

export interface KeyRingLimits {
  /** Keys and feed tokens remembered; some 300 bytes each. */
  readonly keys: number
  /** Entries of the negative cache. */
  readonly unknownTokens: number
  readonly unknownTokensTtlMs: number
}

const LIMITS: KeyRingLimits = { keys: 100_000, unknownTokens: 10_000, unknownTokensTtlMs: 5_000 }
/** How often a look-up that a change of credentials has overtaken is repeated. */
const LOOKUPS_MAX = 5
const TOKEN_LENGTH_MAX = 100
/** Keys that a process takes note of when it starts. */
const ISSUED_NOTED_MAX = 20_000

/**
 * What a caller died of: its key, its agent's archiving, its workspace's suspension. `unknown`: it may live, but that can
 * no longer be told, because the lease has ended.
 */
export type Death = CredentialChange['scope'] | 'unknown'
/** Null for a caller that lives. */
export type DeathOf = (caller: Caller) => Death | null

/** What one request of the database found, and how old it is: the state of `generation` when it began. */
interface Found {
  readonly credential: Credential | null
  readonly generation: number
}

/**
 * Turns the text of a key into its caller, without asking Postgres about a key it has seen
 * (docs/specification.md#revocation). Feed tokens are remembered like keys; they open feeds and nothing else
 * (docs/specification.md#feed-tokens).
 *
 * What is remembered is found by the SHA-256 of the text, 0.2 µs a call: no key stands in memory longer than its request.
 * What may be trusted, and for how long, is the business of {@link CredentialLease}; every change of credentials goes
 * through {@link change}. When Postgres is away, remembered keys keep working until the lease ends, any other answers 503.
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
  private readonly listeners = new Set<(deathOf: DeathOf) => void>()
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
      run: (hashes) => readCredentials(deps.sql, hashes),
      keyOf: (hash) => hash,
      bytesOf: (hash) => hash.length,
    })
  }

  /** Joins the processes that share the database. Call before the first {@link authenticate}. */
  async start(): Promise<void> {
    await this.lease.start()
    this.uses.start()
  }

  /** Says that a credential with this hash exists: it has just been made. */
  issued(hash: Buffer): void {
    this.issuedHashes.set(hash.toString('base64'), true)
  }

  /** Takes note of the newest keys there are, so that guesses from their users' addresses do not hold them up. */
  async noteIssued(): Promise<void> {
    const hashes = await readNewestHashes(this.deps.sql, ISSUED_NOTED_MAX)
    for (const hash of hashes) this.issuedHashes.set(hash, true)
  }

  /** Writes what is left to write and leaves. No key is accepted afterwards. */
  async stop(): Promise<void> {
    await this.uses.stop()
    await this.lease.stop()
  }

  /** Rises whenever something is forgotten: what was read before must not be remembered after. */
  get generation(): number {
    return this.forgotten
  }

  /** Whether a caller that was accepted at that generation must be looked at again. */
  changedSince(generation: number): boolean {
    return generation !== this.forgotten || !this.lease.fresh
  }

  /**
   * The caller that holds this key: at once when it is remembered, else a promise.
   * @param from whose unknown keys are counted; undefined: nobody's
   * @throws ApiError UNAUTHENTICATED (unknown, revoked or expired), FORBIDDEN (suspended workspace), RATE_LIMITED (too many
   *   unknown keys of this address, and this is not a remembered one), UNAVAILABLE (Postgres is needed and away); thrown or
   *   rejected with
   */
  authenticate(token: string, from?: Source): Caller | Promise<Caller> {
    if (token.length > TOKEN_LENGTH_MAX) throw unknownKey()
    const hash = Bun.SHA256.hash(token, 'base64')
    const known = this.credentials.get(hash)
    if (known !== undefined && this.lease.fresh) return this.admitKey(known)
    if (known === undefined && tokenTypeOf(token) === null) throw unknownKey()
    return this.lookUp(hash, known === undefined ? from : undefined).then((found) => this.admitKey(found))
  }

  /**
   * Who opens a feed, with a key of either type or with a feed token; as fast as {@link authenticate}.
   * @throws ApiError as there
   */
  authenticateFeed(token: string, from?: Source): FeedCaller | Promise<FeedCaller> {
    if (token.length > TOKEN_LENGTH_MAX) throw unknownToken()
    const hash = Bun.SHA256.hash(token, 'base64')
    const known = this.credentials.get(hash)
    if (known !== undefined && this.lease.fresh) return this.admitFeed(known, hash)
    if (known === undefined && tokenTypeOf(token) === null) throw unknownToken()
    return this.lookUp(hash, known === undefined ? from : undefined).then((found) => this.admitFeed(found, hash))
  }

  /**
   * Whether the credential that an open feed came with is still good: at once from memory while the lease lasts, else a
   * promise. Knows of expiry, which {@link onKeyDead} does not tell. It is no use of the key.
   *
   * @param credential that of the {@link FeedCaller}
   * @throws ApiError UNAVAILABLE (Postgres is needed and away); rejected with
   */
  isAlive(credential: string): CredentialState | Promise<CredentialState> {
    const known = this.credentials.get(credential)
    if (known !== undefined && this.lease.fresh) return this.stateOf(known)
    return this.lookUp(credential).then((found) => this.stateOf(found))
  }

  /**
   * Changes credentials: `work` in a transaction, then this process and all others forget what they knew. Once it has
   * resolved, no process accepts what `work` has killed.
   * @throws what `work` throws; ApiError UNAVAILABLE when another process could not be told in time
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
      // A commit whose answer was lost may have happened.
      if (!(error instanceof ApiError)) this.forget([{ ...change, dead: false }])
      throw unavailableOf(error) ?? error
    }
    this.forget([change])
    await this.lease.settle(changeId)
    return result
  }

  /**
   * Tells of keys that died, in whichever process, so that connections they hold open are closed. Not told: keys and feed
   * tokens that expire.
   * @returns a function that ends the subscription
   */
  onKeyDead(listener: (deathOf: DeathOf) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  private admitKey(found: Credential | null): Caller {
    if (found === null) throw unknownKey()
    if (found.isFeedToken)
      throw new ApiError('UNAUTHENTICATED', 'a feed token opens live feeds and nothing else; send a key')
    return this.admit(found)
  }

  private admitFeed(found: Credential | null, credential: string): FeedCaller {
    if (found === null) throw unknownToken()
    const caller = this.admit(found)
    return { caller, agentId: caller.agentId, runId: found.runId, credential }
  }

  private admit(found: Credential): Caller {
    const now = this.deps.clock.now()
    const what = found.isFeedToken ? 'feed token' : 'key'
    if (found.revoked) throw new ApiError('UNAUTHENTICATED', `the ${what} is revoked`)
    if (found.expiresAt <= now) throw new ApiError('UNAUTHENTICATED', `the ${what} has expired`)
    if (found.suspended) throw new ApiError('FORBIDDEN', `no workspace: the workspace of this ${what} is suspended`)
    this.uses.note(found.caller, now)
    return found.caller
  }

  private stateOf(found: Credential | null): CredentialState {
    if (found === null || found.revoked || found.expiresAt <= this.deps.clock.now()) return 'dead'
    return found.suspended ? 'suspended' : 'alive'
  }

  /**
   * What the hash stands for, from Postgres if need be; null for no credential.
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
    throw new ApiError('UNAVAILABLE', 'keys cannot be checked at the moment; try again')
  }

  /** Many requests with a new key at once make one look-up, many new keys at once one statement. */
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
      this.tell(() => 'unknown')
      return
    }
    const touched = matcherOf(changes)
    const stale = [...this.credentials.entries()].filter(([, { caller }]) => touched(caller) !== null)
    for (const [hash] of stale) this.credentials.delete(hash)
    const deaths = changes.filter((change) => change.dead)
    if (deaths.length > 0) this.tell(matcherOf(deaths))
  }

  private tell(deathOf: DeathOf): void {
    for (const listener of this.listeners) listener(deathOf)
  }
}

/** Which of the changes touch a caller: the narrowest scope, null for none. */
function matcherOf(changes: readonly CredentialChange[]): DeathOf {
  const ids = new Set(changes.map((change) => `${change.scope}:${change.id}`))
  return ({ keyId, agentId, workspaceId }) => {
    if (ids.has(`key:${keyId}`)) return 'key'
    if (ids.has(`agent:${agentId}`)) return 'agent'
    return ids.has(`workspace:${workspaceId}`) ? 'workspace' : null
  }
}

/** Says no more than that: whoever made the text up learns nothing. */
function unknownKey(): ApiError {
  return new ApiError('UNAUTHENTICATED', 'the key is not valid')
}

function unknownToken(): ApiError {
  return new ApiError('UNAUTHENTICATED', 'the key or feed token is not valid')
}
