import { monotonicFactory } from 'ulid'

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Whether a text is a UUID, in lower or upper case. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}

/** Stands for the run and the agent of events that belong to none. No caller's run may have this id. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/** The text if it is a UUID, otherwise null. Ids of hosted sessions are UUIDs; external sessions may have any name. */
export function uuidOrNull(text: string | null): string | null {
  return text !== null && isUuid(text) ? text : null
}

/** The ids under which a session may be stored: as the caller wrote it, and a UUID also in lower case, as of hosted sessions. */
export function spellingsOf(sessionId: string): string[] {
  return isUuid(sessionId) ? [...new Set([sessionId, sessionId.toLowerCase()])] : [sessionId]
}

/** Mints identifiers. A call with an `Idempotency-Key` gets one that mints the same ids again on a retry. */
export interface Mint {
  /** UUID version 7, lower case. */
  uuid(): string
  /** ULID, increasing within this process. */
  ulid(): string
  /** 32 bytes for a new secret, which neither its ids nor the database tell. */
  secret(): Buffer
}

/** Identifies a run: callers choose run_ids, which are unique only within a workspace. */
export interface RunIdentity {
  readonly workspaceId: string
  readonly runId: string
}

/** The run that events belong to. Only its deleted scores change, so it can be cached. */
export interface RunRef extends RunIdentity {
  readonly agentId: string
  readonly runtimeType: 'external' | 'hosted'
  /** The ids of its scores that were deleted, if any were. */
  readonly deletedScores?: ReadonlySet<string>
}

/** A {@link RunIdentity} as the key of a map. */
export function runKey(workspaceId: string, runId: string): string {
  return workspaceId + runId
}

/**
 * Whether the id of a run derives from what OpenTelemetry reports (`doors/traces/ids.ts`), not from the clock or chance: such UUIDs
 * have version 8.
 */
export function isDerivedId(uuid: string): boolean {
  return uuid[14] === '8'
}

const nextUlid = monotonicFactory()

export const mint: Mint = {
  uuid: () => Bun.randomUUIDv7(),
  ulid: () => nextUlid(),
  secret: () => crypto.getRandomValues(Buffer.alloc(32)),
}
