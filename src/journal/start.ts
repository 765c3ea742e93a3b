import type { ColumnarClient } from '../columnar/client.ts'
import { readSinkPosition } from '../columnar/sink.ts'
import type { Sql } from '../postgres/connect.ts'
import type { Watermarks } from '../watermarks/watermarks.ts'

/** What a journal's directory holds, before anything is appended. */
export interface FoundJournal {
  readonly epoch: string
  /** The last position of the files; 0 when there are none. */
  readonly endSeq: number
  /** The last position that was acknowledged, as far as the directory knows; below `endSeq` only after a power failure. */
  readonly acknowledgedSeq: number
}

export interface StartDecision {
  /** Positions up to here are taken, whatever the files say: the next one is after it. 0 leaves it to the journal. */
  readonly afterSeq: number
  /** Every row up to here is in ClickHouse: of a gap, only what comes later is lost for good. */
  readonly loadedSeq: number
  /** Begins a new epoch, because this journal is not the one that gave its positions: it is lost, or has gone back. */
  readonly newEpoch: boolean
}

export interface StartDeps {
  /** Of the journal, where the sink keeps its position, too. */
  readonly dir: string
  readonly sql: Sql
  readonly columnar: ColumnarClient
  readonly watermarks: Pick<Watermarks, 'checkJournal'>
}

/**
 * Where the positions of a journal go on: after all that any consumer has seen, so that none is ever given twice. A journal
 * that is empty goes on after what ClickHouse holds: there the highest `seq` of a record wins. One that has gone back, as others
 * can tell, begins a new epoch.
 */
export async function decideStart(found: FoundJournal, deps: StartDeps): Promise<StartDecision> {
  const back = await deps.watermarks.checkJournal(found)
  const { epoch, endSeq, acknowledgedSeq } = found
  // One that is empty has a new name already.
  if (back !== undefined) return { ...back, newEpoch: Math.max(endSeq, acknowledgedSeq) > 0 }
  const { loadedSeq, inFlightSeq } = await readSinkPosition(deps.dir)
  const countedSeq = await lastCountedSeq(deps.sql, epoch)
  if (endSeq > 0) return { afterSeq: Math.max(loadedSeq, inFlightSeq, countedSeq), loadedSeq, newEpoch: false }
  const storedSeq = await lastStoredSeq(deps.columnar)
  return { afterSeq: Math.max(storedSeq, inFlightSeq, countedSeq), loadedSeq: storedSeq, newEpoch: false }
}

async function lastCountedSeq(sql: Sql, epoch: string): Promise<number> {
  const [{ seq }] = await sql<{ seq: number }[]>`
    select coalesce(max(seq), 0) as seq from journal_consumers where epoch = ${epoch}`
  return seq
}

/** Where the journal that filled this ClickHouse had come to. */
async function lastStoredSeq(columnar: ColumnarClient): Promise<number> {
  const [{ seq }] = await columnar.query<{ seq: number }>(
    'select greatest((select max(seq) from events), (select max(seq) from runs), (select max(seq) from tasks)) as seq',
  )
  return seq
}
