import type { Log } from '../../base/log.ts'
import type { Gap } from '../journal.ts'

/** The assigned positions whose rows are missing in a log: in order, adjacent ones merged. */
export class GapList {
  /** @param onChange called after each new gap, with the merged one and the whole list */
  constructor(
    private gaps: readonly Gap[],
    private readonly log: Log,
    private readonly onChange: (gap: Gap, all: readonly Gap[]) => void,
  ) {}

  get all(): readonly Gap[] {
    return this.gaps
  }

  /** Records a gap, some or all of which may be known already. */
  add({ afterSeq, throughSeq, loadedSeq }: Gap): void {
    if (throughSeq <= afterSeq || this.gaps.some((gap) => gap.afterSeq <= afterSeq && gap.throughSeq >= throughSeq))
      return
    const isApart = (gap: Gap) => gap.throughSeq < afterSeq || gap.afterSeq > throughSeq
    const merged = this.gaps.filter((gap) => !isApart(gap))
    const whole: Gap = {
      afterSeq: Math.min(afterSeq, ...merged.map((gap) => gap.afterSeq)),
      throughSeq: Math.max(throughSeq, ...merged.map((gap) => gap.throughSeq)),
      loadedSeq: Math.min(loadedSeq, ...merged.map((gap) => gap.loadedSeq)),
    }
    this.gaps = [...this.gaps.filter(isApart), whole].sort((a, b) => a.afterSeq - b.afterSeq)
    this.log.error('journal: rows are missing; feeds report a gap, and the positions are not reused', {
      after_seq: afterSeq,
      through_seq: throughSeq,
      in_clickhouse_through_seq: loadedSeq,
    })
    this.onChange(whole, this.gaps)
  }
}
