import type { Log } from '../../base/log.ts'
import type { Epoch, Frame, Gap } from '../journal.ts'
import { withEpoch } from '../log/epochs.ts'
import { GapList } from '../log/gaps.ts'
import type { StoredLog } from '../log/storage.ts'
import { Chain } from './chain.ts'
import { Reads } from './reads.ts'
import { answered, type NatsStreamOptions, Stream } from './stream.ts'

/** How long a read waits for an answer of NATS: elections and restarts take some seconds. */
const READ_SETTLE_MS = 5_000

export interface NatsLogOptions extends NatsStreamOptions {
  /** In order; the last one is the current epoch. */
  readonly epochs: readonly Epoch[]
  /** The gaps that are known already. */
  readonly gaps?: readonly Gap[]
  /** Called when rows are found missing, with the gap and the list of all, which the caller should store. */
  readonly onGap?: (gap: Gap, all: readonly Gap[]) => void
  /** How much of the newest data stays in memory for consumers. */
  readonly tailBytes?: number
  readonly log: Log
}

/** What the owner of a stream and its readers have in common. */
export class NatsLog implements StoredLog {
  readonly chain: Chain
  readonly reads: Reads
  readonly gapList: GapList
  readonly sealKey: Buffer
  epochs: readonly Epoch[]
  /** The position of the oldest row, or of the next one; undefined until it is known. */
  startSeq: number | undefined
  /** The last message of a whole commit; 0 when there is none. */
  endStreamSeq = 0

  private constructor(
    readonly stream: Stream,
    options: NatsLogOptions,
    /** Rows up to here are in ClickHouse. */
    readonly loadedSeq: () => number,
    private readonly onEpoch: (epoch: Epoch) => void,
  ) {
    const { log, onGap, sealKey } = options
    this.sealKey = sealKey
    this.epochs = options.epochs
    this.gapList = new GapList(options.gaps ?? [], log, (gap, all) => onGap?.(gap, all))
    this.chain = new Chain({
      sealKey,
      epochs: () => this.epochs,
      loadedSeq,
      onGap: (gap) => this.gapList.add(gap),
      onEpoch: (epoch) => this.adopt(epoch),
      log,
    })
    this.reads = new Reads({ stream, chain: this.chain, endStreamSeq: () => this.endStreamSeq })
  }

  /**
   * Opens the log; reads nothing yet.
   * @param onEpoch called when the stream is found to have a newer epoch than the caller knows
   */
  static async open(
    options: NatsLogOptions,
    loadedSeq: () => number,
    onEpoch: (epoch: Epoch) => void = () => {},
  ): Promise<NatsLog> {
    return new NatsLog(await Stream.open(options), options, loadedSeq, onEpoch)
  }

  /** Makes an epoch the current one if it is newer. */
  adopt(epoch: Epoch): void {
    if (epoch.epoch === this.epoch.epoch || epoch.firstSeq <= this.epoch.firstSeq) return
    this.epochs = withEpoch(this.epochs, epoch)
    this.onEpoch(epoch)
  }

  get gaps(): readonly Gap[] {
    return this.gapList.all
  }

  /** @throws ApiError UNAVAILABLE when NATS does not answer */
  read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    return answered(READ_SETTLE_MS, () => this.reads.read(afterSeq, maxBytes))
  }

  get epoch(): Epoch {
    return this.epochs[this.epochs.length - 1]
  }
}
