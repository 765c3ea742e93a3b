import { sleep } from '../../base/abort.ts'
import { ApiError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { Loop } from '../../base/loops.ts'
import { Wakeup } from '../../base/wakeup.ts'
import { endOfGap, type Frame, type JournalReader, lastSeqOf } from '../../stores/journal/journal.ts'
import type { Activity } from './activity.ts'
import { ChannelSet, type Subscription, type WorkspaceChannels } from './channel.ts'
import { FairShare, TimeSlice } from './fair-share.ts'
import { isBySession } from './filter.ts'
import type { History } from './history.ts'
import { type Found, Matching } from './matching.ts'
import { type Packet, PacketCache, packetsOf } from './packet.ts'
import { type LookUpSessions, SessionsUnavailable } from './run-sessions.ts'

export interface ReplayDeps {
  readonly journal: JournalReader
  readonly history: History
  readonly lookUpSessions: LookUpSessions
  readonly log: Log
  /** Milliseconds on a monotonic clock. */
  readonly now?: (() => number) | undefined
  /** Whether no key can have been revoked unnoticed: `KeyRing.areRevocationsKnown`. Undefined: always. */
  readonly areRevocationsKnown?: (() => true | Promise<boolean>) | undefined
  /** Makes a subscription live if it has caught up. */
  readonly join: (subscription: Subscription) => boolean
}

/** Bytes of blocks read at once. */
const CHUNK_BYTES = 256 * 1024
/** Concurrent ClickHouse queries; the rest of its capacity is for other work. */
const HISTORY_READS_MAX = 4
/** A replay that needs ClickHouse fails when every read of this time has failed. */
const HISTORY_TIMEOUT_MS = 15_000
const HISTORY_RETRY_MS = 500
const SESSIONS_RETRY_MS = 500

/**
 * Brings subscriptions that are behind up to date. It sweeps through the journal like an elevator: it reads and decodes
 * a chunk once for all subscriptions positioned within it, continues with the chunk that the next higher one needs, and
 * starts over at the lowest. A thousand clients that reconnect at once thus cost about as much as one. Every other
 * chunk serves the subscription closest to the end, so that it need not wait for those far behind. Activity that the
 * journal no longer has is read from ClickHouse, separately for each subscription.
 *
 * Workspaces take turns at sending. One that has more to send than fits into its turn keeps that, sends it in later turns,
 * and takes part in chunks again afterwards: it holds up itself, but no other.
 */
export class Replay {
  /** Subscriptions in state `behind`. */
  private readonly waiting = new Set<Subscription>()
  private readonly reading = new Set<Subscription>()
  /** What workspaces have yet to send of a chunk. Their subscriptions take part in no other meanwhile. */
  private readonly sending = new Map<WorkspaceChannels, FairShare>()
  private sweptTo = 0
  /** The end of the journal when the sweep began. It starts over from there, even if some never catch up. */
  private sweepEnd = 0
  /** Set while the sessions of runs cannot be looked up: feeds that need them wait. */
  private isHolding = false
  /** Failures to look them up since the last success. */
  private failures = 0
  /** Whether the current chunk serves the subscription closest to the end. */
  private isForNewest = false
  private readonly wakeup = new Wakeup()
  private readonly slice: TimeSlice
  private readonly now: () => number

  constructor(private readonly deps: ReplayDeps) {
    this.now = deps.now ?? (() => performance.now())
    this.slice = new TimeSlice(this.now)
  }

  /** @param subscription in state `behind` */
  add(subscription: Subscription): void {
    this.waiting.add(subscription)
    this.wakeup.wake()
  }

  remove(subscription: Subscription): void {
    this.waiting.delete(subscription)
    this.reading.delete(subscription)
  }

  /** Checks again whether subscriptions can go live. */
  wake(): void {
    if (this.waiting.size > 0) this.wakeup.wake()
  }

  async run(signal: AbortSignal, loop: Loop): Promise<void> {
    while (!signal.aborted) {
      this.wakeup.clear()
      for (const subscription of this.waiting)
        if (this.isReady(subscription) && this.deps.join(subscription)) this.waiting.delete(subscription)
      const next = this.nextUp()
      loop.succeeded()
      if (next === undefined && this.sending.size === 0) {
        await this.wakeup.next(undefined, signal)
        continue
      }
      await this.slice.yield()
      await this.takeTurns()
      if (next !== undefined && (await this.areRevocationsKnown())) await this.advance(next, signal)
    }
  }

  private areRevocationsKnown(): true | Promise<boolean> {
    return this.deps.areRevocationsKnown?.() ?? true
  }

  /** Whether a waiting subscription has been sent everything up to its position, and can be sent more. */
  private isReady({ channel }: Subscription): boolean {
    return !this.sending.has(channel.workspace) && !(this.isHolding && isBySession(channel.filter))
  }

  /** Each workspace that has not sent all of its last chunk sends some more of it. */
  private async takeTurns(): Promise<void> {
    for (const [workspace, share] of this.sending) {
      await share.turn()
      if (share.isEmpty) this.sending.delete(workspace)
    }
  }

  /**
   * The lowest position at or above the end of the last sweep chunk, or the lowest of all when the sweep is over. Every other
   * call returns the highest of all instead.
   */
  private nextUp(): number | undefined {
    const { startSeq, endSeq } = this.deps.journal
    // Subscriptions older than the files wait while all ClickHouse reads are in use.
    const from = this.reading.size < HISTORY_READS_MAX ? 0 : startSeq - 1
    let above = Number.POSITIVE_INFINITY
    let lowest = Number.POSITIVE_INFINITY
    let highest = -1
    for (const subscription of this.waiting) {
      const { position } = subscription
      if (position < from || position >= endSeq || !this.isReady(subscription)) continue
      if (position >= this.sweptTo && position < above) above = position
      if (position < lowest) lowest = position
      if (position > highest) highest = position
    }
    if (highest < 0) return undefined
    this.isForNewest = !this.isForNewest
    if (this.isForNewest) return highest
    if (above < this.sweepEnd) return above
    this.sweepEnd = endSeq
    return lowest
  }

  /** Serves one chunk to all subscriptions that need some of it. */
  private async advance(position: number, signal: AbortSignal): Promise<void> {
    const { journal } = this.deps
    if (position + 1 < journal.startSeq) {
      this.sweep(journal.startSeq - 1)
      this.askHistory(signal)
      return
    }
    const recent = journal.recent(position, CHUNK_BYTES)
    const isInMemory = recent !== null && recent.length > 0
    const chunk = isInMemory ? chunkOf(recent) : await this.readFiles(position)
    if (!isInMemory) {
      const isKnown = this.areRevocationsKnown()
      if (isKnown !== true) return void (await isKnown)
    }
    // Segments may have been dropped in the meantime; then history has their rows.
    if (chunk === null || position + 1 < journal.startSeq) return
    const { frames, resumedSeq } = chunk
    // A damaged frame was skipped: subscriptions that need it get a gap.
    if (resumedSeq > position) this.skipTo(resumedSeq, position)
    if (frames.length > 0) await this.serve(frames, position, signal)
    this.sweep(Math.max(resumedSeq, endOf(frames, position)))
  }

  private sweep(to: number): void {
    if (!this.isForNewest) this.sweptTo = to
  }

  /** What follows `position` in the files; null when they cannot be read. */
  private async readFiles(position: number): Promise<Chunk | null> {
    const { journal } = this.deps
    const { endSeq } = journal
    try {
      const frames = upToGap(await journal.read(position, CHUNK_BYTES))
      return frames.length > 0 ? chunkOf(frames) : { frames, resumedSeq: endOfGap(journal, position, endSeq) }
    } catch (error) {
      // The file was dropped before it could be opened.
      if (position + 1 < journal.startSeq) return null
      for (const subscription of this.waiting)
        if (subscription.position === position && this.isReady(subscription)) this.fail(subscription, error)
      return null
    }
  }

  private skipTo(resumedSeq: number, from: number): void {
    for (const subscription of this.waiting) {
      const { position } = subscription
      if (position < from || position >= resumedSeq || !this.isReady(subscription)) continue
      subscription.position = resumedSeq
      subscription.outlet.gap(position, resumedSeq)
    }
  }

  /** Sends the frames to all subscriptions positioned within them, until all have them or are full. */
  private async serve(frames: readonly Frame[], from: number, signal: AbortSignal): Promise<void> {
    const { epoch } = this.deps.journal
    const through = endOf(frames, from)
    const isServed = (each: Subscription) => each.position >= from && each.position < through && this.isReady(each)
    let served = [...this.waiting].filter(isServed)
    const wanted = new Map<string, ChannelSet>()
    for (const { channel } of served) {
      const ofWorkspace = wanted.get(channel.workspaceId) ?? new ChannelSet(channel.workspace)
      ofWorkspace.add(channel)
      wanted.set(channel.workspaceId, ofWorkspace)
    }
    const matching = new Matching(frames, {
      epoch,
      afterSeq: served.reduce((least, { position }) => Math.min(least, position), through),
      slice: this.slice,
      wantedOf: (workspaceId) => wanted.get(workspaceId),
      handOut: async (found, throughSeq) => {
        await this.handOut(served, found, throughSeq)
        for (const { workspaceId } of this.sending.keys()) wanted.delete(workspaceId)
        // Some may have ended or become full, and may be waiting again at a lower position.
        served = served.filter((each) => this.waiting.has(each) && this.isReady(each) && each.position >= throughSeq)
        return served.length > 0
      },
    })
    const areBySession = wanted.values().some(({ sessions }) => sessions !== undefined)
    try {
      if (!areBySession || (await this.lookUpSessions(matching, signal))) await matching.run()
    } catch (error) {
      // The chunk cannot be read: without this, it would be tried again forever.
      for (const subscription of served) if (this.waiting.has(subscription)) this.fail(subscription, error)
    }
  }

  /** @returns false if it failed: subscriptions that need the sessions wait for a while, the others need not */
  private async lookUpSessions(matching: Matching, signal: AbortSignal): Promise<boolean> {
    try {
      await matching.lookUpSessions(this.deps.lookUpSessions)
      this.failures = 0
      return true
    } catch (error) {
      if (!(error instanceof SessionsUnavailable)) throw error
      if (this.failures++ === 0)
        this.deps.log.warn('live feeds: those of sessions and users wait; their runs cannot be looked up', { error })
      this.isHolding = true
      void sleep(SESSIONS_RETRY_MS, signal).then(() => {
        this.isHolding = false
        this.wakeup.wake()
      })
      return false
    }
  }

  /** Sends the matches. Workspaces with more than fits into a turn send the rest later. */
  private async handOut(served: readonly Subscription[], found: Found, throughSeq: number): Promise<void> {
    // Each keeps only its own matches: it may send them much later.
    const matches = served.map((each): Match => [each, found.get(each.channel) ?? []])
    for (const [workspace, own] of Map.groupBy(matches, ([{ channel }]) => channel.workspace)) {
      const share = new FairShare(this.sendAll(own, throughSeq), this.slice)
      this.sending.set(workspace, share)
      await share.turn()
      if (share.isEmpty) this.sending.delete(workspace)
    }
  }

  /** Sends the matches to the subscriptions of a workspace. Yields the bytes of each step. */
  private *sendAll(served: readonly Match[], throughSeq: number): Generator<number> {
    const cache = new PacketCache(this.deps.journal.epoch)
    for (const [subscription, matches] of served) {
      // Thousands with nothing to send take time, too.
      yield 0
      const { position } = subscription
      // It may have ended in the meantime, or be further ahead.
      if (!this.waiting.has(subscription) || position >= throughSeq) continue
      const items = itemsAfter(matches, position)
      try {
        for (const packet of items.length === 0 ? [] : cache.packetsOf(items)) {
          if (!this.waiting.has(subscription) || !this.send(subscription, packet)) break
          yield packet.length
        }
        if (this.waiting.has(subscription)) subscription.position = throughSeq
      } catch (error) {
        this.fail(subscription, error)
      }
    }
  }

  /** @returns false when the subscription takes no more: its outlet is full, or it has ended */
  private send(subscription: Subscription, packet: Packet): boolean {
    const taken = subscription.outlet.send(packet)
    if (subscription.state === 'ended') return false
    if (taken) subscription.position = packet.lastSeq
    else {
      subscription.position = packet.firstSeq - 1
      subscription.state = 'full'
      this.remove(subscription)
    }
    return taken
  }

  /** Starts ClickHouse reads for subscriptions older than the journal's files, up to the limit. */
  private askHistory(signal: AbortSignal): void {
    while (this.reading.size < HISTORY_READS_MAX) {
      const subscription = this.nextToRead()
      if (subscription === undefined) return
      subscription.state = 'reading'
      this.waiting.delete(subscription)
      this.reading.add(subscription)
      void this.readHistory(subscription, signal)
    }
  }

  /** The one that has waited longest, of a workspace with the fewest reads. */
  private nextToRead(): Subscription | undefined {
    const reads = new Map<WorkspaceChannels, number>()
    for (const { channel } of this.reading) reads.set(channel.workspace, (reads.get(channel.workspace) ?? 0) + 1)
    let next: Subscription | undefined
    let fewest = Number.POSITIVE_INFINITY
    for (const subscription of this.waiting) {
      if (subscription.position + 1 >= this.deps.journal.startSeq || !this.isReady(subscription)) continue
      const ofWorkspace = reads.get(subscription.channel.workspace) ?? 0
      if (ofWorkspace >= fewest) continue
      next = subscription
      fewest = ofWorkspace
      if (fewest === 0) break
    }
    return next
  }

  private async readHistory(subscription: Subscription, signal: AbortSignal): Promise<void> {
    const { journal, history } = this.deps
    const { workspaceId, filter } = subscription.channel
    const untilSeq = journal.startSeq - 1
    /** From the first failure: a read that takes long is no reason to give up. */
    let deadline: number | undefined
    for (;;) {
      try {
        const page = await history.read({ workspaceId, filter, afterSeq: subscription.position, untilSeq, signal })
        if (!this.reading.delete(subscription)) break
        subscription.state = 'behind'
        this.waiting.add(subscription)
        if (page.resumedSeq !== undefined) {
          subscription.outlet.gap(subscription.position, page.resumedSeq)
          subscription.position = page.resumedSeq
        }
        const isWhole = packetsOf(journal.epoch, page.items).every((packet) => this.send(subscription, packet))
        if (isWhole) subscription.position = page.throughSeq
        break
      } catch (error) {
        if (signal.aborted || !this.reading.has(subscription)) break
        if (error instanceof SessionsUnavailable) deadline = undefined
        else deadline ??= this.now() + HISTORY_TIMEOUT_MS
        if (deadline !== undefined && this.now() >= deadline) {
          this.fail(subscription, error)
          break
        }
        await sleep(HISTORY_RETRY_MS, signal)
      }
    }
    this.wakeup.wake()
  }

  private fail(subscription: Subscription, cause: unknown): void {
    this.deps.log.warn('live feeds: a replay failed', { error: cause })
    this.remove(subscription)
    const unreadable = new ApiError('INTERNAL', 'the feed cannot be replayed', { cause })
    subscription.outlet.failed(cause instanceof ApiError ? cause : unreadable)
  }
}

/** Frames, and the position before them: subscriptions that are further back get a gap. */
interface Chunk {
  readonly frames: readonly Frame[]
  readonly resumedSeq: number
}

function chunkOf(frames: readonly Frame[]): Chunk {
  return { frames, resumedSeq: frames[0].firstSeq - 1 }
}

/** A subscription, and what it is to be sent. */
type Match = readonly [Subscription, readonly Activity[]]

/** Usually returns `items` unchanged: most subscriptions are positioned before all of them. */
function itemsAfter(items: readonly Activity[], seq: number): readonly Activity[] {
  return items.length === 0 || items[0].seq > seq ? items : items.filter((item) => item.seq > seq)
}

/** The frames up to the first gap: frames after a gap form their own chunk. */
function upToGap(frames: readonly Frame[]): readonly Frame[] {
  const gapAt = frames.findIndex((frame, index) => index > 0 && frame.firstSeq !== lastSeqOf(frames[index - 1]) + 1)
  return gapAt < 0 ? frames : frames.slice(0, gapAt)
}

/** The last position in `frames`; `position` when there are none. */
function endOf(frames: readonly Frame[], position: number): number {
  const last = frames.at(-1)
  return last === undefined ? position : lastSeqOf(last)
}
