import { expect } from 'bun:test'
import { ApiError } from '../../src/base/errors.ts'
import { type JournalReader, lastSeqOf } from '../../src/stores/journal/journal.ts'
import type { LogJournal } from '../../src/stores/journal/log/log-journal.ts'
import { runRef } from './events.ts'
import { eventually } from './eventually.ts'
import { appendMarks, marksAfter, marksOf, type NatsRig } from './journals.ts'

const WRITERS = 4
const ROWS_MAX = 5

/** Appends under faults, and then checks that nothing acknowledged is lost, and nothing is doubled. */
export class JournalLoad {
  /** Acknowledged marks by position. */
  readonly acknowledged = new Map<number, number>()
  /** Marks of calls that were rejected: each may be stored or not. */
  readonly rejected = new Set<number>()
  private mark = 0
  private stopped = false
  private writers: Promise<void>[] = []

  constructor(private journal: LogJournal) {}

  /** Writers that append one call after the other until {@link stop}. */
  start(): void {
    this.writers = Array.from({ length: WRITERS }, () => this.write())
  }

  /** Appends go to this owner from now on. */
  use(journal: LogJournal): void {
    this.journal = journal
  }

  /** Resolves once this many more calls have been acknowledged. */
  async progress(calls = 20): Promise<void> {
    const enough = this.acknowledged.size + calls
    await eventually(() => this.acknowledged.size >= enough)
  }

  async stop(): Promise<void> {
    this.stopped = true
    await Promise.all(this.writers)
  }

  private async write(): Promise<void> {
    const run = runRef()
    while (!this.stopped) {
      const marks = Array.from({ length: 1 + (this.mark % ROWS_MAX) }, () => this.mark++)
      try {
        const { firstSeq } = await appendMarks(this.journal, marks, run, this.mark % 7 === 0 ? 3_000 : 0)
        for (const [index, mark] of marks.entries()) this.acknowledged.set(firstSeq + index, mark)
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'UNAVAILABLE') throw error
        for (const mark of marks) this.rejected.add(mark)
        await Bun.sleep(5)
      }
    }
  }

  /** Checks what a log holds against what was acknowledged. */
  async verify(journal: JournalReader): Promise<void> {
    const stored = await marksAfter(journal, 0, 1e6)
    expect([...stored.keys()]).toEqual(Array.from({ length: journal.endSeq }, (_, index) => index + 1))
    expect([...this.acknowledged].filter(([seq, mark]) => stored.get(seq) !== mark)).toEqual([])
    expect(new Set(stored.values()).size).toBe(stored.size)
    const known = new Set([...this.acknowledged.values(), ...this.rejected])
    expect([...stored.values()].filter((mark) => !known.has(mark))).toEqual([])
  }
}

/** A consumer that follows a journal and remembers everything that it was given. */
export class Watcher {
  readonly seen: [seq: number, mark: number][] = []
  private readonly stopping = new AbortController()
  private readonly ended: Promise<void>

  constructor(private readonly journal: JournalReader) {
    this.ended = this.watch()
  }

  /** Checks that it was given exactly what the log holds, in order. */
  async verify(journal: JournalReader): Promise<void> {
    await eventually(() => (this.seen.at(-1)?.[0] ?? 0) >= journal.endSeq)
    this.stopping.abort()
    await this.ended
    expect(this.seen).toEqual([...(await marksAfter(journal, 0, 1e6))])
    expect(this.journal.endSeq).toBe(journal.endSeq)
  }

  /** Goes on where it was after a read that NATS did not answer, as every consumer does. */
  private async watch(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      await this.follow().catch((error) => {
        if (!(error instanceof ApiError) || error.code !== 'UNAVAILABLE') throw error
      })
    }
  }

  private async follow(): Promise<void> {
    for await (const frame of this.journal.follow(this.seen.at(-1)?.[0] ?? 0, this.stopping.signal)) {
      const last = this.seen.at(-1)?.[0] ?? 0
      if (frame.firstSeq !== last + 1) throw new Error(`frame ${frame.firstSeq} comes after position ${last}`)
      marksOf(frame).forEach((mark, index) => void this.seen.push([frame.firstSeq + index, mark]))
      if (lastSeqOf(frame) !== this.seen.at(-1)?.[0]) throw new Error('a frame has fewer rows than it says')
    }
  }
}

/** Opens the stream as its next owner until NATS answers. */
export function openAgain(rig: NatsRig): Promise<LogJournal> {
  return eventually(() => rig.open({ settleMs: 1_000 }))
}
