import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { lastTick } from '../../sql/alerts/rows.ts'
import { type LocalJournal, openLocalJournal } from '../../stores/journal/local/journal.ts'
import { decideStart } from '../../stores/journal/start.ts'
import { SinkPositionFile } from '../../stores/sink/position.ts'
import { earliestTime } from '../retention/retention-clock.ts'
import { RetentionFloors } from '../retention/retention-floors.ts'
import { StoreMarks } from '../store-marks/store-marks.ts'
import type { ServiceContext } from './context.ts'
import type { PartitionLog } from './topology.ts'

interface LogFilesOptions {
  /** Their directory in `DATA_DIR`. */
  readonly name: string
  readonly maxBytes: number
  readonly keepBytes: number
  /** The highest position of the log in other stores; used if its files are empty. */
  readonly storedSeq: () => Promise<number>
  /** See {@link StoreMarks}. */
  readonly intervalMs: number | undefined
  /** Called when Postgres has gone back to an earlier state. */
  readonly onPostgresBack: () => void
}

/** A log in local files. */
interface LogFiles extends PartitionLog {
  readonly journal: LocalJournal
  readonly retentionFloors: RetentionFloors
  readonly storeMarks: StoreMarks
}

/** Compares the stores, then opens the log. Its positions continue after every position that any store has seen. */
export async function openLogFiles(
  context: ServiceContext,
  options: LogFilesOptions,
  opened: AsyncDisposableStack,
): Promise<LogFiles> {
  const { config, sql, columnar, clock, log, loops, metrics, progress } = context
  const { name, maxBytes, keepBytes, intervalMs, storedSeq, onPostgresBack } = options
  const { dataDir } = config
  const dir = join(dataDir, name)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const onSetBack = metrics.storeSetBack
  const sinkPosition = () => SinkPositionFile.read(dir)
  const storeMarks = await StoreMarks.open({ sql, columnar, dataDir, name, intervalMs, clock, log, loops, onSetBack })
  const earliest = await earliestTime(sql, clock)
  const journal = await progress.during('opening the journal', () =>
    openLocalJournal({
      dir,
      maxBytes,
      keepBytes,
      decideStart: async (found) => ({
        ...(await decideStart(found, { sinkPosition, sql, storedSeq, storeMarks })),
        decidedMs: await lastTick(sql),
      }),
      clock,
      earliest,
      log,
      onCommit: metrics.journalCommitted,
    }),
  )
  opened.defer(() => journal.close())
  const retentionFloors = new RetentionFloors(sql, journal.epoch)
  await retentionFloors.load()
  const position = await SinkPositionFile.open(dir)
  opened.defer(() => position.close())
  return {
    journal,
    position,
    columnarMark: () => storeMarks.columnarMark(),
    retentionFloors,
    storeMarks,
    async watch({ sink, ids, scoreIds }, opened) {
      opened.defer(() => storeMarks.stop())
      const forgetColumnar = () => {
        ids.forgetFetched()
        scoreIds.forgetFetched()
      }
      await storeMarks.start({ journal, sink, retentionFloors, forgetColumnar, onPostgresBack })
    },
  }
}
