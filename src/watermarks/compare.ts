/**
 * What each of the three stores knows of how far the others had come. A beat goes round in one order: Postgres is written
 * first, then the file beside the journal, then ClickHouse. So in stores that have only ever gone forward Postgres has the
 * newest beat, the file the same or the one before, and ClickHouse none that the file has not.
 *
 * Stores that were all set back to the same moment fit together, and so they should: nothing is lost between them.
 */
export interface Marks {
  readonly postgres: PostgresMark
  readonly file: { readonly beat: number; readonly columnarBeat: number }
  readonly columnar: ColumnarMark
}

export interface PostgresMark {
  readonly beat: number
  /** The newest beat that ClickHouse was known to have. */
  readonly columnarBeat: number
  readonly epoch: string
  readonly endSeq: number
}

/** What ClickHouse says of itself. */
export interface ColumnarMark {
  readonly beat: number
  /** Everything up to here had been loaded at that beat. */
  readonly loadedSeq: number
  /** The same a minute before: by then it was in every table, even when they were copied one after the other. */
  readonly settledSeq: number
}

/** A store that can go back. */
export type Store = 'postgres' | 'journal' | 'clickhouse'

/** The stores that have less than another one knows they had. */
export function setBack({ postgres, file, columnar }: Marks): Set<Store> {
  const found = new Set<Store>()
  if (postgres.beat < Math.max(file.beat, columnar.beat)) found.add('postgres')
  if (file.beat < Math.max(postgres.beat - 1, columnar.beat)) found.add('journal')
  if (columnar.beat < Math.max(file.columnarBeat, postgres.columnarBeat)) found.add('clickhouse')
  return found
}
