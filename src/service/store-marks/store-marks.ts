import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { Loops } from '../../base/loops.ts'
import { type ColumnarClient, ColumnarError } from '../../stores/clickhouse/client.ts'
import { migrateClickHouse } from '../../stores/clickhouse/migrate.ts'
import type { Journal } from '../../stores/journal/journal.ts'
import type { FoundJournal } from '../../stores/journal/start.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Sink } from '../../stores/sink/sink.ts'
import type { RetentionFloors } from '../retention/retention-floors.ts'
import { highestSeq, noteColumnarMark, readColumnarMark } from './columnar-marks.ts'
import { type ColumnarMark, type Marks, type PostgresMark, type Store, setBack } from './compare.ts'
import { noteGap, shareGaps } from './gaps.ts'
import { isMarkedRestored, readJournalId, StoreMarkFile, unmarkRestored } from './mark-file.ts'

interface StoreMarksDeps {
  readonly sql: Sql
  readonly columnar: ColumnarClient
  readonly dataDir: string
  /** The journal's directory in `dataDir`. */
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  /** Supervises the comparisons together with other loops. */
  readonly loops?: Loops
  /** Time between two comparisons, milliseconds. */
  readonly intervalMs?: number | undefined
  /** Called for each store that has gone back. */
  readonly onSetBack: (store: Store) => void
}

/** The components that must react when a store has gone back. */
interface StoreMarksParts {
  readonly journal: Journal
  readonly sink: Pick<Sink, 'loadedSeq' | 'reload'>
  readonly retentionFloors: Pick<RetentionFloors, 'raise'>
  /** Clears caches of ClickHouse data. */
  readonly forgetColumnar: () => void
  /** Called when Postgres went back while the service runs. Memory then holds a later state, so the service must restart. */
  readonly onPostgresBack: () => void
}

/** A store that went back, as reported to operators. */
export interface Incident {
  readonly store: Store
  readonly noticedAt: number
  readonly detail: string
}

/** A journal that went back. */
interface JournalBack {
  /** The epoch before. */
  readonly epoch: string
  /** The last position of its files. */
  readonly filesSeq: number
  /** Positions up to here may have been assigned. */
  readonly afterSeq: number
  /** Everything up to here is in its files or in ClickHouse. */
  readonly loadedSeq: number
}

const INTERVAL_MS = 5_000
const STOP_MS = 2_000
/** ClickHouse's error types for a missing table or database. */
const MISSING_TYPES: readonly string[] = ['UNKNOWN_TABLE', 'UNKNOWN_DATABASE']
const NOTHING_LOADED: ColumnarMark = { beat: 0, loadedSeq: 0, settledSeq: 0 }

/**
 * Detects when Postgres, the journal or ClickHouse has gone back to an earlier state (a restored backup, a lost disk).
 * Each stores how far the others had come, see {@link Marks}. They are compared at the start and every few seconds.
 */
export class StoreMarks {
  readonly incidents: Incident[] = []
  private parts: StoreMarksParts | undefined
  private endLoop: (() => Promise<void>) | undefined
  private beat = 0
  private columnarBeat = 0
  /** The contents of the last beat. */
  private lastContents = ''
  private isReloading = false
  private journalBack: JournalBack | undefined

  private constructor(
    private readonly deps: StoreMarksDeps,
    private readonly journalId: string,
    private readonly file: StoreMarkFile,
    private readonly marks: Marks,
    /** The stores that had gone back when the service started. */
    private readonly found: ReadonlySet<Store>,
    /** Whether all three were restored together, from a backup. */
    private readonly isRestored: boolean,
  ) {}

  /** Compares the stores. Must be called before anything writes to them. */
  static async open(deps: StoreMarksDeps): Promise<StoreMarks> {
    const { dataDir, name } = deps
    const journalId = readJournalId(dataDir, name)
    const file = StoreMarkFile.read(join(dataDir, name))
    const [postgres, columnar] = await Promise.all([
      readPostgresMark(deps.sql, journalId),
      readColumnarMark(deps.columnar, journalId),
    ])
    const marks: Marks = { postgres, file: file.get(), columnar }
    return new StoreMarks(deps, journalId, file, marks, setBack(marks), isMarkedRestored(dataDir, name))
  }

