import type { JournalReader } from '../journal/journal.ts'
import type { History } from './history.ts'

/** History that reports positions whose rows never reached ClickHouse, because the journal lost them first (docs/specification.md#cursors). */
export function withGaps(history: History, journal: Pick<JournalReader, 'gaps' | 'epochs'>): History {
  return {
    async read(query) {
      const { afterSeq, untilSeq } = query
      const epochSeq = journal.epochs[journal.epochs.length - 1].firstSeq
      const lost = journal.gaps
        .map((gap) => ({ afterSeq: Math.max(gap.afterSeq, gap.loadedSeq), throughSeq: gap.throughSeq }))
        .find((gap) => gap.throughSeq > afterSeq && gap.throughSeq >= epochSeq && gap.afterSeq < gap.throughSeq)
      if (lost === undefined || lost.afterSeq >= untilSeq) return history.read(query)
      // Read up to the gap first; the next page starts with it.
      if (lost.afterSeq > afterSeq) return history.read({ ...query, untilSeq: lost.afterSeq })
      const throughSeq = Math.min(lost.throughSeq, untilSeq)
      return { items: [], throughSeq, resumedSeq: throughSeq }
    },
  }
}
