import type { Sql } from '../postgres/connect.ts'

/** The state of a journal's directory before anything is appended. */
export interface FoundJournal {
  readonly epoch: string
  /** The last position of the files; 0 when there are none. */
  readonly endSeq: number
  /** The last acknowledged position according to the directory; below `endSeq` only after a power failure. */
  readonly acknowledgedSeq: number
  /** Whether its newest messages are lost or damaged, so that nobody knows how many positions they had. */
  readonly isEndLost?: boolean
}

export interface StartDecision {
  /** Positions up to here are taken, whatever the files say. 0: the files decide. */
  readonly afterSeq: number
  /** Every row up to here is in ClickHouse; only rows of a gap after it are lost permanently. */
  readonly loadedSeq: number
  /** Begins a new epoch, because the journal that assigned the positions was lost or went back to an earlier state. */
  readonly newEpoch: boolean
  /** What was received up to this time has been acted upon, Unix milliseconds: later rows get no earlier one. */
  readonly decidedMs?: number
}

interface StartDeps {
  /** How far the sink has come: positions that ClickHouse has, and those that it may have. */
  readonly sinkPosition: () => Promise<{ readonly loadedSeq: number; readonly inFlightSeq: number }>
  readonly sql: Sql
  /** The highest position that other stores have of a journal without files. */
  readonly storedSeq: () => Promise<number>
  /** What other stores know about the journal. */
  readonly storeMarks: {
    /** @returns where the positions must continue when the journal lacks some that another store has seen */
    checkJournal(found: FoundJournal): Promise<Omit<StartDecision, 'newEpoch'> | undefined>
  }
}

/**
 * Decides where the positions of a journal continue: after every position that any consumer has seen, so that none is
 * assigned twice. An empty journal continues after the highest `seq` in ClickHouse, because there the record with the
 * highest `seq` wins. A journal that other stores show to have gone back begins a new epoch.
 */
export async function decideStart(found: FoundJournal, deps: StartDeps): Promise<StartDecision> {
  const back = await deps.storeMarks.checkJournal(found)
  const { epoch, endSeq, acknowledgedSeq } = found
  // An empty journal has a new epoch already.
  if (back !== undefined) return { ...back, newEpoch: Math.max(endSeq, acknowledgedSeq) > 0 }
  const { loadedSeq, inFlightSeq } = await deps.sinkPosition()
  const countedSeq = await lastCountedSeq(deps.sql, epoch)
  if (endSeq > 0) return { afterSeq: Math.max(loadedSeq, inFlightSeq, countedSeq), loadedSeq, newEpoch: false }
  const storedSeq = await deps.storedSeq()
  return { afterSeq: Math.max(storedSeq, inFlightSeq, countedSeq), loadedSeq: storedSeq, newEpoch: false }
}

/** The last position of an epoch that the run statistics have counted. */
export async function lastCountedSeq(sql: Sql, epoch: string): Promise<number> {
  const [{ seq }] = await sql<{ seq: number }[]>`
    select coalesce(max(seq), 0) as seq from journal_consumers where epoch = ${epoch}`
  return seq
}
