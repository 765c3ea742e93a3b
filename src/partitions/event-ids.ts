import type { RunIdentity, RunRef } from '../base/ids.ts'

/** Which events of a call are new. */
export interface Claim {
  /** The ids as the caller gave them. */
  readonly ids: readonly (string | undefined)[]
  /** For each event, whether to store it. */
  readonly fresh: readonly boolean[]
  readonly duplicates: number
}

/**
 * Appends the fresh events of a call. Runs in the same tick as the claim, so that a repeat of the call never finds ids
 * without the append that it must wait for. It does not throw: what goes wrong is a rejection.
 */
export type Append<Result> = (claim: Claim) => Promise<Result>

export interface Claimed<Result> extends Claim {
  /**
   * What the append resolves with, once all events of the call are durable: the fresh ones and the originals of the
   * duplicates. Rejects when one of them has failed; then the ids of the failed one are free again.
   */
  readonly durable: Promise<Result>
}

/** Detects duplicate events by the ids that callers gave them. */
export interface EventIds {
  /** Records a run that this process created: it has no events yet. */
  runStarted(run: RunIdentity): void
  /**
   * Claims the ids of one call and appends its fresh events. The second occurrence of an id within the call is a duplicate;
   * events without an id are always fresh. Appends at once when the run is in memory.
   */
  claim<Result>(
    run: RunRef,
    ids: readonly (string | undefined)[],
    append: Append<Result>,
  ): Claimed<Result> | Promise<Claimed<Result>>
}
