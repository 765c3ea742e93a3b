import type { RawBody } from '../../base/http/body.ts'
import type { Caller } from './schema.ts'

/** A request forwarded by another node, which has checked the key and its request budget. */
export interface ForwardedCall {
  readonly caller: Caller
  /** Identifies the body that was signed. */
  readonly bodyDigest: string
}

/**
 * Forwards requests that append to the owner of the caller's partition, with their bodies unread, in one hop
 * (docs/architecture.md#several-nodes).
 */
export interface Forwarder {
  /**
   * Null for a request that a client has sent.
   * @throws ApiError UNAUTHENTICATED for a request that claims to come from a node, but was not signed by one, or is repeated;
   *   UNAVAILABLE for one that is for another node
   */
  receive(request: Request): ForwardedCall | null
  /** Proves to another node which one this is; null in a service that works alone. */
  prove(challenge: string): string | null
  /** Checks that the body is the one that was signed. @throws ApiError UNAUTHENTICATED */
  checkBody(call: ForwardedCall, body: Uint8Array): void
  /**
   * Carries out a request with `execute` if this process owns the partition, or else in the process that does.
   * @throws ApiError UNAVAILABLE when no process owns it for too long, or its owner does not answer; what `execute` throws
   */
  carryOut<T>(request: Request, caller: Caller, body: RawBody, execute: () => Promise<T>): Promise<T | Response>
}

/** For a service whose process owns every partition. */
export const noForwarding: Forwarder = {
  receive: () => null,
  prove: () => null,
  checkBody: () => {},
  carryOut: (_request, _caller, _body, execute) => execute(),
}
