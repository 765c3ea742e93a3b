import { assert } from '../../base/assert.ts'
import { EventBlock } from '../blocks/event-block.ts'
import { RecordBlock } from '../blocks/record-block.ts'
import type { Frame } from '../journal.ts'
import { type AppendPoint, type FrameDraft, frameBytes, writeFrame } from './frame.ts'

/** The frames of one commit, as they are stored. */
export interface Commit {
  readonly buffer: Buffer
  readonly frames: readonly Frame[]
  /** The check of the last frame. */
  readonly check: Buffer
  /** The position of the first row of each kind. */
  readonly first: Record<Frame['kind'], number>
  readonly endSeq: number
  readonly outboxIds: ReadonlyMap<Frame['kind'], readonly string[]>
}

/** Reuses the memory of commits, because allocation is expensive. */
export interface BufferPool {
  /** A buffer for `bytes` bytes; what it has beyond them is zero. */
  take(bytes: number): Buffer
  /** Returns a buffer to the pool. It must not be used any more. */
  give(buffer: Buffer): void
}

/** Rows waiting for the next commit. */
export class PendingRows {
  readonly events = new EventBlock()
  readonly runs = RecordBlock.ofRuns()
  readonly tasks = RecordBlock.ofTasks()

  get bytes(): number {
    return this.events.bytes + this.runs.bytes + this.tasks.bytes
  }

  /**
   * Lays out the collected rows and empties the collection, also when it throws: rows whose calls are refused must not be
   * part of the next commit. Records precede events: a run's start precedes its events.
   */
  build(firstSeq: number, receivedAt: number, epoch: string, point: AppendPoint, pool: BufferPool): Commit {
    try {
      return this.layOut(firstSeq, receivedAt, epoch, point, pool)
    } finally {
      this.clear()
    }
  }

  private layOut(firstSeq: number, receivedAt: number, epoch: string, point: AppendPoint, pool: BufferPool): Commit {
    const first = { run: firstSeq, task: firstSeq + this.runs.rows, event: firstSeq + this.runs.rows + this.tasks.rows }
    const endSeq = first.event + this.events.rows - 1
    const drafts = this.drafts(first, receivedAt, epoch)
    const used = drafts.reduce((sum, { draft }) => sum + frameBytes(draft), 0)
    const buffer = pool.take(used)
    drafts[drafts.length - 1].draft.padding = buffer.length - used
    const frames: Frame[] = []
    let at = 0
    let nextSeq = firstSeq
    let { before: check } = point
    for (const { draft, pieces } of drafts) {
      const { kind, rows, runs } = draft
      assert(draft.firstSeq === nextSeq, 'the frames of a commit are consecutive')
      nextSeq += rows
      const written = writeFrame(buffer, at, draft, pieces, { seal: point.seal, at: point.at + at, before: check })
      frames.push({ kind, firstSeq: draft.firstSeq, rows, receivedAt, runs, block: written.block })
      check = written.check
      at += frameBytes(draft)
    }
    assert(nextSeq === endSeq + 1, 'a commit ends with its last frame')
    const outboxIds = new Map(drafts.map(({ draft }) => [draft.kind, draft.outboxIds]))
    return { buffer, frames, check, first, endSeq, outboxIds }
  }

  /** Empties the collection. */
  clear(): void {
    for (const block of [this.runs, this.tasks, this.events]) block.clear()
  }

  private drafts(first: Record<Frame['kind'], number>, receivedAt: number, epoch: string) {
    return [this.runs, this.tasks, this.events]
      .map((block, index) => ({ block, kind: (['run', 'task', 'event'] as const)[index] }))
      .filter(({ block }) => block.rows > 0)
      .map(({ block, kind }) => {
        const pieces = block.build(first[kind], receivedAt, epoch)
        const draft: FrameDraft = {
          kind,
          firstSeq: first[kind],
          rows: block.rows,
          receivedAt,
          runs: block.runs,
          outboxIds: [...block.outboxIds],
          blockBytes: pieces.reduce((sum, piece) => sum + piece.length, 0),
          padding: 0,
        }
        return { draft, pieces }
      })
  }
}
