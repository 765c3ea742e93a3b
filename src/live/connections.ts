import { ApiError } from '../http/errors.ts'
import type { DeathOf, KeyRing } from '../keys/key-ring.ts'
import type { FeedCaller } from '../keys/schema.ts'
import type { Log } from '../log.ts'

/** Why the service ends a connection. */
export type CloseReason = 'key_dead' | 'forbidden' | 'slow_consumer' | 'unavailable' | 'shutdown'

/** An open feed: one WebSocket or one event stream. */
export interface Connection {
  readonly caller: FeedCaller
  /** Ends it at once, telling the client why where the protocol allows it. */
  end(reason: CloseReason): void
  /** Called about once a second, `now` on the monotonic clock: heartbeats, and how long a queue has been full. */
  tick(now: number): void
}

export interface ConnectionLimits {
  /** Open feeds of all workspaces. */
  readonly connections: number
  readonly connectionsPerWorkspace: number
}

export interface ConnectionsDeps {
  readonly ring: Pick<KeyRing, 'isAlive' | 'onKeyDead'>
  readonly limits: ConnectionLimits
  readonly log: Log
}

const TICK_MS = 1_000
/** How often a check that a change of keys has overtaken is repeated. */
const CHECKS_MAX = 5
/** What is not known to be alive may no longer be trusted, but is not known to be dead either. */
const REASON_OF = { key: 'key_dead', agent: 'key_dead', workspace: 'forbidden', unknown: 'unavailable' } as const

/**
 * All open feeds: how many there may be, and the end of those whose key or token dies. What is revoked ends them at once;
 * what expires, within a second.
 */
export class Connections {
  private readonly open = new Set<Connection>()
  /** Credentials that Postgres is being asked about. */
  private readonly checking = new Set<string>()
  private readonly perWorkspace = new Map<string, number>()
  private readonly timer: ReturnType<typeof setInterval>
  private readonly forgetRing: () => void
  private stopping = false

  constructor(private readonly deps: ConnectionsDeps) {
    this.timer = setInterval(() => this.tick(), TICK_MS)
    this.forgetRing = deps.ring.onKeyDead((deathOf) => this.closeDead(deathOf))
  }

  get size(): number {
    return this.open.size
  }

  /**
   * Opens one more with `open`, which adds it, if there is room and what it came with is still good at that very moment:
   * whatever dies later ends it.
   * @throws ApiError UNAUTHENTICATED, FORBIDDEN (it died since it was looked at), UNAVAILABLE (stopping, the service is full,
   *   or keys cannot be checked), RATE_LIMITED (the workspace has enough)
   */
  async admit<T>({ caller, credential }: FeedCaller, open: () => T): Promise<T> {
    for (let attempt = 0; attempt < CHECKS_MAX; attempt++) {
      const state = this.deps.ring.isAlive(credential)
      if (state === 'alive') {
        this.checkRoom(caller.workspaceId)
        return open()
      }
      const known = await state
      if (known === 'dead') throw new ApiError('UNAUTHENTICATED', 'the key or feed token is no longer good')
      if (known === 'suspended') throw new ApiError('FORBIDDEN', 'no workspace: the workspace is suspended')
    }
    throw new ApiError('UNAVAILABLE', 'keys cannot be checked at the moment; try again')
  }

  /** @throws ApiError UNAVAILABLE, RATE_LIMITED when there is no room for one more */
  checkRoom(workspaceId: string): void {
    const { connections, connectionsPerWorkspace } = this.deps.limits
    if (this.stopping) throw new ApiError('UNAVAILABLE', 'the service is shutting down; connect again in a moment')
    if (this.open.size >= connections)
      throw new ApiError('UNAVAILABLE', 'the service has as many open feeds as it may have', { retryAfterSeconds: 10 })
    if ((this.perWorkspace.get(workspaceId) ?? 0) >= connectionsPerWorkspace) {
      throw new ApiError('RATE_LIMITED', `a workspace may have ${connectionsPerWorkspace} open feeds`, {
        retryAfterSeconds: 10,
      })
    }
  }

  add(connection: Connection): void {
    const { workspaceId } = connection.caller.caller
    this.open.add(connection)
    this.perWorkspace.set(workspaceId, (this.perWorkspace.get(workspaceId) ?? 0) + 1)
  }

  remove(connection: Connection): void {
    if (!this.open.delete(connection)) return
    const { workspaceId } = connection.caller.caller
    const left = (this.perWorkspace.get(workspaceId) ?? 1) - 1
    if (left === 0) this.perWorkspace.delete(workspaceId)
    else this.perWorkspace.set(workspaceId, left)
  }

  /** Tells every client that the service stops, and takes no more. */
  stop(): void {
    this.stopping = true
    clearInterval(this.timer)
    this.forgetRing()
    for (const connection of [...this.open]) connection.end('shutdown')
  }

  private closeDead(deathOf: DeathOf): void {
    for (const connection of [...this.open]) {
      const death = deathOf(connection.caller.caller)
      if (death !== null) connection.end(REASON_OF[death])
    }
  }

  private tick(): void {
    const now = performance.now()
    const byCredential = new Map<string, Connection[]>()
    for (const connection of this.open) {
      connection.tick(now)
      const { credential } = connection.caller
      const same = byCredential.get(credential)
      if (same === undefined) byCredential.set(credential, [connection])
      else same.push(connection)
    }
    for (const [credential, connections] of byCredential) {
      if (this.checking.has(credential)) continue
      this.checking.add(credential)
      void this.check(credential, connections).finally(() => this.checking.delete(credential))
    }
  }

  /**
   * Ends the connections of a credential that is no longer good. When that cannot be told, because Postgres is away and
   * the lease over, the key may have been revoked meanwhile: they end too, and may come back.
   */
  private async check(credential: string, connections: readonly Connection[]): Promise<void> {
    const reason = await this.reasonToEnd(credential)
    if (reason !== null) for (const connection of connections) connection.end(reason)
  }

  private async reasonToEnd(credential: string): Promise<CloseReason | null> {
    try {
      const state = await this.deps.ring.isAlive(credential)
      if (state === 'alive') return null
      return state === 'dead' ? 'key_dead' : 'forbidden'
    } catch (error) {
      if (!(error instanceof ApiError)) this.deps.log.warn('live feeds: a key could not be checked', { error })
      return 'unavailable'
    }
  }
}
