import type { Caller } from '../keys/schema.ts'

/** The other processes that share the partitions: for requests about state that only one of them has in memory. */
export interface Peers {
  /**
   * Sends a GET request to one of them, in one hop, signed in the name of a caller that this process has admitted.
   *
   * @param signal aborts the request and its response
   * @returns null when no such process is alive
   * @throws when it cannot be reached
   */
  get(instanceId: string, path: string, caller: Caller, signal: AbortSignal): Promise<Response | null>
}
