import type { Log } from '../../../base/log.ts'
import { type Epoch, epochAt } from '../journal.ts'
import { FrameSeal, readFrame, type StoredFrame } from '../log/frame.ts'
import type { GapList } from '../log/storage.ts'
import { type LogState, type MessageHead, openState, type StreamMessage } from './message.ts'

/** How many problems are remembered, so that each is logged once. */
const REPORTED_MAX = 1_000

/** Where reading of the stream continues. */
export interface ChainPoint {
  readonly streamSeq: number
  /** The position of the first row there. */
  readonly nextSeq: number
  /** The check of the commit or state message before; null when it is unknown: then any genuine message may follow. */
  readonly before: Buffer | null
  /** Rows up to here were read before the stream was set back: reading them again is not reported as damage. */
  readonly readSeq?: number
}

/** A whole commit whose frames are genuine. */
export interface ReadCommit {
  readonly head: MessageHead
  readonly frames: readonly StoredFrame[]
  /** The payload, which the blocks of the frames are views into. */
  readonly memory: Buffer
  /** The check of the commit or state message before. */
  readonly before: Buffer
  /** The check of the last frame. */
  readonly check: Buffer
}

export type ChainStep =
  | { readonly kind: 'commit'; readonly commit: ReadCommit; readonly next: ChainPoint }
  | { readonly kind: 'state'; readonly state: LogState; readonly next: ChainPoint }
  /** Nothing to read here: a group that lacks a part, a fence, a damaged or foreign message. */
  | { readonly kind: 'skipped'; readonly next: ChainPoint }
  /** A group continues after the given messages, up to the message before `untilStreamSeq`. */
  | { readonly kind: 'incomplete'; readonly untilStreamSeq: number }

/** The log that a chain belongs to. */
export interface ChainedLog {
  readonly sealKey: Buffer
  readonly epochs: readonly Epoch[]
  readonly gapList: Pick<GapList, 'add'>
  readonly loadedSeq: () => number
  /** Called with the epoch that a state message names, before what follows it is read. */
  adopt(epoch: Epoch): void
}

/**
 * Reads a stream message by message and checks that nothing is missing: each commit is sealed for its place in the
 * stream, and includes the check of the one before it. What is missing or damaged is reported and becomes a gap.
 */
export class Chain {
  /** The messages whose problems are in the log already. */
  private readonly reported = new Set<number>()

  constructor(
    private readonly chained: ChainedLog,
    private readonly log: Log,
  ) {}

  /**
   * Reads the commit or state message at `point`.
   * @param messages those from `point` on, consecutive; null for one that the stream does not have
   */
  step(point: ChainPoint, messages: readonly (StreamMessage | null)[]): ChainStep {
    const [first] = messages
    const { streamSeq } = point
    const head = first?.head
    if (first === null || head === undefined) {
      return this.skip(point, 1, first === null ? 'a message is missing' : 'a message is foreign')
    }
    if (head.kind === 'state') return this.state(point, first.data)
    if (head.kind === 'fence') return { kind: 'skipped', next: { ...point, streamSeq: streamSeq + 1 } }
    // Reading may start within a group only if the group's beginning is missing.
    if (head.part > 0 || head.groupSeq !== streamSeq) return this.skip(point, 1, 'a group lacks its beginning')
    const mismatch = messages.findIndex((message, index) => index < head.parts && !isPart(message, head, index))
    if (mismatch < 0 && messages.length < head.parts)
      return { kind: 'incomplete', untilStreamSeq: streamSeq + head.parts }
    // Its publisher stopped in the middle: no part of it counts.
    if (mismatch > 0) return { kind: 'skipped', next: { ...point, streamSeq: streamSeq + mismatch } }
    return this.commit(point, head, messages.slice(0, head.parts) as StreamMessage[])
  }

  private commit(point: ChainPoint, head: MessageHead, parts: readonly StreamMessage[]): ChainStep {
    const commit = readCommit(this.chained, head, parts)
    if (commit === undefined) return this.skip(point, parts.length, 'a commit is damaged or forged')
    this.compare(point, commit.before, head.firstSeq)
    const streamSeq = point.streamSeq + parts.length
    const next = { ...point, streamSeq, nextSeq: head.endSeq + 1, before: commit.check }
    if (head.firstSeq >= point.nextSeq) return { kind: 'commit', commit, next }
    if (head.endSeq > (point.readSeq ?? 0))
      this.report(point.streamSeq, 'a commit repeats positions', { first_seq: head.firstSeq })
    return { kind: 'skipped', next: { ...next, nextSeq: Math.max(point.nextSeq, next.nextSeq) } }
  }

