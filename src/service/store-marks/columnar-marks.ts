import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { Journal } from '../../stores/journal/journal.ts'
import { POSITIONED_TABLES } from '../../stores/journal/kinds.ts'
import type { ColumnarMark } from './compare.ts'

/** Timeout of deleting all rows that will be loaded again. */
const CLEAR_TIMEOUT_MS = 110_000
/** The tables of a restored copy may differ by this much in time. */
const SETTLED_SECONDS = 60

/** How far the journal had been loaded, according to ClickHouse. */
export async function readColumnarMark(client: ColumnarClient, journalId: string): Promise<ColumnarMark> {
  const [mark] = await client.query<ColumnarMark>(
    `select max(beat) as beat, argMax(loaded_seq, m.beat) as loadedSeq,
       maxIf(loaded_seq, noted_at <= newest - interval ${SETTLED_SECONDS} second) as settledSeq
     from store_marks m,
       (select max(noted_at) as newest from store_marks where journal_id = {journal:UUID}) as n
     where journal_id = {journal:UUID}`,
    { params: { journal: journalId } },
  )
  return mark
}

export async function noteColumnarMark(
  client: ColumnarClient,
  mark: { journalId: string; beat: number; epoch: string; loadedSeq: number },
): Promise<void> {
  await client.command(
    `insert into store_marks (journal_id, beat, epoch, loaded_seq, noted_at)
     select {journalId:UUID}, {beat:UInt64}, {epoch:String}, {loadedSeq:UInt64}, now64(3)`,
    { params: mark },
  )
}

/** The highest position after `afterSeq` in any table, of one epoch or of all; 0 when there is none. */
export async function highestSeq(client: ColumnarClient, epoch = '', afterSeq = 0): Promise<number> {
  const where = "({epoch:String} = '' or epoch = {epoch:String}) and seq > {after:UInt64}"
  const each = POSITIONED_TABLES.map((table) => `select max(seq) as highest from ${table} where ${where}`)
  const [{ seq }] = await client.query<{ seq: number }>(
    `select max(highest) as seq from (${each.join(' union all ')})`,
    { params: { epoch, after: afterSeq } },
  )
  return seq
}

/**
 * Deletes the rows after `afterSeq` up to `throughSeq` that the journal can load again: those that are not in a gap.
 * @param confirm called right before each deletion
 */
export async function clearRows(
  client: ColumnarClient,
  journal: Pick<Journal, 'epochs' | 'gaps'>,
  { afterSeq, throughSeq }: SeqRange,
  signal: AbortSignal,
  confirm: () => Promise<void>,
): Promise<void> {
  const epochs = journal.epochs.map(({ epoch }) => epoch)
  for (const range of withoutGaps({ afterSeq, throughSeq }, journal.gaps)) {
    const where = 'epoch in {epochs:Array(String)} and seq > {afterSeq:UInt64} and seq <= {throughSeq:UInt64}'
    const options = { params: { epochs, ...range }, signal }
    for (const table of POSITIONED_TABLES) {
      const found = await client.query(`select 1 from ${table} where ${where} limit 1`, options)
      if (found.length === 0) continue
      await confirm()
      await client.command(`delete from ${table} where ${where}`, {
        ...options,
        settings: { lightweight_deletes_sync: 2 },
        timeoutMs: CLEAR_TIMEOUT_MS,
      })
    }
  }
}

interface SeqRange {
  readonly afterSeq: number
  readonly throughSeq: number
}

function withoutGaps({ afterSeq, throughSeq }: SeqRange, gaps: readonly SeqRange[]): SeqRange[] {
  const ranges: SeqRange[] = []
  let from = afterSeq
  for (const gap of gaps) {
    if (gap.throughSeq <= from || gap.afterSeq >= throughSeq) continue
    if (gap.afterSeq > from) ranges.push({ afterSeq: from, throughSeq: gap.afterSeq })
    from = gap.throughSeq
  }
  if (from < throughSeq) ranges.push({ afterSeq: from, throughSeq })
  return ranges
}
