import type { Clock } from '../clock.ts'
import { type ColumnarClient, ColumnarError } from '../columnar/client.ts'
import { migrateClickHouse } from '../columnar/migrate.ts'
import type { Sink } from '../columnar/sink.ts'
import type { Journal } from '../journal/journal.ts'
import type { FoundJournal } from '../journal/start.ts'
import type { Log } from '../log.ts'
import { Loops } from '../ops/supervise.ts'
import type { Sql } from '../postgres/connect.ts'
import type { RetentionWatermarks } from '../retention/retention-watermarks.ts'
import { highestSeq, noteColumnarMark, readColumnarMark } from './columnar-marks.ts'
import { type ColumnarMark, type Marks, type PostgresMark, type Store, setBack } from './compare.ts'
import { noteGap, shareGaps } from './gaps.ts'
import { isMarkedRestored, readJournalId, unmarkRestored, WatermarkFile } from './watermark-file.ts'

export interface WatermarkDeps {
  readonly sql: Sql
  readonly columnar: ColumnarClient
  readonly dataDir: string
  /** Where the journal is. */
  readonly journalDir: string
  readonly clock: Clock
  readonly log: Log
  /** Where the comparisons are supervised together with others. */
  readonly loops?: Loops
  /** Time between two comparisons, milliseconds. */
  readonly intervalMs?: number | undefined
  /** Told of each store that was found to have gone back. */
  readonly onSetBack: (store: Store) => void
}

/** What depends on where the stores stand. */
export interface WatermarkParts {
  readonly journal: Journal
  readonly sink: Pick<Sink, 'loadedSeq' | 'reload'>
  readonly retentionWatermarks: Pick<RetentionWatermarks, 'raise'>
  /** Forgets what was learned from ClickHouse. */
  readonly forgetColumnar: () => void
  /** Postgres went back while the service runs: what is in memory is of a later state, so the service must start again. */
  readonly onPostgresBack: () => void
}

/** A store that went back, as operators are told. */
export interface Incident {
  readonly store: Store
  readonly noticedAt: number
  readonly detail: string
}

/** A journal that went back. */
export interface JournalBack {
  /** That of before. */
  readonly epoch: string
  /** The last position of its files. */
  readonly filesSeq: number
  /** Positions up to here may have been given. */
  readonly afterSeq: number
  /** Everything up to here is in its files, or in ClickHouse. */
  readonly loadedSeq: number
}

const INTERVAL_MS = 5_000
const STOP_MS = 2_000
/** ClickHouse's for a table or a database that is not there. */
const MISSING_TYPES: readonly string[] = ['UNKNOWN_TABLE', 'UNKNOWN_DATABASE']
const NOTHING_LOADED: ColumnarMark = { beat: 0, loadedSeq: 0, settledSeq: 0 }

/**
 * Notices when Postgres, the journal or ClickHouse has gone back to an earlier state (a restored backup, a lost disk): each keeps
 * how far the others had come, see {@link Marks}. They are compared at the start and every few seconds.
 */
export class Watermarks {
  readonly incidents: Incident[] = []
  private parts: WatermarkParts | undefined
  private endLoop: (() => Promise<void>) | undefined
  private beat = 0
  private columnarBeat = 0
  /** What the last beat said. */
  private said = ''
  private isReloading = false
  private journalBack: JournalBack | undefined

  private constructor(
    private readonly deps: WatermarkDeps,
    private readonly journalId: string,
    private readonly file: WatermarkFile,
    private readonly marks: Marks,
    /** What had gone back when the service started. */
    private readonly found: ReadonlySet<Store>,
    /** All three were put back together, from a backup. */
    private readonly isRestored: boolean,
  ) {}

  /** Compares the stores. Nothing else may have written to them yet. */
  static async open(deps: WatermarkDeps): Promise<Watermarks> {
    const journalId = readJournalId(deps.dataDir)
    const file = WatermarkFile.read(deps.journalDir)
    const [postgres, columnar] = await Promise.all([
      readPostgresMark(deps.sql, journalId),
      readColumnarMark(deps.columnar, journalId),
    ])
    const marks: Marks = { postgres, file: file.get(), columnar }
    return new Watermarks(deps, journalId, file, marks, setBack(marks), isMarkedRestored(deps.dataDir))
  }