  /**
   * Checks whether the journal lacks positions that another store has seen.
   * @param found the current state of the journal's directory
   * @returns where its positions must continue; undefined when it lacks none
   */
  async checkJournal(found: FoundJournal): Promise<JournalBack | undefined> {
    const { postgres, columnar } = this.marks
    const knownSeq = Math.max(found.endSeq, found.acknowledgedSeq)
    const isBehind = this.found.has('journal') || Math.max(postgres.endSeq, columnar.loadedSeq) > knownSeq
    const storedSeq = await highestSeq(this.deps.columnar, isBehind ? '' : found.epoch, isBehind ? 0 : knownSeq)
    if (!isBehind && storedSeq === 0 && !this.isRestored) return undefined
    // One more than known: rows after the last position that others saw are lost as well.
    const afterSeq = Math.max(knownSeq, postgres.endSeq, columnar.loadedSeq, storedSeq) + 1
    const loadedSeq = Math.max(found.endSeq, columnar.loadedSeq)
    const epoch = knownSeq > 0 ? found.epoch : postgres.epoch
    this.journalBack = { epoch, filesSeq: found.endSeq, afterSeq, loadedSeq }
    return this.journalBack
  }

  /** The beat that ClickHouse is known to have: parameters for a query that checks that ClickHouse has not gone back. */
  columnarMark(): { readonly journal: string; readonly beat: number } {
    return { journal: this.journalId, beat: this.columnarBeat }
  }

  /** Handles stores that had gone back at the start, then keeps comparing. */
  async start(parts: StoreMarksParts): Promise<void> {
    this.parts = parts
    const { postgres, file, columnar } = this.marks
    this.columnarBeat = Math.max(file.columnarBeat, postgres.columnarBeat, columnar.beat)
    await shareGaps(this.deps)
    if (this.journalBack !== undefined) await this.handleJournalBack(this.journalBack)
    if (this.found.has('postgres')) await this.handlePostgresBack()
    if (this.found.has('clickhouse')) await this.handleColumnarBack(columnar)
    // Written after everything above is handled: from here on the three stores agree.
    this.beat = Math.max(postgres.beat, file.beat, columnar.beat)
    await this.deps.sql`
      insert into store_marks (journal_id, beat, columnar_beat, epoch, end_seq, loaded_seq, seen_at)
      values (${this.journalId}, ${this.beat}, ${this.columnarBeat}, ${parts.journal.epoch}, 0, 0, ${this.now()})
      on conflict (journal_id) do update set beat = excluded.beat, columnar_beat = excluded.columnar_beat`
    await this.attempt()
    if (this.isRestored) unmarkRestored(this.deps.dataDir, this.deps.name)
    const { log, loops = new Loops(log), intervalMs = INTERVAL_MS } = this.deps
    this.endLoop = loops.repeat('comparison of the stores', intervalMs, () => this.round())
  }

  /** Stops after a last beat, so that the next start knows the final state. */
  async stop(): Promise<void> {
    await Promise.race([this.endLoop?.().then(() => this.attempt()), Bun.sleep(STOP_MS)])
  }

  /** One comparison, and a beat if its contents have changed. */
  private async round(): Promise<void> {
    await this.beatOnce()
    await this.compareColumnar()
  }

  /** A round outside the loop. If it fails, the next round makes up for it. */
  private async attempt(): Promise<void> {
    await this.round().catch((error) => this.deps.log.info('store marks: cannot compare the stores', { error }))
  }

  private async beatOnce(): Promise<void> {
    const { journal, sink } = this.parts!
    const { sql } = this.deps
    const loadedSeq = sink.loadedSeq()
    const contents = `${journal.endSeq} ${loadedSeq} ${this.columnarBeat}`
    if (contents === this.lastContents) {
      const mark = await readPostgresMark(sql, this.journalId)
      if (mark.beat < this.beat) this.parts!.onPostgresBack()
      return
    }
    const next = this.beat + 1
    // A previous attempt may have been written although its response was lost.
    const written = await sql`
      update store_marks set beat = ${next}, columnar_beat = ${this.columnarBeat}, epoch = ${journal.epoch},
        end_seq = ${journal.endSeq}, loaded_seq = ${loadedSeq}, seen_at = ${this.now()}
      where journal_id = ${this.journalId} and beat in (${this.beat}, ${next})`
    if (written.count === 0) return this.handleChangedRow()
    await this.file.set({ beat: next, columnarBeat: this.columnarBeat })
    // Only now: while the file cannot be written, Postgres must not get ahead of it by more than one beat.
    this.beat = next
    this.lastContents = contents
  }

  /** The row in Postgres differs from the last one written by this process. */
  private async handleChangedRow(): Promise<void> {
    const mark = await readPostgresMark(this.deps.sql, this.journalId)
    if (mark.beat < this.beat) return this.parts!.onPostgresBack()
    throw new Error('another process uses a copy of this journal: each process needs its own DATA_DIR')
  }

