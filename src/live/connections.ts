import { ApiError } from '../http/errors.ts'
import type { DeathOf, KeyRing } from '../keys/key-ring.ts'
import type { FeedCaller } from '../keys/schema.ts'
import type { Log } from '../log.ts'
import { Loops } from '../ops/supervise.ts'

/** Why the service ends a connection. */
export type CloseReason = 'key_dead' | 'forbidden' | 'slow_consumer' | 'unavailable' | 'shutdown'

/** An open feed: one WebSocket or one event stream. */
export interface Connection {
  readonly caller: FeedCaller
  /** What its client has yet to take, as far as it is kept by this process. */
  readonly queuedBytes: number
  /** Ends it at once, telling the client why where the protocol allows it. */
  end(reason: CloseReason): void
  /** Called about once a second, `now` on the monotonic clock: heartbeats, and how long a queue has been full. */
  tick(now: number): void
}

/** Room for one more feed, taken before what it is to show is set going. Released, or used up by {@link Connections.admit}. */
export interface FeedRoom {
  release(): void
}

/** A call that is kept waiting: it takes no room, and ends with the key that it came with as feeds do. */
export type HeldCall = Pick<Connection, 'caller' | 'end'>

export interface ConnectionLimits {
  /** Open feeds of all workspaces. */
  readonly connections: number
  readonly connectionsPerWorkspace: number
}

export interface ConnectionsDeps {
  readonly ring: Pick<KeyRing, 'isAlive' | 'onKeyDead'>
  readonly limits: ConnectionLimits
  readonly log: Log
  /** Where the watch over open feeds is supervised together with others. */
  readonly loops?: Loops
}

const TICK_MS = 1_000
/** How often a check that a change of keys has overtaken is repeated. */
const CHECKS_MAX = 5
/** What is not known to be alive may no longer be trusted, but is not known to be dead either. */
const REASON_OF = { key: 'key_dead', agent: 'key_dead', workspace: 'forbidden', unknown: 'unavailable' } as const

/** What a call is told that ends for this reason. */
export function refusalOf(reason: CloseReason): ApiError {
  if (reason === 'key_dead') return new ApiError('UNAUTHENTICATED', 'the key or feed token is no longer good')
  if (reason === 'forbidden') return new ApiError('FORBIDDEN', 'no workspace: the workspace is suspended')
  return new ApiError('UNAVAILABLE', 'keys cannot be checked at the moment; try again')
}

/**
 * All open feeds: how many there may be, and the end of those whose key or token dies; the same end of calls that are kept
 * waiting. What is revoked ends them at once; what expires, within a second.
 */
export class Connections {
  private readonly open = new Set<Connection>()
  private readonly held = new Set<HeldCall>()
  /** Room that has been taken for feeds that are not open yet. */
  private reserved = 0
  /** Credentials that Postgres is being asked about. */
  private readonly checking = new Set<string>()
  private readonly perWorkspace = new Map<string, number>()
  private readonly endTicking: () => Promise<void>
  private readonly forgetRing: () => void
  private stopping = false

  constructor(private readonly deps: ConnectionsDeps) {
    const { log, loops = new Loops(log) } = deps
    this.endTicking = loops.repeat('open feeds', TICK_MS, async () => this.tick())
    this.forgetRing = deps.ring.onKeyDead((deathOf) => this.closeDead(deathOf))
  }

  get size(): number {
    return this.open.size
  }

  /** Of all open feeds. */
  get queuedBytes(): number {
    let bytes = 0
    for (const connection of this.open) bytes += connection.queuedBytes
    return bytes
  }

  /**
   * Opens one more with `open`, which adds it, if there is room and what it came with is still good at that very moment:
   * whatever dies later ends it.
   * @param room taken for it before
   * @throws ApiError UNAUTHENTICATED, FORBIDDEN (it died since it was looked at), UNAVAILABLE (stopping, the service is full,
   *   or keys cannot be checked), RATE_LIMITED (the workspace has enough)
   */
  admit<T>(feed: FeedCaller, open: () => T, room?: FeedRoom): Promise<T> {
    return this.whileAlive(feed, () => {
      if (room === undefined) this.checkRoom(feed.caller.workspaceId)
      room?.release()
      return open()
    })
  }

