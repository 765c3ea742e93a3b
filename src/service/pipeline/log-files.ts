import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type LocalJournal, openLocalJournal } from '../../journal/local/journal.ts'
import { decideStart } from '../../journal/start.ts'
import { RetentionWatermarks } from '../../retention/retention-watermarks.ts'
import { SinkPositionFile } from '../../sink/position.ts'
import { Watermarks } from '../../store-marks/watermarks.ts'
import type { ServiceContext } from '../context.ts'
import type { PartitionLog } from './topology.ts'

export interface LogFilesOptions {
  /** Their directory in `DATA_DIR`. */
  readonly name: string
  readonly maxBytes: number
  readonly keepBytes: number
  /** The highest position that other stores have of the log, if its files are empty. */
  readonly storedSeq: () => Promise<number>
  /** See {@link Watermarks}. */
  readonly intervalMs: number | undefined
  /** Called when Postgres has gone back to an earlier state. */
  readonly onPostgresBack: () => void
}

/** A log in local files. */
export interface LogFiles extends PartitionLog {
  readonly journal: LocalJournal
  readonly retentionWatermarks: RetentionWatermarks
  readonly watermarks: Watermarks
}

/** Compares the stores, then opens the log, whose positions continue after every position that a store has seen. */
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
  const watermarks = await Watermarks.open({
    ...{ sql, columnar, dataDir, name, intervalMs, clock, log, loops, onSetBack },
  })
  const journal = await progress.during('opening the journal', () =>
    openLocalJournal({
      dir,
      maxBytes,
      keepBytes,
      decideStart: (found) => decideStart(found, { sinkPosition, sql, storedSeq, watermarks }),
      clock,
      log,
      onCommit: metrics.journalCommitted,
    }),
  )
  opened.defer(() => journal.close())
  const retentionWatermarks = new RetentionWatermarks(sql, journal.epoch)
  await retentionWatermarks.load()
  return {
    journal,
    position: await SinkPositionFile.open(dir),
    columnarMark: () => watermarks.columnarMark(),
    retentionWatermarks,
    watermarks,
    async watch({ sink, ids }, opened) {
      opened.defer(() => watermarks.stop())
      const forgetColumnar = () => ids.forgetFetched()
      await watermarks.start({ journal, sink, retentionWatermarks, forgetColumnar, onPostgresBack })
    },
  }
}
