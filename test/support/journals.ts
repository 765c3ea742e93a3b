import { randomBytes } from 'node:crypto'
import type { NatsConnection } from '@nats-io/transport-node'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { createLog, type Log } from '../../src/base/log.ts'
import {
  type Epoch,
  type Frame,
  type Gap,
  type JournalReader,
  lastSeqOf,
  newEpoch,
  withEpoch,
} from '../../src/stores/journal/journal.ts'
import {
  type LocalJournal,
  type LocalJournalOptions,
  openLocalJournal,
} from '../../src/stores/journal/local/journal.ts'
import type { LogJournal } from '../../src/stores/journal/log/log-journal.ts'
import { type NatsJournalOptions, openNatsJournal } from '../../src/stores/journal/nats/journal.ts'
import { type NatsReader, type NatsReaderOptions, openNatsReader } from '../../src/stores/journal/nats/reader.ts'
import type { FoundJournal, StartDecision } from '../../src/stores/journal/start.ts'
import type { Closable } from './closed-after-each.ts'
import { batchOf, runRef } from './events.ts'
import { hasNats, natsConnection, natsServer } from './nats.ts'
import { shared, temporaryDirectory } from './teardown.ts'

export interface OpenOptions {
  readonly clock?: Clock
  readonly earliest?: () => number
  readonly log?: Log
  readonly maxBytes?: number
  readonly keepBytes?: number
  readonly paceBytes?: number
  readonly tailBytes?: number
  /** Rows are deleted in units of about this size. */
  readonly unitBytes?: number
  readonly decideStart?: (found: FoundJournal) => Promise<StartDecision>
}

/** One log that can be opened as a journal again and again, by one owner at a time. */
export interface StoredJournal {
  open(options?: OpenOptions): Promise<LogJournal>
}

export interface Implementation {
  readonly name: string
  readonly isInstalled: boolean
  /** An empty log. @param track takes each journal that is opened */
  create(track?: Track): Promise<StoredJournal>
}

type Track = <T extends Closable>(opened: T) => T
const forget: Track = (opened) => opened

const SIZES = { maxBytes: 2 ** 40, keepBytes: 2 ** 40 }
const server = shared(() => natsServer())

/** Every implementation of the journal. */
export const JOURNALS: readonly Implementation[] = [
  {
    name: 'in local files',
    isInstalled: true,
    async create(track = forget) {
      const dir = await temporaryDirectory()
      return {
        open: async ({ unitBytes, ...options } = {}) =>
          track(await openLocal(dir, { ...(unitBytes === undefined ? {} : { segmentBytes: unitBytes }), ...options })),
      }
    },
  },
  {
    name: 'in a JetStream stream',
    isInstalled: hasNats,
    create: async (track) => new NatsRig(await natsConnection([await server()]), 1, track),
  },
]

/** A journal in the files of `dir`. */
export function openLocal(dir: string, options: Partial<LocalJournalOptions> = {}): Promise<LocalJournal> {
  return openLocalJournal({ dir, clock: systemClock, log: createLog('silent'), ...SIZES, ...options })
}

let streams = 0

/** A stream, and what its owners would keep in Postgres. */
export class NatsRig implements StoredJournal {
  readonly stream = `journal_${++streams}`
  readonly subject = `journal.${streams}`
  readonly sealKey = Buffer.alloc(32, streams)
  epochs: readonly Epoch[] = [{ epoch: newEpoch(), firstSeq: 1 }]
  generation = 0
  /** Gaps that owners or readers have found. */
  gaps: readonly Gap[] = []
  /** Why owners have lost the stream. */
  readonly lost: string[] = []
  /** Errors that owners or readers have logged. */
  readonly errors: string[] = []

  constructor(
    readonly nc: NatsConnection,
    readonly replicas = 1,
    private readonly track: Track = forget,
  ) {}