  /**
   * Keeps an eye on what a call came with that is kept waiting, if that is still good at this very moment.
   * @returns to be called when the call is answered
   * @throws ApiError UNAUTHENTICATED, FORBIDDEN, UNAVAILABLE as {@link admit}
   */
  hold(call: HeldCall): Promise<() => void> {
    return this.whileAlive(call.caller, () => {
      this.held.add(call)
      return () => void this.held.delete(call)
    })
  }

  /** @throws ApiError UNAUTHENTICATED, FORBIDDEN, UNAVAILABLE when what it came with is not known to be good at this very moment */
  checkAlive(feed: FeedCaller): Promise<void> {
    return this.whileAlive(feed, () => undefined)
  }

  /** Takes room for a feed that {@link admit} opens later. @throws ApiError UNAVAILABLE, RATE_LIMITED when there is none */
  reserve(workspaceId: string): FeedRoom {
    this.checkRoom(workspaceId)
    this.reserved++
    this.count(workspaceId, 1)
    let isReleased = false
    return {
      release: () => {
        if (isReleased) return
        isReleased = true
        this.reserved--
        this.count(workspaceId, -1)
      },
    }
  }

  /** `then` runs in the very moment in which the credential is known to be good. */
  private async whileAlive<T>({ credential }: FeedCaller, then: () => T): Promise<T> {
    for (let attempt = 0; attempt < CHECKS_MAX; attempt++) {
      const state = this.deps.ring.isAlive(credential)
      if (state === 'alive') return then()
      const known = await state
      if (known !== 'alive') throw refusalOf(known === 'dead' ? 'key_dead' : 'forbidden')
    }
    throw refusalOf('unavailable')
  }

  /** @throws ApiError UNAVAILABLE, RATE_LIMITED when there is no room for one more */
  private checkRoom(workspaceId: string): void {
    const { connections, connectionsPerWorkspace } = this.deps.limits
    if (this.stopping) throw new ApiError('UNAVAILABLE', 'the service is shutting down; connect again in a moment')
    if (this.open.size + this.reserved >= connections)
      throw new ApiError('UNAVAILABLE', 'the service has as many open feeds as it may have', { retryAfterSeconds: 10 })
    if ((this.perWorkspace.get(workspaceId) ?? 0) >= connectionsPerWorkspace) {
      throw new ApiError('RATE_LIMITED', `a workspace may have ${connectionsPerWorkspace} open feeds`, {
        retryAfterSeconds: 10,
      })
    }
  }

  add(connection: Connection): void {
    this.open.add(connection)
    this.count(connection.caller.caller.workspaceId, 1)
    // Its room was taken before the service began to stop.
    if (this.stopping) connection.end('shutdown')
  }

  remove(connection: Connection): void {
    if (this.open.delete(connection)) this.count(connection.caller.caller.workspaceId, -1)
  }

  private count(workspaceId: string, change: number): void {
    const count = (this.perWorkspace.get(workspaceId) ?? 0) + change
    if (count === 0) this.perWorkspace.delete(workspaceId)
    else this.perWorkspace.set(workspaceId, count)
  }

  /** Tells every client that the service stops, and takes no more. */
  stop(): void {
    this.stopping = true
    void this.endTicking()
    this.forgetRing()
    for (const connection of [...this.open]) connection.end('shutdown')
  }

  private closeDead(deathOf: DeathOf): void {
    for (const each of [...this.open, ...this.held]) {
      const death = deathOf(each.caller.caller)
      if (death !== null) each.end(REASON_OF[death])
    }
  }

  private tick(): void {
    const now = performance.now()
    const byCredential = new Map<string, HeldCall[]>()
    for (const connection of this.open) connection.tick(now)
    for (const each of [...this.open, ...this.held]) {
      const { credential } = each.caller
      const same = byCredential.get(credential)
      if (same === undefined) byCredential.set(credential, [each])
      else same.push(each)
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
  private async check(credential: string, connections: readonly HeldCall[]): Promise<void> {
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
