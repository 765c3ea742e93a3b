import { assert } from '../../../base/assert.ts'

export type State = 'delivering' | 'disabled' | 'broken' | 'stopping'

/**
 * The states of an endpoint in the process that delivers to it, and to where each may be moved. It begins as `delivering` when
 * its stored position, its rows and its part of the log are there, and is forgotten once it has stopped.
 *
 * Two things look like states, but are true in any of them. `behind`, as the API calls it: the endpoint has as many rows as it
 * may have, so only rows are sent. A pause: the receiver has asked for one, or fails always (`Pace`).
 */
const MOVES = {
  /** New activity is read and sent, and so are rows that are due. The only state in which attempts begin. */
  delivering: ['disabled', 'broken', 'stopping'],
  /** By an attempt: the receiver is gone, or has failed for too long. What has ended is stored; then Postgres says it, too. */
  disabled: ['broken', 'stopping'],
  /** By the log, which can no longer be read from here, or by whatever throws in a round. The next round starts it again. */
  broken: ['stopping'],
  /** By `Deliveries`: it is broken, was edited, disabled or deleted, or belongs to another process. What has ended is stored. */
  // Again, if to stop it has failed.
  stopping: ['stopping'],
} as const satisfies Record<State, readonly State[]>

export function mayMove(from: State, to: State): boolean {
  return (MOVES[from] as readonly State[]).includes(to)
}

/** @returns `to` @throws Error for a move that the table lacks */
export function move(from: State, to: State): State {
  assert(mayMove(from, to), `an endpoint moves from ${from} to ${to}`)
  return to
}
