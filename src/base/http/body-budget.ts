import { Counts } from '../counts.ts'
import { ApiError } from '../errors.ts'

/** The most of the budget that one workspace may use, so that its slow or large bodies leave room for others. */
const OWNER_SHARE = 0.5

/** Bounds the memory used by request bodies, across all connections. */
export class BodyBudget {
  private readonly held = new Counts()

  /** @param limit bytes */
  constructor(private readonly limit: number) {}

  /**
   * @param owner the workspace whose share it counts against
   * @throws ApiError UNAVAILABLE above a limit
   */
  hold(owner: string, bytes: number): BodyHold {
    this.take(owner, bytes)
    return new BodyHold(this, owner, bytes)
  }

  take(owner: string, bytes: number): void {
    const total = this.held.total + bytes
    if (total > this.limit || this.held.of(owner) + bytes > this.limit * OWNER_SHARE)
      throw new ApiError(
        'UNAVAILABLE',
        `body: too many bytes of request bodies in flight in ${total > this.limit ? 'the service' : 'this workspace'}; try again`,
      )
    this.held.add(owner, bytes)
  }

  give(owner: string, bytes: number): void {
    this.held.remove(owner, bytes)
  }
}

/** Bytes of one body that count as in flight, from before the first is read until the request has been answered. */
export class BodyHold {
  constructor(
    private readonly budget: BodyBudget,
    private readonly owner: string,
    private bytes: number,
  ) {}

  /**
   * Adds bytes of the same body: it has no Content-Length, or it has been decompressed.
   * @throws ApiError UNAVAILABLE above a limit; bytes counted before stay counted
   */
  grow(bytes: number): void {
    this.budget.take(this.owner, bytes)
    this.bytes += bytes
  }

  /** Safe to call twice. */
  release(): void {
    if (this.bytes === 0) return
    this.budget.give(this.owner, this.bytes)
    this.bytes = 0
  }
}