  private async compareColumnar(): Promise<void> {
    const { columnar } = this.deps
    const { journal, sink } = this.parts!
    const mark = await this.readColumnar()
    if (mark.beat < this.columnarBeat) return this.handleColumnarBack(mark)
    if (mark.beat === this.beat || this.isReloading) return
    const loadedSeq = sink.loadedSeq()
    if (loadedSeq === mark.loadedSeq && mark.beat > 0) return
    const { journalId, beat } = this
    await noteColumnarMark(columnar, { journalId, beat, epoch: journal.epoch, loadedSeq })
    this.columnarBeat = beat
    await this.file.set({ beat, columnarBeat: beat })
  }

  /** Creates missing tables. */
  private async readColumnar(): Promise<ColumnarMark> {
    const { columnar, log } = this.deps
    try {
      return await readColumnarMark(columnar, this.journalId)
    } catch (error) {
      if (!(error instanceof ColumnarError) || !MISSING_TYPES.includes(error.type)) throw error
      await migrateClickHouse(columnar, log)
      return NOTHING_LOADED
    }
  }

  /** The journal has begun a new epoch. It is uncertain which rows of its files were loaded, so they are loaded again. */
  private async handleJournalBack({ epoch, filesSeq, afterSeq, loadedSeq }: JournalBack): Promise<void> {
    const { sql, columnar, clock } = this.deps
    const { sink } = this.parts!
    if (sink.loadedSeq() < filesSeq) await sink.reload(sink.loadedSeq(), filesSeq)
    await this.deleteRunsAgain()
    const reason = this.isRestored ? 'restored from a backup' : 'journal'
    await noteGap({ sql, columnar, now: clock.now() }, { epoch, afterSeq: loadedSeq, throughSeq: afterSeq, reason })
    if (!this.isRestored)
      this.report('journal', `a new epoch begins; what came after position ${loadedSeq} of ${epoch} is lost`)
  }

  /** Postgres has lost retention floors, so feeds of older positions get a gap. */
  private async handlePostgresBack(): Promise<void> {
    const { journal, retentionFloors } = this.parts!
    await retentionFloors.raise([{ epoch: journal.epoch, workspaceId: null, seq: journal.startSeq - 1 }])
    this.report('postgres', 'everything created, changed, revoked or erased since then must be done again')
  }

  /** Loads the rows again that the journal still has; the others are lost. */
  private async handleColumnarBack(mark: ColumnarMark): Promise<void> {
    const { sql, columnar, clock } = this.deps
    const { journal, sink, retentionFloors, forgetColumnar } = this.parts!
    this.isReloading = true
    try {
      const [first] = await journal.read(0, 1)
      const keptFrom = (first?.firstSeq ?? journal.endSeq + 1) - 1
      if (mark.loadedSeq < keptFrom) {
        const epoch = journal.epochAt(mark.loadedSeq + 1)
        const lost = { epoch, afterSeq: mark.loadedSeq, throughSeq: keptFrom, reason: 'clickhouse' }
        await retentionFloors.raise([{ epoch: journal.epoch, workspaceId: null, seq: keptFrom }])
        await noteGap({ sql, columnar, now: clock.now() }, lost)
      }
      const fromSeq = Math.min(Math.max(mark.settledSeq, keptFrom), sink.loadedSeq())
      await sink.reload(fromSeq)
      await this.deleteRunsAgain()
      forgetColumnar()
      this.columnarBeat = mark.beat
      const lost = mark.loadedSeq < keptFrom ? `; positions ${mark.loadedSeq + 1} to ${keptFrom} are lost` : ''
      this.report('clickhouse', `loading again from position ${fromSeq + 1}${lost}`)
    } finally {
      this.isReloading = false
    }
  }

  /** An earlier state may have runs that were deleted since. */
  private async deleteRunsAgain(): Promise<void> {
    await this.deps.sql`update run_erasures set done_at = null, released_epochs = '{}'`
  }

  private report(store: Store, detail: string): void {
    this.incidents.push({ store, noticedAt: this.deps.clock.now(), detail })
    this.deps.onSetBack(store)
    this.deps.log.error(`${store} has gone back to an earlier state (restored or lost): ${detail}`, { store })
  }

  private now(): Date {
    return new Date(this.deps.clock.now())
  }
}

async function readPostgresMark(sql: Sql, journalId: string): Promise<PostgresMark> {
  const [mark] = await sql<PostgresMark[]>`
    select beat, columnar_beat as "columnarBeat", epoch, end_seq as "endSeq" from store_marks
    where journal_id = ${journalId}`
  return mark ?? { beat: 0, columnarBeat: 0, epoch: '', endSeq: 0 }
}
