import type { Clock } from '../../../base/clock.ts'
import { ApiError } from '../../../base/errors.ts'
import type { Log } from '../../../base/log.ts'
import { type Epoch, epochAt, type Frame, type Gap } from '../journal.ts'
import { type AppendPoint, FrameSeal } from '../log/frame.ts'
import { PagePool } from '../log/pages.ts'
import { type BufferPool, type Commit, journalFull, type LogStorage } from '../log/storage.ts'
import type { NatsLog } from './log.ts'
import type { LogEnd } from './log-end.ts'
import { type LogState, type MessageHead, type OutboxIds, outboxAfter, sealState } from './message.ts'
import { publishAll, RefusedError } from './publisher.ts'
import { FencedError, type Outgoing, unavailableUnless } from './stream.ts'
import { storedBytes, type Units } from './units.ts'

/** How long a result of {@link NatsStorage.check} holds. */
const CHECK_HOLDS_MS = 1_000
/**
 * Larger commits are compressed. A replicated byte is sent three times and written six times, which costs more than its
 * compression (measured: five times smaller, twice as many events a second). Without replicas it makes no difference in
 * speed, and saves disk.
 */
const COMPRESSED_BYTES_MIN = 4 * 1024
const NO_IDS: OutboxIds = new Map()

export interface NatsStorageOptions {
  /** Rises with each claim of the partition. */
  readonly generation: number
  /** How long a commit without an answer is retried before its calls are rejected and the journal is lost. */
  readonly settleMs: number
  /**
   * Called once when another owner has taken over, or when the outcome of a commit is unknown. Everything is refused from
   * then on. Calls that were rejected may be in the log; the next takeover settles that.
   */
  readonly onLost: (reason: string) => void
  readonly clock: Clock
  readonly log: Log
}

/** Stores a journal in a JetStream stream, as its only publisher. Its unit of deletion is some megabytes of messages. */
export class NatsStorage implements LogStorage {
  readonly pool: BufferPool
  /** Tells this owner's messages from all others. */
  private readonly ownerId = Bun.randomUUIDv7().slice(-12)
  /** How many messages this owner has made. Part of their ids, so that two that were meant for the same place differ. */
  private made = 0
  private lost: ApiError | undefined
  private isPublishing = false
  private soundAtMs = Number.NEGATIVE_INFINITY
  /** The size of the last commit if it failed. */
  private failedBytes = 0
  private checking: Promise<void> | undefined
  /** Messages before this one are to be deleted. */
  private purgeTo = 0
  private purging: Promise<void> | undefined

  /** @param end where the next message goes */
  constructor(
    private readonly log: NatsLog,
    private readonly units: Units,
    private end: LogEnd,
    /** The outbox ids of the newest frame of each kind. */
    public outboxIds: OutboxIds,
    private readonly options: NatsStorageOptions,
  ) {
    const pages = new PagePool()
    // A message needs no padding.
    this.pool = { take: (bytes) => pages.take(bytes).subarray(0, bytes), give: (buffer) => pages.give(buffer) }
  }

  get epochs(): readonly Epoch[] {
    return this.log.epochs
  }

  get gaps(): readonly Gap[] {
    return this.log.gaps
  }

  get startSeq(): number | undefined {
    return this.units.startSeq
  }

  /** When the last message was written, Unix milliseconds: no row is later. */
  get receivedAt(): number {
    return this.end.receivedAt
  }

  get bytes(): number {
    return this.units.bytes
  }

  bytesAfter(seq: number): number {
    return this.units.bytesAfter(seq)
  }

  refusal(): ApiError | undefined {
    return this.lost
  }

