import { ApiError } from '../http/errors.ts'
import { type Frame, type Journal, lastSeqOf } from '../journal/journal.ts'
import type { Log } from '../log.ts'
import type { Loop } from '../ops/supervise.ts'
import type { Activity } from './activity.ts'
import { ChannelSet, type Channels } from './channel.ts'
import type { History } from './history.ts'
import { type Found, Matching } from './matching.ts'
import { type Packet, PacketCache, packetsOf } from './packet.ts'
import type { Subscription } from './subscription.ts'
import { TimeSlice } from './time-slice.ts'

export interface ReplayDeps {
  readonly journal: Journal
  readonly history: History
  readonly log: Log
  readonly channels: Channels
  /** Milliseconds on a monotonic clock, for time slices. */
  readonly now?: (() => number) | undefined
  /** Makes a subscription live if it has come far enough. */
  readonly join: (subscription: Subscription) => boolean
}

/** Of blocks read at once. */
const CHUNK_BYTES = 256 * 1024
/** Questions to ClickHouse at the same time: it has other work. */
const HISTORY_READS_MAX = 4
/** ClickHouse may be away this long before a replay that needs it is given up. */
const HISTORY_PATIENCE_MS = 15_000
const HISTORY_RETRY_MS = 500

/**
 * Brings subscriptions that are behind up to date. It sweeps through the journal like a lift: a chunk is read and decoded
 * once and given to everyone who stands within it, then comes the chunk that the next one up needs, and at the top it
 * begins again at the bottom. So a thousand clients that reconnect at once cost about as much as one. Every other chunk is
 * for whoever is closest to the end, so that nobody waits for those who have far to go. What the journal no longer has comes
 * from ClickHouse, each for himself.
 */
export class Replay {
  /** Those in state `behind`. */
  private readonly waiting = new Set<Subscription>()
  private readonly reading = new Set<Subscription>()
  private sweptTo = 0
  /** Whether the chunk under way is for whoever is closest to the end. */
  private isForNewest = false
  private woken = Promise.withResolvers<void>()
  private readonly slice: TimeSlice

  constructor(private readonly deps: ReplayDeps) {
    this.slice = new TimeSlice(deps.now)
  }

  /** @param subscription in state `behind` */
  add(subscription: Subscription): void {
    this.waiting.add(subscription)
    this.woken.resolve()
  }

  remove(subscription: Subscription): void {
    this.waiting.delete(subscription)
    this.reading.delete(subscription)
  }

  /** Has another look at those who wait to go live. */
  wake(): void {
    if (this.waiting.size > 0) this.woken.resolve()
  }

  async run(signal: AbortSignal, loop: Loop): Promise<void> {
    signal.addEventListener('abort', () => this.woken.resolve(), { once: true })
    while (!signal.aborted) {
      this.woken = Promise.withResolvers()
      for (const subscription of this.waiting) if (this.deps.join(subscription)) this.waiting.delete(subscription)
      const next = this.nextUp()
      if (next === undefined) {
        loop.succeeded()
        await this.woken.promise
        continue
      }
      await this.slice.yield()
      await this.advance(next, signal)
      loop.succeeded()
    }
  }

  /**
   * The lowest position at or above the last chunk's end, from the bottom again when there is none; and every other time the
   * highest of all.
   */
  private nextUp(): number | undefined {
    const { startSeq, endSeq } = this.deps.journal
    // Those older than the files wait until ClickHouse may be asked again.
    const from = this.reading.size < HISTORY_READS_MAX ? 0 : startSeq - 1
    let above = Number.POSITIVE_INFINITY
    let lowest = Number.POSITIVE_INFINITY
    let highest = -1
    for (const { position } of this.waiting) {
      if (position < from || position >= endSeq) continue
      if (position >= this.sweptTo && position < above) above = position
      if (position < lowest) lowest = position
      if (position > highest) highest = position
    }
    if (highest < 0) return undefined
    this.isForNewest = !this.isForNewest
    if (this.isForNewest) return highest
    return above === Number.POSITIVE_INFINITY ? lowest : above
  }

  /** Serves one chunk, to everyone who needs some of it. */
  private async advance(position: number, signal: AbortSignal): Promise<void> {
    const { journal } = this.deps
    if (position + 1 < journal.startSeq) {
      this.sweep(journal.startSeq - 1)
      this.askHistory(signal)
      return
    }
    const { endSeq } = journal
    const frames = journal.recent(position, CHUNK_BYTES) ?? (await this.readFiles(position))
    // Segments may have been dropped meanwhile; then history has it.
    if (frames === null || position + 1 < journal.startSeq) return
    // A damaged frame has been set aside: whoever needs it has to know.
    const resumedSeq = frames.length === 0 ? endSeq : frames[0].firstSeq - 1
    if (resumedSeq > position) this.skipTo(resumedSeq, position)
    if (frames.length > 0) await this.serve(frames, position)
    this.sweep(Math.max(resumedSeq, endOf(frames, position)))
  }