  private state(point: ChainPoint, data: Buffer): ChainStep {
    const opened = openState(this.chained.sealKey, point.streamSeq, data)
    if (opened === undefined) return this.skip(point, 1, 'a state message is damaged or forged')
    const { state, check } = opened
    this.chained.adopt(state.epoch)
    // Earlier positions belong to another journal if this one has never assigned any; ClickHouse lacks those after `loadedSeq`.
    const isFirst = point.nextSeq === 1 && state.foundSeq === 0
    const expected = isFirst ? { ...point, nextSeq: state.loadedSeq + 1 } : point
    this.compare(expected, state.before, state.endSeq + 1, state.loadedSeq)
    const nextSeq = Math.max(point.nextSeq, state.endSeq + 1)
    return { kind: 'state', state, next: { ...point, streamSeq: point.streamSeq + 1, nextSeq, before: check } }
  }

  /** Compares what follows `point` with what must follow it. */
  private compare(
    { streamSeq, nextSeq, before }: ChainPoint,
    foundBefore: Buffer,
    foundSeq: number,
    loadedSeq = this.chained.loadedSeq(),
  ): void {
    if (before !== null && !before.equals(foundBefore)) {
      this.report(streamSeq, 'a message does not continue the one before', {
        expected_seq: nextSeq,
        found_seq: foundSeq,
      })
    }
    if (foundSeq > nextSeq) this.chained.gapList.add({ afterSeq: nextSeq - 1, throughSeq: foundSeq - 1, loadedSeq })
  }

  private skip(point: ChainPoint, messages: number, problem: string): ChainStep {
    this.report(point.streamSeq, problem, {})
    return { kind: 'skipped', next: { ...point, streamSeq: point.streamSeq + messages, before: null } }
  }

  private report(streamSeq: number, problem: string, details: object): void {
    if (this.reported.has(streamSeq)) return
    if (this.reported.size < REPORTED_MAX) this.reported.add(streamSeq)
    this.log.error(`journal: the stream is damaged: ${problem}`, { stream_seq: streamSeq, ...details })
  }
}

/** Whether a message is the part with this index of the group that `head` belongs to. */
export function isPart(
  message: StreamMessage | null,
  { groupSeq, parts, generation }: MessageHead,
  index: number,
): boolean {
  const head = message?.head
  return (
    head?.kind === 'commit' &&
    head.groupSeq === groupSeq &&
    head.part === index &&
    head.parts === parts &&
    head.generation === generation
  )
}

/** The commit in all parts of a group; undefined when any of it is damaged or does not belong at this place. */
export function readCommit(
  { sealKey, epochs }: ChainedLog,
  head: MessageHead,
  parts: readonly StreamMessage[],
): ReadCommit | undefined {
  const memory = payloadOf(head, parts)
  if (memory === undefined) return undefined
  const seal = new FrameSeal(sealKey, epochAt(epochs, head.firstSeq), head.groupSeq)
  const frames: StoredFrame[] = []
  let { firstSeq: nextSeq } = head
  let before: Buffer | undefined
  let check: Buffer | undefined
  for (let at = 0; at < memory.length; ) {
    const read = readFrame(memory, at, seal, at)
    if (read.status !== 'frame' || read.head.firstSeq !== nextSeq) return undefined
    if (check !== undefined && !check.equals(read.head.before)) return undefined
    before ??= read.head.before
    frames.push(read.frame)
    nextSeq += read.head.rows
    check = read.head.check
    at = read.head.end
  }
  if (before === undefined || check === undefined || nextSeq !== head.endSeq + 1) return undefined
  return { head, frames, memory, before, check: Buffer.from(check) }
}

function payloadOf({ isCompressed }: MessageHead, parts: readonly StreamMessage[]): Buffer | undefined {
  const stored = parts.length === 1 ? parts[0].data : Buffer.concat(parts.map(({ data }) => data))
  try {
    return isCompressed ? Bun.zstdDecompressSync(stored) : stored
  } catch {
    return undefined
  }
}
