import {
  type DiscardPolicy,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type PubAck,
  type RetentionPolicy,
  type StorageType,
  type StoredMsg,
  type StreamInfo,
} from '@nats-io/jetstream'
import { headers, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node'
import { ApiError } from '../../../base/errors.ts'
import { StartError } from '../../../base/start-error.ts'
import { hasHead, type MessageHead, NO_OUTBOX, readHead, type StreamMessage, writeHead } from './message.ts'

const REQUEST_TIMEOUT_MS = 2_000
/** Only a retried publish can be a duplicate, and retries end well before this. */
const DUPLICATE_WINDOW_NS = 15 * 1e9
/** The largest message, with its headers, unless the server's `max_payload` is lower. */
const MESSAGE_BYTES_MAX = 1024 * 1024
/** Room for the headers of a message. */
const HEADER_BYTES_MAX = 1024
/** What the stream stores beyond the payload, about. */
export const MESSAGE_OVERHEAD_BYTES = 200
const PAUSE_MS = 50
const STREAM_EXISTS = 10058
const NO_MESSAGE = 10037

export interface NatsStreamOptions {
  /** Shared by all partitions of the process. */
  readonly nc: NatsConnection
  /** Its name, such as `journal_3`. */
  readonly stream: string
  /** The subject of its messages, such as `journal.3`. */
  readonly subject: string
  /** 32 bytes; the secret that seals what the journal stores. */
  readonly sealKey: Buffer
}

/** A message to be published as the stream's next one. */
export interface Outgoing {
  /** The sequence that the stream will give it, or refuse it. */
  readonly streamSeq: number
  readonly id: string
  readonly head: MessageHead
  readonly data: Buffer
}

/** One JetStream stream. */
export class Stream {
  private readonly endSubject: string

  private constructor(
    private readonly options: NatsStreamOptions,
    private readonly client: JetStreamClient,
    private readonly manager: JetStreamManager,
  ) {
    this.endSubject = `${options.subject}.end`
  }

  /** Uses a stream that may not exist yet, see {@link ensure}. */
  static async open(options: NatsStreamOptions): Promise<Stream> {
    const manager = await jetstreamManager(options.nc, { checkAPI: false, timeout: REQUEST_TIMEOUT_MS })
    return new Stream(options, jetstream(options.nc), manager)
  }

  get name(): string {
    return this.options.stream
  }

  get isConnectionClosed(): boolean {
    return this.options.nc.isClosed()
  }

  /** How much payload one message can carry. */
  get partBytes(): number {
    const { max_payload = MESSAGE_BYTES_MAX } = this.options.nc.info ?? {}
    return Math.min(MESSAGE_BYTES_MAX, max_payload) - HEADER_BYTES_MAX
  }

  /**
   * Creates the stream unless it exists. Several nodes may do so at once. An operator may change the number of replicas
   * and the size of an existing stream.
   * @throws StartError when the existing stream has settings with which NATS would delete messages by itself
   */
  async ensure(replicas: number, maxBytes: number): Promise<void> {
    const { stream, subject } = this.options
    const config = {
      name: stream,
      subjects: [subject],
      retention: 'limits' as RetentionPolicy,
      storage: 'file' as StorageType,
      discard: 'new' as DiscardPolicy,
      num_replicas: replicas,
      max_bytes: maxBytes,
      max_msg_size: MESSAGE_BYTES_MAX,
      duplicate_window: DUPLICATE_WINDOW_NS,
      allow_direct: true,
    }
    const { config: found } = await this.manager.streams.add(config).catch((error) => {
      if (error instanceof JetStreamApiError && error.code === STREAM_EXISTS) return this.manager.streams.info(stream)
      throw error
    })
    const isOurs = found.subjects.length === 1 && found.subjects[0] === subject && found.allow_direct
    const keepsAll = found.retention === 'limits' && found.discard === 'new' && found.max_age === 0
    if (isOurs && keepsAll && found.max_msgs < 0 && found.max_msgs_per_subject < 0) return
    throw new StartError(
      `the stream ${stream} exists with settings that lose rows: it must keep every message of ${subject}`,
    )
  }

  /** The state and configuration of the stream, from its leader. */
  info(): Promise<StreamInfo> {
    return this.manager.streams.info(this.options.stream)
  }

  /** Stores a fence message of a generation, wherever the stream ends. */
  async fence(generation: number): Promise<void> {
    const place = { firstSeq: 0, endSeq: 0, part: 0, parts: 1, groupSeq: 0 }
    const head = { ...place, kind: 'fence' as const, generation, receivedAt: 0, isCompressed: false, outbox: NO_OUTBOX }
    await this.client.publish(this.options.subject, '', { headers: this.headersOf(head, 0) })
  }

  /** Tries to store a message as the next one. Rejects when the stream refuses it or does not answer in time. */
  async publish({ streamSeq, id, head, data }: Outgoing, timeoutMs: number): Promise<PubAck> {
    const expect = { lastSequence: streamSeq - 1 }
    return this.client.publish(this.options.subject, data, {
      headers: this.headersOf(head, streamSeq),
      msgID: id,
      expect,
      timeout: timeoutMs,
    })
  }

  /**
   * The message at a sequence, from the stream's leader. Null only when the message is lost or deleted: a leader that has
   * just been elected answers before it has stored the newest messages.
   * @throws BehindError when the leader does not have this message yet
   */
  async getFromLeader(streamSeq: number): Promise<StreamMessage | null> {
    const found = await this.askLeader(streamSeq)
    if (found !== null) return found
    const before = await this.info()
    const again = await this.askLeader(streamSeq)
    if (again !== null) return again
    const { cluster } = await this.info()
    if (before.state.last_seq >= streamSeq && before.cluster?.leader === cluster?.leader) return null
    throw new BehindError(this.name, streamSeq)
  }

  private async askLeader(streamSeq: number): Promise<StreamMessage | null> {
    try {
      const stored = await this.manager.streams.getMessage(this.options.stream, { seq: streamSeq })
      return stored === null ? null : this.messageOf(stored)
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === NO_MESSAGE) return null
      throw error
    }
  }

  /**
   * Like {@link getFromLeader}, but asks any replica first. They may lag behind the leader.
   * @throws BehindError when the leader does not have this message yet
   */
  async find(streamSeq: number): Promise<StreamMessage | null> {
    const stored = await this.manager.direct.getMessage(this.options.stream, { seq: streamSeq })
    return stored === null ? this.getFromLeader(streamSeq) : this.messageOf(stored)
  }

  private headersOf(head: MessageHead, streamSeq: number): MsgHdrs {
    const made = headers()
    writeHead(made, head, this.options.sealKey, streamSeq)
    return made
  }

  private messageOf({ data, header, seq }: StoredMsg): StreamMessage {
    const head = readHead(header, this.options.sealKey, seq)
    return {
      streamSeq: seq,
      head,
      isDamaged: head === undefined && hasHead(header),
      id: header.get('Nats-Msg-Id'),
      data: Buffer.from(data.buffer, data.byteOffset, data.length),
    }
  }

  /** Deletes all messages before `streamSeq`. */
  async purge(streamSeq: number): Promise<void> {
    await this.manager.streams.purge(this.options.stream, { seq: streamSeq })
  }

  /** Announces a new message to readers. An announcement may be lost: readers also ask, but less often. */
  announceEnd(streamSeq: number): void {
    if (!this.isConnectionClosed) this.options.nc.publish(this.endSubject, String(streamSeq))
  }

  /** Calls `heard` with the stream sequence of each announced message. @returns the function that ends this */
  onEndAnnounced(heard: (streamSeq: number) => void): () => void {
    const subscription = this.options.nc.subscribe(this.endSubject, {
      callback: (error, message) => {
        if (error === null) heard(Number(message.string()))
      },
    })
    return () => {
      if (!this.isConnectionClosed) subscription.unsubscribe()
    }
  }
}

