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

/** The run that events belong to. It never changes, so it can be cached. */
export interface RunRef extends RunIdentity {
  readonly agentId: string
  readonly runtimeType: 'external' | 'hosted'
}

/** A {@link RunIdentity} as the key of a map. */
export function runKey(workspaceId: string, runId: string): string {
  return workspaceId + runId
}

/**
 * Whether the id of a run derives from what OpenTelemetry reports (`otlp/ids.ts`), not from the clock or chance: such UUIDs
 * have version 8.
 */
export function isDerivedId(uuid: string): boolean {
  return uuid[14] === '8'
}

const nextUlid = monotonicFactory()

export const mint: Mint = {
  uuid: () => Bun.randomUUIDv7(),
  ulid: () => nextUlid(),
}