  private get common() {
    const { stream, subject, sealKey, epochs, gaps, nc } = this
    const onGap = (_gap: Gap, all: readonly Gap[]) => {
      this.gaps = all
    }
    const log = { ...createLog('silent'), error: (message: string) => void this.errors.push(message) }
    return { stream, subject, sealKey, epochs, gaps, nc, onGap, log }
  }

  /** The next owner. */
  async open(options: OpenOptions & Partial<NatsJournalOptions> = {}): Promise<LogJournal> {
    const beginEpoch = async (firstSeq: number) => {
      const epoch = { epoch: newEpoch(), firstSeq }
      this.epochs = withEpoch(this.epochs, epoch)
      return epoch
    }
    const journal = await openNatsJournal({
      ...this.common,
      replicas: this.replicas,
      generation: ++this.generation,
      clock: systemClock,
      maxBytes: 2 ** 28,
      keepBytes: 2 ** 28,
      // Not more than small test machines can reserve.
      streamBytes: 2 ** 28,
      beginEpoch,
      onLost: (reason) => this.lost.push(reason),
      ...options,
    })
    return this.track(journal)
  }

  async read(options: Partial<NatsReaderOptions> = {}): Promise<NatsReader> {
    return this.track(await openNatsReader({ ...this.common, ...options }))
  }
}

/** Appends one call of events with `marks` in their payloads, each padded to about `bytes`. */
export function appendMarks(journal: LogJournal, marks: readonly number[], run = runRef(), bytes = 0) {
  const padding = () => (bytes === 0 ? undefined : randomBytes(bytes / 2).toString('hex'))
  const events = marks.map((mark) => ({ type: 'mark', payload: { mark: `<${mark}>`, padding: padding() } }))
  return journal.appendEvents(batchOf(run, events))
}

/** The marks of a frame's rows. */
export function marksOf(frame: Frame): number[] {
  const text = Buffer.from(frame.block).toString('latin1')
  const marks = [...text.matchAll(/"mark":"<(\d+)>"/g)].map(([, mark]) => Number(mark))
  const spanned = frame.runs.reduce((sum, { rows }) => sum + rows, 0)
  if (marks.length !== frame.rows || spanned !== frame.rows) throw new Error(`frame ${frame.firstSeq} is not whole`)
  return marks
}

/** Every mark of the log by position, as a consumer that starts at `afterSeq` reads them. */
export async function marksAfter(
  journal: JournalReader,
  afterSeq = 0,
  maxBytes = 10_000,
): Promise<Map<number, number>> {
  const marks = new Map<number, number>()
  for (const frame of await framesAfter(journal, afterSeq, maxBytes))
    marksOf(frame).forEach((mark, index) => {
      if (frame.firstSeq + index > afterSeq) marks.set(frame.firstSeq + index, mark)
    })
  return marks
}

/** Every frame of the log, as a consumer that starts at `afterSeq` reads them. */
export async function framesAfter(journal: JournalReader, afterSeq = 0, maxBytes = 20_000): Promise<Frame[]> {
  const frames: Frame[] = []
  for (let position = afterSeq; ; ) {
    const read = await journal.read(position, maxBytes)
    if (read.length === 0) return frames
    for (const frame of read) {
      if (lastSeqOf(frame) <= position || (frames.length > 0 && frame.firstSeq <= position))
        throw new Error(`frame ${frame.firstSeq} comes after ${position}`)
      // Memory of blocks is used again.
      frames.push({ ...frame, block: Buffer.from(frame.block) })
      position = lastSeqOf(frame)
    }
  }
}

/** All of a frame, to be compared. */
export function textOf({ kind, firstSeq, rows, runs, receivedAt, block }: Frame): string {
  return JSON.stringify([kind, firstSeq, rows, runs, receivedAt, Bun.hash(block).toString()])
}

/** The ranges of positions whose rows are missing. */
export function gapsOf({ gaps }: JournalReader): [number, number][] {
  return gaps.map(({ afterSeq, throughSeq }) => [afterSeq, throughSeq])
}