  private sweep(to: number): void {
    if (!this.isForNewest) this.sweptTo = to
  }

  /** What the files have after `position`; null when they cannot be read. */
  private async readFiles(position: number): Promise<readonly Frame[] | null> {
    const { journal } = this.deps
    try {
      return upToHole(await journal.read(position, CHUNK_BYTES))
    } catch (error) {
      // The file was dropped before it could be opened.
      if (position + 1 < journal.startSeq) return null
      for (const subscription of this.waiting) if (subscription.position === position) this.giveUp(subscription, error)
      return null
    }
  }

  private skipTo(resumedSeq: number, from: number): void {
    for (const subscription of this.waiting) {
      const { position } = subscription
      if (position < from || position >= resumedSeq) continue
      subscription.position = resumedSeq
      subscription.outlet.gap(position, resumedSeq)
    }
  }

  /** Gives the frames to everyone who stands within them, until all have them or take no more. */
  private async serve(frames: readonly Frame[], from: number): Promise<void> {
    const { epoch } = this.deps.journal
    const through = endOf(frames, from)
    let served = [...this.waiting].filter(({ position }) => position >= from && position < through)
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
        // Some have gone, or took not all of it; they may be waiting again, further down.
        served = served.filter((each) => this.waiting.has(each) && each.position >= throughSeq)
        return served.length > 0
      },
    })
    try {
      await matching.run()
    } catch (error) {
      // Others must not wait for what these cannot be read.
      for (const subscription of served) if (this.waiting.has(subscription)) this.giveUp(subscription, error)
    }
  }

  private async handOut(served: readonly Subscription[], found: Found, throughSeq: number): Promise<void> {
    const cache = new PacketCache(this.deps.journal.epoch)
    for (const subscription of served) {
      const { channel, position } = subscription
      // It may have gone meanwhile; or stands further up.
      if (!this.waiting.has(subscription) || position >= throughSeq) continue
      const items = itemsAfter(found.get(channel) ?? [], position)
      try {
        this.send(subscription, items.length === 0 ? [] : cache.packetsOf(items), throughSeq)
      } catch (error) {
        this.giveUp(subscription, error)
      }
      if (this.slice.isOver) await this.slice.yield()
    }
  }

  /** Sends packets that hold everything up to `through`, as far as the outlet takes them. */
  private send(subscription: Subscription, packets: readonly Packet[], through: number): void {
    for (const packet of packets) {
      const taken = subscription.outlet.send(packet)
      if (subscription.state === 'ended') return
      if (!taken) {
        subscription.position = packet.firstSeq - 1
        subscription.state = 'full'
        this.remove(subscription)
        return
      }
    }
    subscription.position = through
  }

  /** Starts reading for those that are older than the journal's files, as many as may at once. */
  private askHistory(signal: AbortSignal): void {
    for (const subscription of this.waiting) {
      if (this.reading.size >= HISTORY_READS_MAX) return
      if (subscription.position + 1 >= this.deps.journal.startSeq) continue
      subscription.state = 'reading'
      this.waiting.delete(subscription)
      this.reading.add(subscription)
      void this.readHistory(subscription, signal)
    }
  }

  private async readHistory(subscription: Subscription, signal: AbortSignal): Promise<void> {
    const { journal, history } = this.deps
    const { workspaceId, filter } = subscription.channel
    const untilSeq = journal.startSeq - 1
    const deadline = performance.now() + HISTORY_PATIENCE_MS
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
        this.send(subscription, packetsOf(journal.epoch, page.items), page.throughSeq)
        break
      } catch (error) {
        if (signal.aborted || !this.reading.has(subscription)) break
        if (performance.now() < deadline && error instanceof ApiError) {
          await Bun.sleep(HISTORY_RETRY_MS)
          continue
        }
        this.giveUp(subscription, error)
        break
      }
    }
    this.woken.resolve()
  }

  private giveUp(subscription: Subscription, cause: unknown): void {
    this.deps.log.warn('live feeds: a replay failed', { error: cause })
    this.remove(subscription)
    const unreadable = new ApiError('INTERNAL', 'the feed cannot be replayed', { cause })
    subscription.outlet.failed(cause instanceof ApiError ? cause : unreadable)
  }
}

/** Most stand before all of them. */
function itemsAfter(items: readonly Activity[], seq: number): readonly Activity[] {
  return items.length === 0 || items[0].seq > seq ? items : items.filter((item) => item.seq > seq)
}

/** The frames up to the first that does not follow on the one before: what comes behind a hole is a chunk of its own. */
function upToHole(frames: readonly Frame[]): readonly Frame[] {
  const behind = frames.findIndex((frame, index) => index > 0 && frame.firstSeq !== lastSeqOf(frames[index - 1]) + 1)
  return behind < 0 ? frames : frames.slice(0, behind)
}

/** The last position in `frames`; `position` when there are none. */
function endOf(frames: readonly Frame[], position: number): number {
  const last = frames.at(-1)
  return last === undefined ? position : lastSeqOf(last)
}
