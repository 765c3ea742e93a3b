import { monotonicFactory } from 'ulid'

/** Mints identifiers. A call with an `Idempotency-Key` gets one that mints the same ids again when it is repeated. */
export interface Mint {
  /** UUID version 7, lower case. */
  uuid(): string
  /** ULID, rising within this process. */
  ulid(): string
}

/** What tells a run from all others: callers choose run_ids, and each is unique within its workspace only. */
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