  read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    return this.log.read(afterSeq, maxBytes)
  }

  /**
   * Messages before the current unit may be deleted, so each unit begins with a message that repeats what they have of
   * outbox ids: the rows of the outbox may not be deleted yet.
   */
  appendPoint(firstSeq: number, receivedAt: number): AppendPoint | Promise<AppendPoint> {
    if (this.outboxIds.size === 0 || !this.units.isNext(receivedAt)) return this.pointOf(firstSeq)
    return this.beginUnit(firstSeq).then(() => this.pointOf(firstSeq))
  }

  private pointOf(firstSeq: number): AppendPoint {
    const seal = new FrameSeal(this.log.sealKey, epochAt(this.log.epochs, firstSeq), this.end.streamSeq + 1)
    return { seal, at: 0, before: this.end.check }
  }

  async write(commit: Commit, receivedAt: number): Promise<void> {
    const { endSeq, check, buffer, first } = commit
    const isCompressed = buffer.length >= COMPRESSED_BYTES_MIN
    const payload = isCompressed ? await Bun.zstdCompress(buffer, { level: 1 }) : buffer
    const streamSeq = this.end.streamSeq + 1
    const outbox = outboxAfter(this.end.outbox, streamSeq, commit.outboxIds)
    const head = { kind: 'commit' as const, firstSeq: first.run, endSeq, receivedAt, isCompressed, outbox }
    const messages = this.messagesOf(payload, head)
    await this.publish(messages, { streamSeq: this.end.streamSeq + messages.length, endSeq, check, outbox, receivedAt })
    const withIds = [...commit.outboxIds].filter(([, ids]) => ids.length > 0)
    if (withIds.length > 0) this.outboxIds = new Map([...this.outboxIds, ...withIds])
    this.units.add(streamSeq, first.run, storedBytes(payload.length, messages.length), receivedAt)
  }

  /** The messages of a group, from the next one of the stream on. */
  private messagesOf(
    payload: Buffer,
    head: Omit<MessageHead, 'part' | 'parts' | 'groupSeq' | 'generation'>,
  ): Outgoing[] {
    const { partBytes } = this.log.stream
    const groupSeq = this.end.streamSeq + 1
    const parts = Math.ceil(payload.length / partBytes)
    return Array.from({ length: parts }, (_, part) => ({
      streamSeq: groupSeq + part,
      id: `${this.ownerId}.${++this.made}`,
      head: { ...head, part, parts, groupSeq, generation: this.options.generation },
      data: payload.subarray(part * partBytes, (part + 1) * partBytes),
    }))
  }

  failed(bytes: number): void {
    this.failedBytes = bytes
    this.soundAtMs = Number.NEGATIVE_INFINITY
  }

  async begin(firstSeq: number): Promise<void> {
    if (this.units.hasRows) await this.beginUnit(firstSeq)
  }

  private beginUnit(firstSeq: number): Promise<void> {
    const endSeq = firstSeq - 1
    return this.publishState({ foundSeq: endSeq, endSeq, loadedSeq: this.log.loadedSeq() })
  }

  /** Publishes a state message, with which a new unit begins. */
  async publishState(
    state: Pick<LogState, 'foundSeq' | 'endSeq' | 'loadedSeq'> & Partial<Pick<LogState, 'isEndLost'>>,
  ): Promise<void> {
    const { generation } = this.options
    const { check: before } = this.end
    const { endSeq } = state
    const streamSeq = this.end.streamSeq + 1
    const whole = { isEndLost: false, ...state, generation, epoch: this.log.epoch, before }
    const sealed = (outboxIds: OutboxIds) => sealState(this.log.sealKey, streamSeq, { ...whole, outboxIds })
    const full = sealed(this.outboxIds)
    // Servers with a tiny `max_payload` have no room for thousands of ids: they stay known until their commit is deleted.
    const fits = full.data.length <= this.log.stream.partBytes
    const { data, check } = fits ? full : sealed(NO_IDS)
    const outbox = outboxAfter(this.end.outbox, streamSeq, fits ? this.outboxIds : NO_IDS)
    const receivedAt = Math.max(this.end.receivedAt, this.options.clock.now())
    const head = { kind: 'state' as const, firstSeq: endSeq + 1, endSeq, receivedAt, isCompressed: false, outbox }
    await this.publish(this.messagesOf(data, head), { streamSeq, endSeq, check, outbox, receivedAt })
    this.units.begin(streamSeq, endSeq + 1)
  }

  /** @param end after these messages */
  private async publish(messages: readonly Outgoing[], end: LogEnd): Promise<void> {
    if (this.lost !== undefined) throw this.lost
    this.isPublishing = true
    try {
      await publishAll(this.log.stream, messages, this.options.settleMs)
    } catch (error) {
      if (!(error instanceof RefusedError)) throw this.closeAfter(error)
      this.end = { ...this.end, streamSeq: this.end.streamSeq + error.stored }
      throw error.refusal
    } finally {
      this.isPublishing = false
    }
    this.end = end
    this.log.endStreamSeq = end.streamSeq
    this.soundAtMs = performance.now()
    this.failedBytes = 0
    this.log.stream.announceEnd(end.streamSeq)
  }

  /** From now on everything is refused. */
  private closeAfter(cause: unknown): ApiError {
    if (this.lost !== undefined) return this.lost
    const message =
      cause instanceof FencedError
        ? 'another node has taken over this part of the journal; try again'
        : 'the journal does not answer; try again'
    this.lost = new ApiError('UNAVAILABLE', message, { retryAfterSeconds: 1, cause })
    const reason = cause instanceof Error ? cause.message : String(cause)
    queueMicrotask(() => this.options.onLost(reason))
    return this.lost
  }

  trim(seq: number, keepBytes: number): void {
    const streamSeq = this.units.forget(seq, keepBytes)
    if (streamSeq !== undefined) this.purgeTo = streamSeq
    if (this.purgeTo === 0 || this.purging !== undefined || this.lost !== undefined) return
    const error = (error: unknown) =>
      this.options.log.warn('journal: cannot delete released messages; this is repeated', { error })
    void this.purge().catch(error)
  }

  async dropThrough(seq: number): Promise<void> {
    const streamSeq = this.units.forget(seq, 0)
    if (streamSeq !== undefined) this.purgeTo = streamSeq
    await this.purging?.catch(() => {})
    if (this.lost === undefined) await unavailableUnless(this.purge())
  }

  /** Deletes the messages before {@link purgeTo}, until it stays. */
  private purge(): Promise<void> {
    this.purging ??= (async () => {
      while (this.purgeTo > 0) {
        const to = this.purgeTo
        await this.log.stream.purge(to)
        this.log.forget(to)
        if (this.purgeTo === to) this.purgeTo = 0
      }
    })().finally(() => {
      this.purging = undefined
    })
    return this.purging
  }

  async lastSeqBefore(beforeMs: number): Promise<number | undefined> {
    return this.units.lastSeqBefore(beforeMs, this.end.endSeq)
  }

  /** @throws ApiError UNAVAILABLE unless the stream has answered lately, and has room */
  async check(): Promise<void> {
    if (performance.now() - this.soundAtMs < CHECK_HOLDS_MS) return
    this.checking ??= this.probe().finally(() => {
      this.checking = undefined
    })
    await this.checking
  }

  private async probe(): Promise<void> {
    const { streamSeq } = this.end
    const { state, config } = await unavailableUnless(this.log.stream.info())
    const isIdle = !this.isPublishing && this.end.streamSeq === streamSeq
    if (isIdle && state.last_seq > streamSeq) {
      throw this.closeAfter(new FencedError(`another owner has published message ${state.last_seq}`))
    }
    if (this.failedBytes > 0 && state.bytes + this.failedBytes > config.max_bytes) throw journalFull()
    this.soundAtMs = performance.now()
  }

  async close(): Promise<void> {
    await this.purging?.catch(() => {})
  }
}
