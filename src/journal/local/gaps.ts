import fs from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../log.ts'
import type { Gap } from '../journal.ts'
import { replaceFile } from './files.ts'

const NAME = 'gaps'

/** The stored list of assigned positions whose rows are missing in the files. */
export class Gaps {
  private constructor(
    private readonly path: string,
    private gaps: readonly Gap[],
    private readonly log: Log,
  ) {}

  static open(dir: string, log: Log): Gaps {
    const path = join(dir, NAME)
    return new Gaps(path, readGaps(path, log), log)
  }

  /** In order; adjacent gaps are merged. */
  get all(): readonly Gap[] {
    return this.gaps
  }

  /** Records a gap, some or all of which may be known already. */
  note({ afterSeq, throughSeq, loadedSeq }: Gap): void {
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
    try {
      replaceFile(this.path, JSON.stringify(this.gaps))
    } catch (error) {
      this.log.error('journal: cannot store a gap', { error })
    }
  }
}

function readGaps(path: string, log: Log): readonly Gap[] {
  if (!fs.existsSync(path)) return []
  try {
    return JSON.parse(fs.readFileSync(path, 'utf8'))
  } catch (error) {
    log.error('journal: cannot read the list of gaps; gaps within the files will be found again', {
      path,
      error,
    })
    return []
  }
}