  /**
   * Whether the journal lacks positions that another store has seen; then where its positions are to go on.
   * @param found the journal's directory, as it is
   */
  async checkJournal(found: FoundJournal): Promise<JournalBack | undefined> {
    const { postgres, columnar } = this.marks
    const knownSeq = Math.max(found.endSeq, found.acknowledgedSeq)
    const isBehind = this.found.has('journal') || Math.max(postgres.endSeq, columnar.loadedSeq) > knownSeq
    const storedSeq = await highestSeq(this.deps.columnar, isBehind ? '' : found.epoch, isBehind ? 0 : knownSeq)
    if (!isBehind && storedSeq === 0 && !this.isRestored) return undefined
    // One more than is known: what came after the last one that others saw is lost as well.
    const afterSeq = Math.max(knownSeq, postgres.endSeq, columnar.loadedSeq, storedSeq) + 1
    const loadedSeq = Math.max(found.endSeq, columnar.loadedSeq)
    const epoch = knownSeq > 0 ? found.epoch : postgres.epoch
    this.journalBack = { epoch, filesSeq: found.endSeq, afterSeq, loadedSeq }
    return this.journalBack
  }

  /** What ClickHouse is known to have of the watermarks: params of a query that wants to be sure that it still has it. */
  columnarMark(): { readonly journal: string; readonly beat: number } {
    return { journal: this.journalId, beat: this.columnarBeat }
  }

  /** Deals with what was found at the start, then watches. */
  async start(parts: WatermarkParts): Promise<void> {
    this.parts = parts
    const { postgres, file, columnar } = this.marks
    this.columnarBeat = Math.max(file.columnarBeat, postgres.columnarBeat, columnar.beat)
    await shareGaps(this.deps)
    if (this.journalBack !== undefined) await this.dealWithJournal(this.journalBack)
    if (this.found.has('postgres')) await this.postgresBack()
    if (this.found.has('clickhouse')) await this.columnarBack(columnar)
    // From here on the three agree, so what was found is dealt with by now.
    this.beat = Math.max(postgres.beat, file.beat, columnar.beat)
    await this.deps.sql`
      insert into journal_watermarks (journal_id, beat, columnar_beat, epoch, end_seq, loaded_seq, seen_at)
      values (${this.journalId}, ${this.beat}, ${this.columnarBeat}, ${parts.journal.epoch}, 0, 0, ${this.now()})
      on conflict (journal_id) do update set beat = excluded.beat, columnar_beat = excluded.columnar_beat`
    await this.attempt()
    if (this.isRestored) unmarkRestored(this.deps.dataDir)
    const { log, loops = new Loops(log), intervalMs = INTERVAL_MS } = this.deps
    this.endLoop = loops.repeat('comparison of the stores', intervalMs, () => this.round())
  }

  /** Ends with a last beat, so that a start after this one knows all that was. */
  async stop(): Promise<void> {
    await Promise.race([this.endLoop?.().then(() => this.attempt()), Bun.sleep(STOP_MS)])
  }

  /** One comparison, and a beat if there is something to say. */
  private async round(): Promise<void> {
    await this.beatOnce()
    await this.lookAtColumnar()
  }

  /** A round outside of the loop; one that fails is made up for by the next. */
  private async attempt(): Promise<void> {
    await this.round().catch((error) => this.deps.log.info('watermarks: the stores cannot be compared', { error }))
  }

  private async beatOnce(): Promise<void> {
    const { journal, sink } = this.parts!
    const { sql } = this.deps
    const loadedSeq = sink.loadedSeq()
    const says = `${journal.endSeq} ${loadedSeq} ${this.columnarBeat}`
    if (says === this.said) {
      const mark = await readPostgresMark(sql, this.journalId)
      if (mark.beat < this.beat) this.parts!.onPostgresBack()
      return
    }
    const next = this.beat + 1
    // A beat whose answer was lost may have been written.
    const written = await sql`
      update journal_watermarks set beat = ${next}, columnar_beat = ${this.columnarBeat}, epoch = ${journal.epoch},
        end_seq = ${journal.endSeq}, loaded_seq = ${loadedSeq}, seen_at = ${this.now()}
      where journal_id = ${this.journalId} and beat in (${this.beat}, ${next})`
    if (written.count === 0) return this.explainPostgres()
    this.beat = next
    await this.file.set({ beat: next, columnarBeat: this.columnarBeat })
    this.said = says
  }

