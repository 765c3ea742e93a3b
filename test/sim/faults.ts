/** What may go wrong in a world. `feeds` also has those of the log. */
export const FAULT_KINDS = {
  log: [
    'message lost',
    'message unanswered',
    'message late',
    'servers full',
    'leader lags',
    'owner paused',
    'owner replaced',
    'owner dies',
    'load refused',
    'load unanswered',
    'position refused',
    'position unanswered',
  ],
  feeds: ['connection breaks', 'subscriber stalls', 'node paused', 'node dies', 'replica lags'],
} as const
export type FaultKind = (typeof FAULT_KINDS)[keyof typeof FAULT_KINDS][number]

/** A fault that happened. */
export interface Fault {
  /** Its place among the faults that the seed drew, from 1. */
  readonly number: number
  readonly kind: FaultKind
}

/** The faults that a seed draws: all happen, but those that are switched off. */
export class Faults {
  readonly happened: Fault[] = []
  private drawn = 0

  /** @param without the numbers of faults that do not happen */
  constructor(private readonly without: readonly number[]) {}

  /** Called for each fault that is drawn. @returns whether it happens */
  happens(kind: FaultKind): boolean {
    const number = ++this.drawn
    if (this.without.includes(number)) return false
    this.happened.push({ number, kind })
    return true
  }
}

/** Is told what happens in a world: to whom, what, and what came of it. */
export type Trace = (who: string, what: string, answer?: string) => void
