import type { Log } from '../../base/log.ts'
import type { SinkPosition, SinkPositionStore } from '../../sink/position.ts'

const RETRY_MS = 250

/** The sink's position in a file, which Postgres follows a moment later, for processes that wait for rows in SQL. */
export class MirroredPosition implements SinkPositionStore {
  private mirroredSeq = -1
  private isMirroring = false
  private isClosed = false

  /** @param mirror stores a position in Postgres; returns false once no process needs it any more */
  constructor(
    private readonly file: SinkPositionStore,
    private readonly mirror: (position: SinkPosition) => Promise<boolean>,
    private readonly log: Log,
  ) {
    void this.mirrorAll()
  }

  get(): SinkPosition {
    return this.file.get()
  }

  async set(changes: Partial<SinkPosition>): Promise<void> {
    await this.file.set(changes)
    void this.mirrorAll()
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.file.close()
  }

  /** The file decides, so a failure does not concern the sink. */
  private async mirrorAll(): Promise<void> {
    if (this.isMirroring) return
    this.isMirroring = true
    while (!this.isClosed && this.get().loadedSeq !== this.mirroredSeq) {
      const position = this.get()
      try {
        this.isClosed ||= !(await this.mirror(position))
        this.mirroredSeq = position.loadedSeq
      } catch (error) {
        this.log.info('sink: cannot store the position in Postgres; trying again', { error })
        await Bun.sleep(RETRY_MS)
      }
    }
    this.isMirroring = false
  }
}
