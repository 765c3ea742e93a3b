/**
 * What each of the three stores records about the progress of the others. A beat is a counter that is written in a fixed
 * order: first to Postgres, then to the file beside the journal, then to ClickHouse. As long as no store goes back,
 * Postgres has the newest beat, the file the same or the one before, and ClickHouse none that the file lacks.
 *
 * Stores that were all restored to the same moment are consistent, so no difference is reported.
 */
export interface Marks {
  readonly postgres: PostgresMark
  readonly file: { readonly beat: number; readonly columnarBeat: number }
  readonly columnar: ColumnarMark
}

export interface PostgresMark {
  readonly beat: number
  /** The newest beat that ClickHouse is known to have stored. */
  readonly columnarBeat: number
  readonly epoch: string
  readonly endSeq: number
}

/** The mark that ClickHouse stores about itself. */
export interface ColumnarMark {
  readonly beat: number
  /** Everything up to here had been loaded at that beat. */
  readonly loadedSeq: number
  /** The loaded position a minute earlier: it is in every table, even if the tables were copied one after the other. */
  readonly settledSeq: number
}

/** A store that may go back to an earlier state. */
export type Store = 'postgres' | 'journal' | 'clickhouse'

/** The stores that went back: another store recorded a newer beat of theirs. */
export function setBack({ postgres, file, columnar }: Marks): Set<Store> {
  const found = new Set<Store>()
  if (postgres.beat < Math.max(file.beat, columnar.beat)) found.add('postgres')
  if (file.beat < Math.max(postgres.beat - 1, columnar.beat)) found.add('journal')
  if (columnar.beat < Math.max(file.columnarBeat, postgres.columnarBeat)) found.add('clickhouse')
  return found
}
