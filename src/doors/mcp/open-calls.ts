import { Counts } from '../../base/counts.ts'
import { ApiError } from '../../base/errors.ts'
import { type CloseReason, type Connections, refusalOf } from '../../feeds/live/connections.ts'
import type { KeyRing } from '../../tenants/keys/key-ring.ts'
import type { Caller } from '../../tenants/keys/schema.ts'

interface OpenCallsDeps {
  readonly ring: Pick<KeyRing, 'authenticateFeed'>
  readonly connections: Pick<Connections, 'hold'>
  readonly limits?: Partial<typeof OPEN_CALLS>
}

/** Calls that may be open at a time. */
const OPEN_CALLS = { perKey: 64, perWorkspace: 256 }
/** A short outage of the database must not end calls: they go on until their key is known to be invalid. */
const PASSING: CloseReason = 'unavailable'

/** A call that is being answered. Close it when its response is complete. */
export interface OpenCall {
  /** Aborted when the client disconnects, or the key is no longer valid. */
  readonly signal: AbortSignal
  /**
   * Resolves when the signal is aborted: with the error for the client if the key has become invalid, with null if the client
   * has disconnected. The answer may then never come.
   */
  readonly ended: Promise<ApiError | null>
  close(): void
}

/** The calls that are open: limited per key and workspace, and ended when their key becomes invalid. */
export class OpenCalls {
  private readonly counts = new Counts()

  constructor(private readonly deps: OpenCallsDeps) {}

  /** @throws ApiError RATE_LIMITED; UNAUTHENTICATED, FORBIDDEN, UNAVAILABLE if the key is not valid now */
  async open({ keyId, workspaceId }: Caller, key: string, disconnected: AbortSignal): Promise<OpenCall> {
    const { perKey, perWorkspace } = { ...OPEN_CALLS, ...this.deps.limits }
    const free = this.take([
      [keyId, perKey, 'key'],
      [workspaceId, perWorkspace, 'workspace'],
    ])
    const ending = new AbortController()
    const ended = Promise.withResolvers<ApiError | null>()
    const endWith = (error: ApiError | null) => {
      ended.resolve(error)
      ending.abort()
    }
    const end = (reason: CloseReason) => {
      if (reason !== PASSING) endWith(refusalOf(reason))
    }
    const leave = () => endWith(null)
    try {
      const release = await this.deps.connections.hold({ caller: await this.deps.ring.authenticateFeed(key), end })
      disconnected.addEventListener('abort', leave, { once: true })
      if (disconnected.aborted) leave()
      return {
        signal: ending.signal,
        ended: ended.promise,
        close: () => {
          disconnected.removeEventListener('abort', leave)
          release()
          free()
        },
      }
    } catch (error) {
      free()
      throw error
    }
  }

  private take(needed: ReadonlyArray<readonly [id: string, max: number, what: string]>): () => void {
    for (const [id, max, what] of needed)
      if (this.counts.of(id) >= max)
        throw new ApiError('RATE_LIMITED', `this ${what} has ${max} open calls; retry when one of them is answered`, {
          reason: 'too_many_at_once',
          retryAfterSeconds: 1,
        })
    const releases = needed.map(([id]) => this.counts.hold(id))
    return () => {
      for (const release of releases) release()
    }
  }
}
