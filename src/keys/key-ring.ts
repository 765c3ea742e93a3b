import type { Clock } from '../clock.ts'
import { ApiError } from '../http/errors.ts'
import type { Log } from '../log.ts'
import { type Batcher, createBatcher } from '../postgres/batcher.ts'
import { type Sql, type TransactionSql, unavailableOf } from '../postgres/connect.ts'
import { BoundedMap } from './bounded-map.ts'
import { type CredentialChange, CredentialLease, type LeaseDeps } from './lease.ts'
import type { Caller } from './schema.ts'
import { isWellFormedKey } from './token.ts'
import { UseLog } from './use-log.ts'

export interface KeyRingDeps extends LeaseDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly limits?: Partial<KeyRingLimits>
}

export interface KeyRingLimits {
  /** Keys remembered; some 300 bytes each. */
  readonly keys: number
  /** Well-formed texts remembered to be no key. Apart from the keys, so that nobody can flood those out. */
  readonly strangers: number
  readonly strangersForMs: number
}

const LIMITS: KeyRingLimits = { keys: 100_000, strangers: 10_000, strangersForMs: 5_000 }
/** How often a look-up that a change of credentials has overtaken is repeated. */
const LOOKUPS_MAX = 5
const TOKEN_LENGTH_MAX = 100

/** What is remembered of a key, dead or alive. */
interface Entry {
  readonly caller: Caller
  readonly revoked: boolean
  readonly suspended: boolean
  /** Unix milliseconds; infinite for a key that does not expire. */
  readonly expiresAt: number
}

/** What one request of the database found, and how old it is: the state of `generation` when it began. */
interface Found {
  readonly entry: Entry | null
  readonly generation: number
}

/**
 * Turns the text of a key into its caller, without asking Postgres about a key it has seen (contract section 2).
 *
 * What is remembered is found by the SHA-256 of the text, 0.2 µs a call: no key stands in memory longer than its request.
 * What may be trusted, and for how long, is the business of {@link CredentialLease}; every change of credentials goes
 * through {@link change}. When Postgres is away, remembered keys keep working until the lease ends, any other answers 503.
 */
export class KeyRing {
  private readonly entries: BoundedMap<string, Entry>
  /** Texts that are no key, with the time until when that is believed. */
  private readonly strangers: BoundedMap<string, number>
  private readonly lookups = new Map<string, Promise<Found>>()
  private readonly reader: Batcher<string, Entry | null>
  private readonly lease: CredentialLease
  private readonly uses: UseLog
  private readonly listeners = new Set<(isDead: (caller: Caller) => boolean) => void>()
  private readonly limits: KeyRingLimits
  /** Rises whenever something is forgotten: what was read before must not be remembered after. */
  private generation = 0

  constructor(private readonly deps: KeyRingDeps) {
    this.limits = { ...LIMITS, ...deps.limits }
    this.entries = new BoundedMap(this.limits.keys)
    this.strangers = new BoundedMap(this.limits.strangers)
    this.lease = new CredentialLease(deps, (changes) => this.forget(changes))
    this.uses = new UseLog(deps)
    this.reader = createBatcher({
      run: (hashes) => readEntries(deps.sql, hashes),
      keyOf: (hash) => hash,
      bytesOf: (hash) => hash.length,
    })
  }

  /** Joins the processes that share the database. Call before the first {@link authenticate}. */
  async start(): Promise<void> {
    await this.lease.start()
    this.uses.start()
  }

  /** Writes what is left to write and leaves. No key is accepted afterwards. */
  async stop(): Promise<void> {
    await this.uses.stop()
    await this.lease.stop()
  }