/** Turns any failure of NATS into UNAVAILABLE. */
export async function unavailableUnless<T>(work: Promise<T>): Promise<T> {
  return answered(0, () => work)
}

/**
 * Repeats what NATS does not answer, for example during the election of a leader, for `settleMs`.
 * @throws ApiError UNAVAILABLE when that has passed
 * @throws FencedError, StartError at once
 */
export async function answered<T>(settleMs: number, work: () => Promise<T>): Promise<T> {
  const deadlineMs = performance.now() + settleMs
  for (;;) {
    try {
      return await work()
    } catch (cause) {
      if (cause instanceof FencedError || cause instanceof StartError) throw cause
      if (performance.now() >= deadlineMs) {
        throw new ApiError('UNAVAILABLE', 'the journal does not answer; try again', { retryAfterSeconds: 1, cause })
      }
      await Bun.sleep(PAUSE_MS)
    }
  }
}

/** The leader of a stream does not have a message yet: it has just been elected, or the message was never stored. */
export class BehindError extends Error {
  override readonly name = 'BehindError'

  constructor(stream: string, streamSeq: number) {
    super(`the leader of ${stream} does not have message ${streamSeq} yet`)
  }
}

/** The stream has a message of another owner: this one must not publish any more. */
export class FencedError extends Error {
  override readonly name = 'FencedError'
}
