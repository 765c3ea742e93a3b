import type { RunStatus } from '../../activity/runs/state.ts'

/**
 * The state machines of hosted runs (docs/hosted-agents.md). All states are rows: a process may die at any
 * point, and another one continues from what is stored. Statements take their guards from these tables
 * ({@link statesBefore}), and the tests of hosted agents hold the database to them.
 *
 * A run has a `phase` in `hosted_runs`, which names who acts on it next, and a `status` in `runs`, which clients see:
 *
 * ```
 *             session is free         claimed              every call waits
 *   waiting ──────────────────► queued ──────────► executing ──────────────► paused
 *      │                         │  ▲ ▲   released   │ │                      │ │
 *      │                         │  │ └──────────────┘ │       decided        │ │
 *      │                         │  └──────────────────┼──────────────────────┘ │
 *      └─────────────────────────┴──────────┬──────────┴────────────────────────┘
 *                                           ▼  completed, failed, cancelled, timed out
 *                                         ended
 * ```
 *
 * The process that stores the last decision may execute the run at once: `paused` is then followed by `executing`.
 */
export const HOSTED_PHASES = ['waiting', 'queued', 'executing', 'paused', 'ended'] as const

/**
 * - `waiting`: another run of the same session comes first
 * - `queued`: any process may claim it
 * - `executing`: the process in `owner` executes it
 * - `paused`: it waits for a person, or for a child run that does; no process spends anything on it
 * - `ended`: it has ended
 */
export type HostedPhase = (typeof HOSTED_PHASES)[number]

export const NEXT_PHASES = {
  waiting: ['queued', 'ended'],
  queued: ['executing', 'ended'],
  // Back to `queued` when its process stops.
  executing: ['queued', 'paused', 'ended'],
  paused: ['queued', 'executing', 'ended'],
  ended: [],
} as const satisfies Record<HostedPhase, readonly HostedPhase[]>

/** The statuses that clients may see in each phase. A queued run is `running` once it has been executed before. */
export const STATUSES_OF_PHASE: Record<HostedPhase, readonly RunStatus[]> = {
  waiting: ['queued'],
  queued: ['queued', 'running'],
  executing: ['running'],
  paused: ['awaiting_approval', 'awaiting_input'],
  ended: ['completed', 'failed', 'cancelled', 'timed_out'],
}

export const CALL_STATUSES = ['held', 'rejected', 'answered', 'ready', 'started', 'finished', 'failed'] as const

/**
 * A tool call that the model asked for:
 * - `held`: waits for a person, who makes it `rejected`, `answered` (a question) or `ready` (approved)
 * - `ready`: may be made
 * - `started`: is being made, or was when a process died
 * - `finished`, `failed`: has a result for the model
 */
export type CallStatus = (typeof CALL_STATUSES)[number]

export const NEXT_CALL_STATUSES: Record<CallStatus, readonly CallStatus[]> = {
  held: ['ready', 'rejected', 'answered'],
  rejected: ['failed'],
  answered: ['finished'],
  // Fails at once when its tool no longer exists.
  ready: ['started', 'failed'],
  started: ['finished', 'failed'],
  finished: [],
  failed: [],
}

/** The statuses of calls without a result. */
export const OPEN_CALL_STATUSES = CALL_STATUSES.filter((status) => !isDone(status))

/** Whether a call has a result for the model. */
export function isDone(status: CallStatus): boolean {
  return NEXT_CALL_STATUSES[status].length === 0
}

export const PAUSE_STATUSES = ['pending', 'approved', 'rejected', 'answered', 'expired', 'cancelled'] as const

/** What a person was asked: `expired` without a decision in time, `cancelled` when the run ended before. */
export type PauseStatus = (typeof PAUSE_STATUSES)[number]

export const NEXT_PAUSE_STATUSES: Record<PauseStatus, readonly PauseStatus[]> = {
  pending: ['approved', 'rejected', 'answered', 'expired', 'cancelled'],
  approved: [],
  rejected: [],
  answered: [],
  expired: [],
  cancelled: [],
}

/** The phase that a run enters from a known one; the compiler refuses a transition that {@link NEXT_PHASES} does not list. */
export function nextPhase<F extends HostedPhase>(_from: F, to: (typeof NEXT_PHASES)[F][number]): HostedPhase {
  return to
}

/** The states from which `to` may follow, for the guard of an UPDATE. */
export function statesBefore<S extends string>(next: Readonly<Record<S, readonly S[]>>, to: NoInfer<S>): S[] {
  return (Object.keys(next) as S[]).filter((from) => next[from].includes(to))
}