  /** Our row is not as we left it. */
  private async explainPostgres(): Promise<void> {
    const mark = await readPostgresMark(this.deps.sql, this.journalId)
    if (mark.beat < this.beat) return this.parts!.onPostgresBack()
    throw new Error('another process uses a copy of this journal: each process needs a DATA_DIR of its own')
  }

  private async lookAtColumnar(): Promise<void> {
    const { columnar } = this.deps
    const { journal, sink } = this.parts!
    const mark = await this.readColumnar()
    if (mark.beat < this.columnarBeat) return this.columnarBack(mark)
    if (mark.beat === this.beat || this.isReloading) return
    const loadedSeq = sink.loadedSeq()
    if (loadedSeq === mark.loadedSeq && mark.beat > 0) return
    const { journalId, beat } = this
    await noteColumnarMark(columnar, { journalId, beat, epoch: journal.epoch, loadedSeq })
    this.columnarBeat = beat
    await this.file.set({ beat, columnarBeat: beat })
  }

  /** Tables that are gone are made anew. */
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

  /** The new epoch has begun. Of what the files still hold it is not certain how much had been loaded. */
  private async dealWithJournal({ epoch, filesSeq, afterSeq, loadedSeq }: JournalBack): Promise<void> {
    const { sql, columnar, clock } = this.deps
    const { sink } = this.parts!
    if (sink.loadedSeq() < filesSeq) await sink.reload(sink.loadedSeq(), filesSeq)
    const reason = this.isRestored ? 'restored from a backup' : 'journal'
    await noteGap({ sql, columnar, now: clock.now() }, { epoch, afterSeq: loadedSeq, throughSeq: afterSeq, reason })
    if (!this.isRestored)
      this.report('journal', `a new epoch begins; what came after position ${loadedSeq} of ${epoch} is lost`)
  }

  /** Postgres gives less than it had. What retention deleted since is not known any more, so feeds do not rely on it. */
  private async postgresBack(): Promise<void> {
    const { journal, retentionWatermarks } = this.parts!
    await retentionWatermarks.raise([{ epoch: journal.epoch, workspaceId: null, seq: journal.startSeq - 1 }])
    this.report('postgres', 'what was created, changed, revoked or erased since then has to be done again')
  }

  /** Loads again what the journal still has; the rest is lost. */
  private async columnarBack(mark: ColumnarMark): Promise<void> {
    const { sql, columnar, clock } = this.deps
    const { journal, sink, retentionWatermarks, forgetColumnar } = this.parts!
    this.isReloading = true
    try {
      const [first] = await journal.read(0, 1)
      const keptFrom = (first?.firstSeq ?? journal.endSeq + 1) - 1
      if (mark.loadedSeq < keptFrom) {
        const epoch = journal.epochAt(mark.loadedSeq + 1)
        const lost = { epoch, afterSeq: mark.loadedSeq, throughSeq: keptFrom, reason: 'clickhouse' }
        await retentionWatermarks.raise([{ epoch: journal.epoch, workspaceId: null, seq: keptFrom }])
        await noteGap({ sql, columnar, now: clock.now() }, lost)
      }
      const fromSeq = Math.min(Math.max(mark.settledSeq, keptFrom), sink.loadedSeq())
      await sink.reload(fromSeq)
      forgetColumnar()
      this.columnarBeat = mark.beat
      const lost = mark.loadedSeq < keptFrom ? `; positions ${mark.loadedSeq + 1} to ${keptFrom} are lost` : ''
      this.report('clickhouse', `loading again from position ${fromSeq + 1}${lost}`)
    } finally {
      this.isReloading = false
    }
  }

  private report(store: Store, detail: string): void {
    this.incidents.push({ store, noticedAt: this.deps.clock.now(), detail })
    this.deps.onSetBack(store)
    this.deps.log.error(`${store} has gone back to an earlier state (restored, or lost): ${detail}`, { store })
  }

  private now(): Date {
    return new Date(this.deps.clock.now())
  }
}

async function readPostgresMark(sql: Sql, journalId: string): Promise<PostgresMark> {
  const [mark] = await sql<PostgresMark[]>`
    select beat, columnar_beat as "columnarBeat", epoch, end_seq as "endSeq" from journal_watermarks
    where journal_id = ${journalId}`
  return mark ?? { beat: 0, columnarBeat: 0, epoch: '', endSeq: 0 }
}
