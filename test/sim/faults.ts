import { DRAWN_MS, time } from './virtual-time.ts'

/** What may go wrong in a world. All but `database` and `disk` also have those of the log. */
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
  outbox: ['statement refused', 'statement unanswered'],
  disk: [
    'power fails',
    'process dies',
    'process paused',
    'disk full',
    'disk read only',
    'disk slow',
    'write fails',
    'sync fails',
    'load refused',
    'load unanswered',
    'statement refused',
    'statement unanswered',
    'statement late',
  ],
  database: [
    'statement lost',
    'statement late',
    'statement unanswered',
    'statement answered late',
    'process paused',
    'process dies',
  ],
} as const
export type WorldName = keyof typeof FAULT_KINDS
export type FaultKind = (typeof FAULT_KINDS)[WorldName][number]

/** What may go wrong in this world. */
export function kindsOf(world: WorldName): readonly FaultKind[] {
  return world === 'feeds' || world === 'outbox' ? [...FAULT_KINDS.log, ...FAULT_KINDS[world]] : FAULT_KINDS[world]
}

/** A fault that happened, or a step that was taken. */
export interface Happened {
  /** What is left out by this name changes nothing of what else is drawn. */
  readonly name: string
  /** Undefined for a step. */
  readonly kind?: FaultKind
}

/** The faults and steps that a seed draws: all happen, but those that are left out. */
export class Faults {
  readonly happened: Happened[] = []
  /** Those of `without` that were drawn. */
  readonly leftOut: string[] = []
  private readonly without: ReadonlySet<string>
  private readonly drawn = new Set<string>()

  /** @param without the names of faults and steps that do not happen */
  constructor(without: readonly string[]) {
    this.without = new Set(without)
  }

  /** Called for each fault that is drawn. @returns whether it happens */
  happens(kind: FaultKind): boolean {
    const name = `${kind}, ${time.process.name} at ${Math.floor(time.nowMs / DRAWN_MS) * DRAWN_MS}`
    let unique = name
    for (let place = 2; this.drawn.has(unique); place++) unique = `${name}, ${place}`
    this.drawn.add(unique)
    return this.isIn({ name: unique, kind })
  }

  /** Called for each step. @returns whether it is taken */
  takes(step: string): boolean {
    return this.isIn({ name: step })
  }

  private isIn(what: Happened): boolean {
    const isIn = !this.without.has(what.name)
    if (isIn) this.happened.push(what)
    else this.leftOut.push(what.name)
    return isIn
  }
}

/** Is told what happens in a world: to whom, what, and what came of it. */
export type Trace = (who: string, what: string, answer?: string) => void
