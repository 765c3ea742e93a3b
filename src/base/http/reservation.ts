import type { ApiError } from '../errors.ts'
import type { Mint } from '../ids.ts'

/** A request that is being processed. Exactly one of `finish`, `release` and `suspend` must be called. */
export interface Reservation {
  /** Mints the same ids again when the request is retried after a crash between its effect and {@link finish}. */
  readonly mint: Mint
  /** Stores a 2xx response. A failure to store it is logged, and the response is sent anyway. */
  finish(status: number, text: string): Promise<void>
  /** The request had no effect: the key may be used for another request. */
  release(): Promise<void>
  /** The outcome is unknown: only the same request may use the key again, and it mints the same ids. */
  suspend(): Promise<void>
}

/** Settles a failed request. After a refusal the key is free again; after any other failure the outcome is unknown. */
export async function settle(reservation: Reservation, { hasEffect }: Pick<ApiError, 'hasEffect'>): Promise<void> {
  if (hasEffect) await reservation.suspend()
  else await reservation.release()
}