  /**
   * The caller that holds this key: at once when it is remembered, else a promise.
   * @throws ApiError UNAUTHENTICATED (unknown, revoked or expired), FORBIDDEN (suspended workspace), UNAVAILABLE (Postgres
   *   is needed and away); thrown or rejected with
   */
  authenticate(token: string): Caller | Promise<Caller> {
    if (token.length > TOKEN_LENGTH_MAX) throw unknownKey()
    const hash = Bun.SHA256.hash(token, 'base64')
    const entry = this.entries.get(hash)
    if (entry !== undefined && this.lease.fresh) return this.admit(entry)
    if (entry === undefined) {
      if (isWellFormedKey(token) === null) throw unknownKey()
      const strangerUntil = this.strangers.get(hash)
      if (strangerUntil !== undefined && this.deps.clock.now() < strangerUntil) throw unknownKey()
    }
    return this.lookUp(hash)
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
      result = (await this.deps.sql.begin(async (sql) => {
        const worked = await work(sql as unknown as TransactionSql)
        changeId = await this.lease.record(sql as unknown as TransactionSql, change)
        return worked
      })) as T
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
   * Tells of keys that died, in whichever process, so that connections they hold open are closed: `isDead` says of a
   * caller whether it is one of them. Not told: keys that expire.
   * @returns a function that ends the subscription
   */
  onKeyDead(listener: (isDead: (caller: Caller) => boolean) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  private admit(entry: Entry): Caller {
    const now = this.deps.clock.now()
    if (entry.revoked) throw new ApiError('UNAUTHENTICATED', 'the key is revoked')
    if (entry.expiresAt <= now) throw new ApiError('UNAUTHENTICATED', 'the key has expired')
    if (entry.suspended) throw new ApiError('FORBIDDEN', 'no workspace: the workspace of this key is suspended')
    this.uses.note(entry.caller, now)
    return entry.caller
  }

  private async lookUp(hash: string): Promise<Caller> {
    for (let attempt = 0; attempt < LOOKUPS_MAX; attempt++) {
      if (!this.lease.fresh) await this.lease.renew()
      const entry = this.entries.get(hash)
      if (entry !== undefined && this.lease.fresh) return this.admit(entry)
      const found = await this.read(hash)
      if (found.generation !== this.generation || !this.lease.fresh) continue
      if (found.entry === null) {
        this.strangers.set(hash, this.deps.clock.now() + this.limits.strangersForMs)
        throw unknownKey()
      }
      this.entries.set(hash, found.entry)
      return this.admit(found.entry)
    }
    throw new ApiError('UNAVAILABLE', 'keys cannot be checked at the moment; try again')
  }

  /** Many requests with a new key at once make one look-up, many new keys at once one statement. */
  private read(hash: string): Promise<Found> {
    const running = this.lookups.get(hash)
    if (running !== undefined) return running
    const generation = this.generation
    const lookup = this.reader
      .submit(hash)
      .then((entry) => ({ entry, generation }))
      .catch((error: unknown) => {
        throw unavailableOf(error) ?? error
      })
      .finally(() => this.lookups.delete(hash))
    this.lookups.set(hash, lookup)
    return lookup
  }

  private forget(changes: readonly CredentialChange[] | 'everything'): void {
    this.generation++
    if (changes === 'everything') {
      this.entries.clear()
      this.tell(() => true)
      return
    }
    const touched = matcherOf(changes)
    this.entries.deleteWhere((entry) => touched(entry.caller))
    const deaths = changes.filter((change) => change.dead)
    if (deaths.length > 0) this.tell(matcherOf(deaths))
  }

  private tell(isDead: (caller: Caller) => boolean): void {
    for (const listener of this.listeners) listener(isDead)
  }
}

function matcherOf(changes: readonly CredentialChange[]): (caller: Caller) => boolean {
  const ids = new Set(changes.map((change) => `${change.scope}:${change.id}`))
  return (caller) =>
    ids.has(`key:${caller.keyId}`) || ids.has(`workspace:${caller.workspaceId}`) || ids.has(`agent:${caller.agentId}`)
}

/** Says no more than that: whoever made the text up learns nothing. */
function unknownKey(): ApiError {
  return new ApiError('UNAUTHENTICATED', 'the key is not valid')
}

interface KeyRow {
  readonly hash: string
  readonly key_id: string
  readonly type: Caller['type']
  readonly workspace_id: string
  readonly agent_id: string | null
  readonly revoked: boolean
  readonly suspended: boolean
  readonly expires_at: Date | null
}

/** The one look-up without a workspace in its predicate: the key is what tells the workspace. */
async function readEntries(sql: Sql, hashes: readonly string[]): Promise<(Entry | null)[]> {
  const rows = await sql<KeyRow[]>`
    select encode(hash, 'base64') as hash, key_id, type, workspace_id, agent_id, expires_at,
      revoked_at is not null as revoked, workspaces.status = 'suspended' as suspended
    from api_keys join workspaces using (workspace_id)
    where hash in (select decode(text, 'base64') from unnest(string_to_array(${hashes.join(' ')}, ' ')) as text)`
  const found = new Map(rows.map((row) => [row.hash, toEntry(row)]))
  return hashes.map((hash) => found.get(hash) ?? null)
}

function toEntry(row: KeyRow): Entry {
  return {
    caller: Object.freeze({
      keyId: row.key_id,
      type: row.type,
      workspaceId: row.workspace_id,
      agentId: row.agent_id,
    }),
    revoked: row.revoked,
    suspended: row.suspended,
    expiresAt: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
  }
}
