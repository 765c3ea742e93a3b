import { monotonicFactory } from 'ulid'

/** Mints identifiers. A call with an `Idempotency-Key` gets one that mints the same ids again on a retry. */
export interface Mint {
  /** UUID version 7, lower case. */
  uuid(): string
  /** ULID, increasing within this process. */
  ulid(): string
}

/** Identifies a run: callers choose run_ids, which are unique only within a workspace. */
export interface RunIdentity {
  readonly workspaceId: string
  readonly runId: string
}

/** A {@link RunIdentity} as the key of a map. */
export function runKey(workspaceId: string, runId: string): string {
  return workspaceId + runId
}

const nextUlid = monotonicFactory()

export const mint: Mint = {
  uuid: () => Bun.randomUUIDv7(),
  ulid: () => nextUlid(),
}
