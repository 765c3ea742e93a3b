import { ApiError } from '../../../base/errors.ts'
import type { Log } from '../../../base/log.ts'
import { Loops } from '../../../base/loops.ts'
import { parseCursor } from '../../../stores/journal/cursor.ts'
import type { JournalReader } from '../../../stores/journal/journal.ts'
import type { Feeds, PartitionRef, SourceLifetime } from '../partition.ts'

/** Reads the log of a partition, which any process may write. */
export interface SharedReader extends JournalReader {
  /**
   * Reads the current end of the log, and resolves once everything up to it can be read.
   * @param seenSeq a position that somebody says to have seen, in case the log does not know of it yet
   * @throws ApiError UNAVAILABLE
   */
  refreshEnd(seenSeq?: number): Promise<number>
  close(): Promise<void>
}

/** Reads a log for feeds. */
interface Source extends SourceLifetime {
  readonly hub: { stop(): Promise<void> }
}

interface SharedFeedsDeps<Of extends Source> {
  /** @param onEpoch called when the log has begun a new epoch, in which the cursors of open feeds mean nothing */
  readonly openReader: (partition: number, onEpoch: () => void) => Promise<SharedReader>
  readonly openSource: (reader: SharedReader, life: SourceLifetime) => Promise<Of>
  readonly log: Log
  readonly loops?: Loops
}

interface Opened<Of> {
  readonly reader: SharedReader
  readonly source: Of
  /** The `end` functions of the open feeds. */
  readonly users: Set<() => void>
  /** When the last feed was closed, on the monotonic clock. */
  idleSinceMs: number
}

const SWEEP_MS = 10_000
/** A reader without feeds is kept for this long. */
const IDLE_MS = 60_000

/**
 * The logs that this process reads for feeds, opened with the first feed of a partition and closed some time after the last.
 * Feeds read the shared log in every process, also in the partition's owner, so a change of owner does not affect them.
 */
export class SharedFeeds<Of extends Source> implements Feeds<Of> {
  private readonly opening = new Map<number, Promise<Opened<Of>>>()
  private readonly sources = new Map<number, Opened<Of>>()
  private readonly endSweep: () => Promise<void>

  constructor(private readonly deps: SharedFeedsDeps<Of>) {
    const { log, loops = new Loops(log) } = deps
    this.endSweep = loops.repeat('readers of feeds', SWEEP_MS, () => this.sweep())
  }

  async of({ partition }: PartitionRef, after?: string): Promise<Of> {
    const { source } = await this.ensure(partition)
    await source.refresh(after)
    return source
  }

  /** The current end of a partition's log. @throws ApiError UNAVAILABLE */
  async endSeq(partition: number): Promise<number> {
    return (await this.ensure(partition)).reader.refreshEnd()
  }

  /** The last position of an epoch that this process has read; 0 when it reads another one, or nothing. */
  seenSeq(partition: number, epoch: string): number {
    const reader = this.sources.get(partition)?.reader
    return reader?.epoch === epoch ? reader.endSeq : 0
  }

  opened(): readonly Of[] {
    return [...this.sources.values()].map(({ source }) => source)
  }

  /** Ends all feeds and closes their readers. */
  async stop(): Promise<void> {
    await this.endSweep()
    await Promise.allSettled(this.opening.values())
    await Promise.all([...this.sources.keys()].map((partition) => this.close(partition)))
  }

  private ensure(partition: number): Promise<Opened<Of>> {
    let opening = this.opening.get(partition)
    if (opening === undefined) {
      opening = this.openNow(partition)
      this.opening.set(partition, opening)
      opening.catch(() => this.opening.delete(partition))
    }
    return opening
  }

  private async openNow(partition: number): Promise<Opened<Of>> {
    const users = new Set<() => void>()
    let isOutdated = false
    const reader = await this.deps.openReader(partition, () => {
      isOutdated = true
      void this.close(partition)
    })
    const life: SourceLifetime = {
      mayLag: true,
      refresh: async (after) => void (await reader.refreshEnd(seenSeqOf(reader, after))),
      retain: (end) => {
        users.add(end)
        return () => {
          users.delete(end)
          opened.idleSinceMs = performance.now()
        }
      },
    }
    const opened: Opened<Of> = {
      reader,
      source: await this.deps.openSource(reader, life).catch(async (error) => {
        await reader.close()
        throw error
      }),
      users,
      idleSinceMs: performance.now(),
    }
    this.sources.set(partition, opened)
    if (!isOutdated) return opened
    // A new epoch has begun meanwhile.
    await this.close(partition)
    throw new ApiError('UNAVAILABLE', 'the log of this workspace begins a new epoch; try again', {
      retryAfterSeconds: 1,
    })
  }

  private async sweep(): Promise<void> {
    const now = performance.now()
    for (const [partition, { users, idleSinceMs }] of this.sources)
      if (users.size === 0 && now - idleSinceMs > IDLE_MS) await this.close(partition)
  }

  /** Closes a reader and ends its feeds; their clients reconnect. */
  private async close(partition: number): Promise<void> {
    const opened = this.sources.get(partition)
    if (opened === undefined) return
    this.sources.delete(partition)
    this.opening.delete(partition)
    for (const end of [...opened.users]) end()
    await opened.source.hub.stop()
    await opened.reader.close()
  }
}

/** The position in a log that a cursor says its holder has seen; 0 for a cursor of another log. */
function seenSeqOf({ epoch }: SharedReader, cursor: string | undefined): number {
  const parsed = cursor === undefined ? null : parseCursor(cursor)
  return parsed === null || (parsed.epoch ?? epoch) !== epoch ? 0 : parsed.seq
}
