import type { RunCounts } from '../../src/activity/runs/counts.ts'
import { startRunStatistics } from '../../src/activity/runs/statistics.ts'
import { createLog } from '../../src/base/log.ts'
import type { Owner, Part, Surroundings } from './part.ts'
import type { Row } from './stores.ts'
import { time } from './virtual-time.ts'

type Statistics = Awaited<ReturnType<typeof startRunStatistics>>

const SILENT = createLog('silent')
/** How long a caller waits. */
const PATIENCE_MS = 30_000

/** The counts of runs in Postgres, and the statistics of each owner. */
export class SimulatedCounts implements Part {
  private readonly counts = new Map<string, number>()
  private seq = 0
  private newest: { readonly owner: Owner; readonly statistics: Statistics } | undefined

  constructor(private readonly world: Surroundings) {}

  async opened(owner: Owner): Promise<Statistics> {
    const { process, journal } = owner
    const statistics = await startRunStatistics({ counts: this.asSeenBy(process.name), journal, log: SILENT })
    this.newest = { owner, statistics }
    return statistics
  }

  /** A caller waits until everything is counted. */
  async step(): Promise<void> {
    const { newest, world } = this
    if (newest === undefined) return
    const { owner, statistics } = newest
    const { endSeq } = owner.journal
    const flushed = time.within(owner.process, () => Bun.sleep(0).then(() => statistics.flush()))
    const isFlushed = await Promise.race([flushed.then(() => true), Bun.sleep(PATIENCE_MS)]).catch(() => false)
    if (isFlushed === true && this.seq < endSeq)
      world.problem(`counted up to ${this.seq}, although all up to ${endSeq} should be`)
  }

  isDone({ journal }: Owner): boolean {
    return this.seq >= journal.endSeq
  }

  check(rows: readonly Row[]): void {
    const wanted = Map.groupBy(
      rows.filter(({ runId, type }) => runId !== undefined && type !== undefined),
      ({ runId }) => runId!,
    )
    for (const { runId } of this.world.runs) {
      const [count, all] = [this.counts.get(runId) ?? 0, wanted.get(runId)?.length ?? 0]
      if (count !== all) this.world.problem(`run ${runId}: ${count} events are counted of ${all}`)
    }
  }

  private asSeenBy(who: string): Pick<RunCounts, keyof RunCounts> {
    const { world } = this
    const call = <Answer>(serve: () => Answer) =>
      time.call(async () => {
        await world.delay()
        if (world.fails(0.05, who, 'statement refused')) throw new Error('refused')
        const answer = serve()
        await world.delay()
        if (world.fails(0.05, who, 'statement unanswered')) throw new Error('the answer is lost')
        return answer
      })
    return {
      position: () => call(() => this.seq),
      write: ({ from, to }, all) =>
        call(() => {
          if (this.seq !== from) return { isWritten: false, hasUsage: false }
          this.seq = to
          for (const { runId, events } of all) this.counts.set(runId, (this.counts.get(runId) ?? 0) + events)
          return { isWritten: true, hasUsage: false }
        }),
      probe: async () => {},
    }
  }
}
