import { withTimeout } from '../../base/abort.ts'
import { ApiError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { type Loop, Loops } from '../../base/loops.ts'
import type { Sql, TransactionSql } from '../../stores/postgres/connect.ts'
import { isGone, Liveness, type Sign } from '../../stores/postgres/liveness.ts'

/**
 * A change of credentials, after which caches must read them again. Its scope is one key or sign-in, the keys of an agent,
 * the sign-ins of a person, those and the keys that the person made (`maker`), or all of a workspace.
 */
export interface CredentialChange {
  readonly scope: 'key' | 'agent' | 'workspace' | 'person' | 'maker'
  readonly id: string
  /** Whether the keys in scope are no longer valid, so that their open connections must be closed, too. */
  readonly invalidates: boolean
}

export interface LeaseDeps {
  /**
   * A separate client with one connection, so that a busy pool cannot delay the lease. Closed by its owner.
   */
  readonly heartbeat: Sql
  readonly log: Log
  readonly instanceId: string
  /**
   * No other process of the service can use this database (the embedded one, in a locked directory): the lease never ends.
   * Commands alongside the service (`bun run keys`) may still change credentials; they wait until the service has applied the
   * change.
   */
  readonly exclusive: boolean
  /**
   * This is a node of a cluster: its lease is short even while it is alone. What it executes is taken over when the lease has
   * ended, and the first node is alone only until the next one starts.
   */
  readonly isNode?: boolean
  /**
   * The previous instance on the same data directory. Its lock has been released, so no process needs to wait for its
   * lease.
   */
  readonly supersedes?: string | undefined
  readonly times?: Partial<LeaseTimes>
  /** Supervises the renewals. */
  readonly loops?: Loops
}

/** All in milliseconds. */
const TIMES = {
  /** Duration of the lease while other processes share the database: the longest that a revocation waits for this one. */
  sharedLeaseMs: 1_500,
  /** Duration while there are none: the longest outage of Postgres during which cached keys keep working. */
  aloneLeaseMs: 30_000,
  sharedBeatMs: 250,
  aloneBeatMs: 1_000,
  /**
   * After this time a revocation that other processes have not confirmed answers 503. It is stored, but may not be
   * effective everywhere yet.
   */
  settleMaxMs: 8_000,
}
export type LeaseTimes = typeof TIMES
/** A round that takes longer is abandoned, and a new one started. */
const BEAT_TIMEOUT_MS = 5_000
const SETTLE_POLL_MS = 20
/** Rows of processes that have been gone for this long are deleted. */
const FORGET_MS = 3_600_000

/**
 * The right of one process to trust its cache of keys while several processes share a database.
 *
 * The rule (docs/keys.md#revocation): a process trusts its cache only until its lease ends. It renews the lease
 * with two statements. The first writes to its row in `instances` how long the lease will last at most. The second, sent
 * after the first has committed, reads the changes of credentials since the last round. A process that changes credentials
 * records the change in the same transaction, then waits until every other row has applied the change or its lease is
 * over. If a row was written too late for the waiting process to see it, its second statement runs after the
 * change, and sees it.
 *
 * A process that shares its database has a short lease, so that a network partition delays a revocation by a second and a
 * half at most. A process that is alone has a long lease, so that ingest continues while Postgres restarts. If it is cut
 * off and another process joins meanwhile, revocations there answer 503 until the long lease has ended. The lease is
 * measured on the monotonic clock here, from before it is written, and on that of each other process, from when it has read
 * it (`stores/postgres/liveness.ts`).
 */
export class CredentialLease {
  private readonly others = new Liveness()
  /** On the monotonic clock. */
  private until: number
  private applied = 0
  /** Changes made here. They were applied at once; applied again later they would end what has been opened since. */
  private readonly own = new Set<number>()
  private round = 0
  private shared = false
  private renewing: Promise<void> | undefined
  private timer: Timer | undefined
  private failing = false
  private stopped = false
  private readonly times: LeaseTimes
  private readonly loop: Loop

  /**
   * @param onChanges called with changes of other processes, in order; `'everything'` if this process was removed from
   *   `instances` and cannot know what changed
   */
  constructor(
    private readonly deps: LeaseDeps,
    private readonly onChanges: (changes: readonly CredentialChange[] | 'everything') => void,
  ) {
    const { sharedLeaseMs: aloneLeaseMs, sharedBeatMs: aloneBeatMs } = TIMES
    this.times = { ...TIMES, ...(deps.isNode && { aloneLeaseMs, aloneBeatMs }), ...deps.times }
    this.loop = (deps.loops ?? new Loops(deps.log)).add('key lease')
    this.until = deps.exclusive ? Number.POSITIVE_INFINITY : 0
  }

  /** Whether the lease is held now, so that the cache may be trusted. */
  get fresh(): boolean {
    return performance.now() < this.until
  }

  /** Registers this process. @throws if Postgres cannot be reached */
  async start(): Promise<void> {
    const { heartbeat: sql, exclusive, supersedes } = this.deps
    if (exclusive) await sql`delete from instances`
    else if (supersedes !== undefined) await sql`delete from instances where instance_id = ${supersedes}`
    await this.register()
    if (!exclusive) await this.renew()
    this.schedule()
  }

  /** Releases the lease, so that no process waits for it. */
  async stop(): Promise<void> {
    this.stopped = true
    clearTimeout(this.timer)
    this.round++
    this.until = 0
    await this.deps.heartbeat`delete from instances where instance_id = ${this.deps.instanceId}`.catch(() => {})
  }

  /**
   * Renews the lease now. Concurrent calls share one round.
   * @throws ApiError UNAVAILABLE
   */
  renew(): Promise<void> {
    if (this.stopped)
      return Promise.reject(new ApiError('UNAVAILABLE', 'the service is stopping', { reason: 'shutting_down' }))
    this.renewing ??= withTimeout(this.beat(++this.round), BEAT_TIMEOUT_MS)
      .catch((error: unknown) => {
        throw new ApiError('UNAVAILABLE', 'keys cannot be checked right now; try again', { cause: error })
      })
      .finally(() => {
        this.renewing = undefined
      })
    return this.renewing
  }

  /**
   * Records a change, as the last statement of the transaction that makes it.
   * @returns the argument of {@link settle}
   */
  async record(sql: TransactionSql, change: CredentialChange): Promise<number> {
    if (this.deps.exclusive) return 0
    // Ids must become visible in order, or a reader would skip a change that commits after a newer one.
    await sql`lock table credential_changes in exclusive mode`
    await sql`delete from credential_changes where change_id <= (select min(applied) from instances)`
    const [row] = await sql<{ change_id: number }[]>`
      insert into credential_changes (scope, id, invalidates) values (${change.scope}, ${change.id}, ${change.invalidates})
      returning change_id`
    this.own.add(row!.change_id)
    return row!.change_id
  }

  /** The outcome of a change is unknown: it is applied when it is read, like those of other processes. */
  forgetOwn(changeId: number): void {
    this.own.delete(changeId)
  }

  /**
   * Resolves once no other process accepts a key that the committed change has revoked.
   * @throws ApiError UNAVAILABLE if a process has not confirmed in time; the change itself is stored
   */
  async settle(changeId: number): Promise<void> {
    if (this.deps.exclusive) return
    const deadline = performance.now() + this.times.settleMaxMs
    for (;;) {
      const others = await this.lookAtOthers()
      if (others.every((other) => other.applied >= changeId || this.others.isGone(other.instanceId))) return
      if (performance.now() > deadline)
        throw new ApiError(
          'UNAVAILABLE',
          'the change is stored, but a process of the service has not confirmed it yet; retry to make sure',
          { reason: 'not_confirmed', retryAfterSeconds: 5 },
        )
      await Bun.sleep(SETTLE_POLL_MS)
    }
  }

  /** The other processes whose lease is over, as of the last look. */
  gone(): readonly Sign[] {
    return this.others.gone()
  }

  /** Reads the rows of the other processes. {@link gone} is up to date afterwards. */
  async lookAtOthers() {
    const { heartbeat: sql, instanceId } = this.deps
    const others = await sql<(Sign & { applied: number })[]>`
      select instance_id as "instanceId", beats, lease_ms as "leaseMs", applied from instances
      where instance_id <> ${instanceId}`
    this.others.look(others)
    return others
  }

  /** A round of a process whose lease never ends: applies changes made by commands, and confirms them. */
  private async followChanges(): Promise<void> {
    const { heartbeat: sql, instanceId } = this.deps
    for (;;) {
      const changes = await this.readChanges()
      const applied = changes.at(-1)?.change_id
      if (applied === undefined) return
      this.onChanges(changes)
      this.applied = applied
      await sql`update instances set applied = ${applied} where instance_id = ${instanceId}`
    }
  }

  private readChanges() {
    return this.deps.heartbeat<(CredentialChange & { change_id: number })[]>`
      select change_id, scope, id, invalidates from credential_changes where change_id > ${this.applied} order by change_id`
  }

  private async beat(round: number): Promise<void> {
    const { heartbeat: sql } = this.deps
    let news = true
    while (news) {
      const start = performance.now()
      const granted = await this.announce(start)
      if (granted === undefined) {
        await this.register()
        this.onChanges('everything')
        continue
      }
      const forgotten = this.others.gone(FORGET_MS)
      if (forgotten.length > 0) await sql`delete from instances where ${isGone(sql, 'instances', forgotten)}`
      const changes = await this.readChanges()
      // This round was abandoned: the row may grant less by now.
      if (round !== this.round) return
      const others = changes.filter(({ change_id }) => !this.own.delete(change_id))
      if (others.length > 0) this.onChanges(others)
      this.applied = changes.at(-1)?.change_id ?? this.applied
      this.shared = granted.shared
      this.until = start + (granted.shared ? this.times.sharedLeaseMs : this.times.aloneLeaseMs)
      // Another process may be waiting for confirmation of these changes.
      news = changes.length > 0
    }
  }

  /**
   * Writes how long this process may trust its cache: the duration of the lease that it asks for, or the rest of the one it
   * holds if that is longer. Undefined if its row has been removed.
   */
  private async announce(now: number): Promise<{ shared: boolean } | undefined> {
    const { heartbeat: sql, instanceId } = this.deps
    const held = Math.max(0, this.until - now)
    const rows = await sql<({ shared: boolean } & (Sign | Record<keyof Sign, null>))[]>`
      with others as (
        select instance_id, beats, lease_ms from instances where instance_id <> ${instanceId}
      ), own as (
        update instances set seen_at = now(), applied = ${this.applied}, beats = instances.beats + 1,
          lease_ms = ceil(greatest(${held}::float8,
            case when shared then ${this.times.sharedLeaseMs}::float8 else ${this.times.aloneLeaseMs} end))
        from (select exists (select from others where not ${isGone(sql, 'others', this.gone())}) as shared) as s
        where instance_id = ${instanceId} returning shared
      )
      select shared, o.instance_id as "instanceId", o.beats, o.lease_ms as "leaseMs" from own left join others o on true`
    this.others.look(rows.filter((row) => row.instanceId !== null))
    return rows[0]
  }

  private async register(): Promise<void> {
    const { heartbeat: sql, instanceId, exclusive } = this.deps
    const [row] = await sql<{ applied: number }[]>`
      insert into instances (instance_id, started_at, seen_at, beats, lease_ms, applied)
      select ${instanceId}, now(), now(), floor(random() * 1e12), ${exclusive ? null : 0}::bigint, coalesce(max(change_id), 0)
      from credential_changes
      returning applied`
    this.applied = row!.applied
    this.own.clear()
  }

  private schedule(): void {
    const { sharedBeatMs, aloneBeatMs } = this.times
    const { exclusive } = this.deps
    const delay = exclusive || this.shared || this.failing ? sharedBeatMs : aloneBeatMs
    this.timer = setTimeout(() => {
      void (exclusive ? withTimeout(this.followChanges(), BEAT_TIMEOUT_MS) : this.renew())
        .then(() => {
          this.failing = false
          this.loop.succeeded()
        })
        .catch((error: unknown) => {
          this.failing = true
          this.loop.failed(error)
        })
        .finally(() => {
          if (!this.stopped) this.schedule()
        })
    }, delay)
    this.timer.unref()
  }
}
