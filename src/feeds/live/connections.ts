import { Counts } from '../../base/counts.ts'
import { ApiError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { Loops } from '../../base/loops.ts'
import type { InvalidReasonOf, KeyRing } from '../../tenants/keys/key-ring.ts'
import type { FeedCaller } from '../../tenants/keys/schema.ts'

/** Why the service ends a connection. */
export type CloseReason = 'key_invalid' | 'forbidden' | 'slow_consumer' | 'unavailable' | 'shutdown'

/** An open feed: one WebSocket or one event stream. */
export interface Connection {
  readonly caller: FeedCaller
  /** Bytes queued in this process for its client. */
  readonly queuedBytes: number
  /** Ends it immediately and tells the client why, where the protocol allows it. */
  end(reason: CloseReason): void
  /** Called about once a second, for heartbeats and slow-consumer checks. @param now on the monotonic clock */
  tick(now: number): void
}

/**
 * A reservation for one feed, made before its work starts. Either released or consumed by {@link Connections.admit}.
 */
export interface FeedReservation {
  release(): void
}

/** A waiting call. It does not count as a feed, but ends with its key as feeds do. */
type HeldCall = Pick<Connection, 'caller' | 'end'>

interface ConnectionsDeps {
  readonly ring: Pick<KeyRing, 'credentialState' | 'onKeysInvalidated'>
  /** Maxima of open feeds: of all workspaces together, and of each. */
  readonly limits: { readonly connections: number; readonly connectionsPerWorkspace: number }
  readonly log: Log
  /** Supervises the periodic check of open feeds. */
  readonly loops?: Loops
}

/** How often {@link Connection.tick} is called. */
export const TICK_MS = 1_000
/** Attempts at a key check that a concurrent key change invalidates. */
const CHECKS_MAX = 5
/** `unknown`: the key can no longer be trusted, but may be valid, so the client should try again later. */
const REASON_OF = {
  key: 'key_invalid',
  agent: 'key_invalid',
  person: 'key_invalid',
  workspace: 'forbidden',
  unknown: 'unavailable',
} as const

/** The error for a call that ends for this reason. */
export function refusalOf(reason: CloseReason): ApiError {
  if (reason === 'key_invalid')
    return new ApiError('UNAUTHENTICATED', 'the key or feed token is no longer valid', { reason: 'key_invalid' })
  if (reason === 'forbidden') return new ApiError('FORBIDDEN', 'the workspace is suspended', { reason: 'no_workspace' })
  return new ApiError('UNAVAILABLE', 'keys cannot be checked right now; try again')
}

/**
 * All open feeds. Enforces connection limits, and ends feeds and waiting calls whose key or token is no longer valid:
 * immediately after a revocation, within a second after expiry.
 */
export class Connections {
  private readonly open = new Set<Connection>()
  private readonly held = new Set<HeldCall>()
  /** Reservations: for feeds that are not open yet, and for connections between processes. */
  private reserved = 0
  /** Credentials with a check in progress. */
  private readonly checking = new Set<string>()
  private readonly perWorkspace = new Counts()
  private readonly endTicking: () => Promise<void>
  private readonly forgetRing: () => void
  private stopping = false

  constructor(private readonly deps: ConnectionsDeps) {
    const { log, loops = new Loops(log) } = deps
    this.endTicking = loops.repeat('open feeds', TICK_MS, async () => this.tick())
    this.forgetRing = deps.ring.onKeysInvalidated((reasonOf) => this.closeInvalid(reasonOf))
  }

  get size(): number {
    return this.open.size
  }

  /** Bytes queued for all open feeds. */
  get queuedBytes(): number {
    let bytes = 0
    for (const connection of this.open) bytes += connection.queuedBytes
    return bytes
  }

  /**
   * Opens a feed with `open`, which must add it, if there is room and its credential is valid at that very moment. If the
   * credential becomes invalid later, the feed ends.
   * @param room a reservation made for it before
   * @throws ApiError UNAUTHENTICATED, FORBIDDEN (the credential is no longer valid), UNAVAILABLE (the service is stopping or
   *   full, or keys cannot be checked), RATE_LIMITED (the workspace has reached its limit)
   */
  admit<T>(feed: FeedCaller, open: () => T, room?: FeedReservation): Promise<T> {
    return this.whileAlive(feed, () => {
      if (room === undefined) this.checkRoom(feed.caller.workspaceId)
      room?.release()
      return open()
    })
  }

  /**
   * Registers a waiting call, if its credential is valid now. `call.end` is called if that changes.
   * @returns a function to call once the call is answered
   * @throws ApiError UNAUTHENTICATED, FORBIDDEN, UNAVAILABLE as {@link admit}
   */
  hold(call: HeldCall): Promise<() => void> {
    return this.whileAlive(call.caller, () => {
      this.held.add(call)
      return () => void this.held.delete(call)
    })
  }

  /** @throws ApiError UNAUTHENTICATED, FORBIDDEN, UNAVAILABLE unless the credential is known to be valid now */
  checkAlive(feed: FeedCaller): Promise<void> {
    return this.whileAlive(feed, () => undefined)
  }

  /** Reserves room for a feed that {@link admit} opens later. @throws ApiError UNAVAILABLE, RATE_LIMITED when there is none */
  reserve(workspaceId: string): FeedReservation {
    this.checkRoom(workspaceId)
    return this.reserveRoom(this.perWorkspace.hold(workspaceId))
  }

  /** Reserves room for a connection between processes of the service, which is no workspace's feed; null when there is none. */
  reserveForPeer(): FeedReservation | null {
    return this.hasRoom && !this.stopping ? this.reserveRoom() : null
  }

  private reserveRoom(onRelease: () => void = () => {}): FeedReservation {
    this.reserved++
    let isReleased = false
    return {
      release: () => {
        if (isReleased) return
        isReleased = true
        this.reserved--
        onRelease()
      },
    }
  }

  private get hasRoom(): boolean {
    return this.open.size + this.reserved < this.deps.limits.connections
  }

  /** Runs `then` in the same tick in which the credential is known to be valid. */
  private async whileAlive<T>({ credential }: FeedCaller, then: () => T): Promise<T> {
    for (let attempt = 0; attempt < CHECKS_MAX; attempt++) {
      const state = this.deps.ring.credentialState(credential)
      if (state === 'valid') return then()
      const known = await state
      if (known !== 'valid') throw refusalOf(known === 'invalid' ? 'key_invalid' : 'forbidden')
    }
    throw refusalOf('unavailable')
  }

  /** @throws ApiError UNAVAILABLE, RATE_LIMITED when there is no room for one more */
  private checkRoom(workspaceId: string): void {
    const { connectionsPerWorkspace } = this.deps.limits
    if (this.stopping)
      throw new ApiError('UNAVAILABLE', 'the service is shutting down; connect again in a moment', {
        reason: 'shutting_down',
      })
    if (!this.hasRoom)
      throw new ApiError('UNAVAILABLE', 'the service has reached its limit of open feeds', { retryAfterSeconds: 10 })
    if (this.perWorkspace.of(workspaceId) >= connectionsPerWorkspace) {
      throw new ApiError('RATE_LIMITED', `a workspace may have ${connectionsPerWorkspace} open feeds`, {
        reason: 'too_many_at_once',
        retryAfterSeconds: 10,
      })
    }
  }

  add(connection: Connection): void {
    this.open.add(connection)
    this.perWorkspace.add(connection.caller.caller.workspaceId)
    // Its room was taken before the service began to stop.
    if (this.stopping) connection.end('shutdown')
  }

  remove(connection: Connection): void {
    if (this.open.delete(connection)) this.perWorkspace.remove(connection.caller.caller.workspaceId)
  }

  /** Ends every feed and tells its client that the service is shutting down; no further feed is admitted. */
  stop(): void {
    this.stopping = true
    void this.endTicking()
    this.forgetRing()
    for (const connection of [...this.open]) connection.end('shutdown')
  }

  private closeInvalid(reasonOf: InvalidReasonOf): void {
    for (const each of [...this.open, ...this.held]) {
      const reason = reasonOf(each.caller.caller)
      if (reason !== null) each.end(REASON_OF[reason])
    }
  }

  private tick(): void {
    const now = performance.now()
    for (const connection of this.open) connection.tick(now)
    const byCredential = Map.groupBy([...this.open, ...this.held], ({ caller }) => caller.credential)
    for (const [credential, connections] of byCredential) {
      if (this.checking.has(credential)) continue
      this.checking.add(credential)
      void this.reasonToEnd(credential)
        .then((reason) => {
          if (reason !== null) for (const connection of connections) connection.end(reason)
        })
        .finally(() => this.checking.delete(credential))
    }
  }

  /**
   * Why the connections of a credential end; null if it is valid. If that is unknown, because Postgres is unavailable and
   * the lease has expired, the key may have been revoked: the connections end too, and clients may reconnect later.
   */
  private async reasonToEnd(credential: string): Promise<CloseReason | null> {
    try {
      const state = await this.deps.ring.credentialState(credential)
      if (state === 'valid') return null
      return state === 'invalid' ? 'key_invalid' : 'forbidden'
    } catch (error) {
      if (!(error instanceof ApiError)) this.deps.log.warn('live feeds: a key could not be checked', { error })
      return 'unavailable'
    }
  }
}
