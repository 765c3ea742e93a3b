import { Counts } from './counts.ts'
import { ApiError } from './errors.ts'

/** Limits how many calls of one kind a workspace may have in progress. */
export class WorkspaceSlots {
  private readonly taken = new Counts()

  /**
   * @param atOnce slots per workspace
   * @param what the calls, for the error: `query`, in the plural `queries`
   */
  constructor(
    private readonly atOnce: number,
    private readonly what: { readonly one: string; readonly many: string },
  ) {}

  /**
   * Takes a slot.
   * @returns releases the slot; further calls do nothing
   * @throws ApiError RATE_LIMITED when all slots are taken
   */
  take(workspaceId: string): () => void {
    const others = this.taken.of(workspaceId)
    if (others >= this.atOnce) {
      const { one, many } = this.what
      const problem = `${one} concurrency limit reached: ${others} ${many} of this workspace are running; retry when one finishes`
      throw new ApiError('RATE_LIMITED', problem, { reason: 'too_many_at_once', retryAfterSeconds: 1 })
    }
    return this.taken.hold(workspaceId)
  }
}
