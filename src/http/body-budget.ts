import { ApiError } from './errors.ts'

/** Bytes of one body that count as in flight, from before the first is read until its call has been answered. */
export interface BodyHold {
  /**
   * Counts more bytes of the same body: of one whose length was not announced, or of what it inflates to.
   * @throws ApiError UNAVAILABLE past a limit; what was counted before stays
   */
  grow(bytes: number): void
  /** Safe to call twice. */
  release(): void
}

/** A workspace gets no more than this share, so that one with many slow or large bodies leaves room for the others. */
const OWNER_SHARE = 0.5

/** Bounds the memory that request bodies take, of all connections together. */
export class BodyBudget {
  private total = 0
  private readonly byOwner = new Map<string, number>()

  /** @param limit bytes (`BODY_BYTES_IN_FLIGHT`) */
  constructor(private readonly limit: number) {}

  /**
   * @param owner whose share it counts against: a workspace
   * @throws ApiError UNAVAILABLE past a limit
   */
  hold(owner: string, bytes: number): BodyHold {
    this.take(owner, bytes)
    return new Hold(this, owner, bytes)
  }

  take(owner: string, bytes: number): void {
    const total = this.total + bytes
    const owned = (this.byOwner.get(owner) ?? 0) + bytes
    if (total > this.limit || owned > this.limit * OWNER_SHARE)
      throw new ApiError(
        'UNAVAILABLE',
        `body: too many bytes of request bodies are in flight ${total > this.limit ? 'in the service' : 'in this workspace'}; try again`,
      )
    this.total = total
    this.byOwner.set(owner, owned)
  }

  give(owner: string, bytes: number): void {
    this.total -= bytes
    const owned = this.byOwner.get(owner)! - bytes
    if (owned === 0) this.byOwner.delete(owner)
    else this.byOwner.set(owner, owned)
  }
}

class Hold implements BodyHold {
  constructor(
    private readonly budget: BodyBudget,
    private readonly owner: string,
    private bytes: number,
  ) {}

  grow(bytes: number): void {
    this.budget.take(this.owner, bytes)
    this.bytes += bytes
  }

  release(): void {
    if (this.bytes === 0) return
    this.budget.give(this.owner, this.bytes)
    this.bytes = 0
  }
}
