import type { Moment, Outcome, RunPlan } from '../plan.ts'

/** Reports runs in one of the ways in which programs report to the service. */
export interface Sender {
  /** @param at Unix milliseconds, as in all of these */
  start(plan: RunPlan, parentRunId: string | undefined, at: number): Promise<SentRun>
}

/** A run that is being reported. */
interface SentRun {
  readonly runId: string
  /** Reports a moment other than a child run. */
  add(moment: Exclude<Moment, { kind: 'child' }>, at: number): Promise<unknown>
  end(outcome: Outcome, at: number): Promise<unknown>
}
