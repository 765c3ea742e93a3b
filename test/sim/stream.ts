import { JetStreamApiError } from '@nats-io/jetstream'
import type { MessageHead, StreamMessage } from '../../src/stores/journal/nats/message.ts'
import { BehindError, type Outgoing, type Stream } from '../../src/stores/journal/nats/stream.ts'
import { time } from './virtual-time.ts'

const WRONG_LAST_SEQUENCE = 10071
const INSUFFICIENT_RESOURCES = 10023
/** As `duplicate_window` of our streams. */
const DUPLICATE_WINDOW_MS = 15_000
const FENCE = { firstSeq: 0, endSeq: 0, part: 0, parts: 1, groupSeq: 0, receivedAt: 0, isCompressed: false }

/** What may happen to a message that is published. */
export type Fate =
  | 'stored'
  /** Nothing is stored, and nobody answers. */
  | 'lost'
  /** It is stored, and the answer is lost. */
  | 'unanswered'
  /** It arrives after its sender has given up waiting. */
  | 'late'

/** What goes wrong, and how long things take. The default: nothing, and no time. */
export interface StreamFaults {
  /** How long a request waits on its way. */
  delay(): Promise<void>
  fateOf(message: Outgoing): Fate
  /** How long a late message takes, beyond its sender's patience, milliseconds. */
  lateMs(): number
}

const NO_FAULTS: StreamFaults = { delay: async () => {}, fateOf: () => 'stored', lateMs: () => 0 }

/**
 * A replicated JetStream stream in memory, as {@link Stream} shows one, that goes wrong when it is told to. It checks a message
 * in the order in which nats-server does (`processClusteredInboundMsg`): limits, then the id, then the sequence.
 */
export class MemoryStream implements Pick<Stream, keyof Stream> {
  readonly name = 'journal_0'
  readonly isConnectionClosed = false
  /** In order; the first one has sequence 1. */
  readonly messages: StreamMessage[] = []
  /** The servers have no room. */
  isFull = false
  /** How many of the newest messages the leader does not have yet. */
  leaderLacks = 0
  /** How many of the newest messages that the leader has another replica lacks. */
  replicaLacks = 0
  faults = NO_FAULTS
  private readonly ids = new Map<string, { readonly streamSeq: number; readonly atMs: number }>()
  private readonly listeners = new Set<(streamSeq: number) => void>()

  constructor(readonly partBytes = 1024 * 1024) {}

  /** Makes {@link Stream.open} give this stream, also to those that opened another one before. @returns the function that ends this */
  replaceReal(real: { open: (typeof Stream)['open'] }): () => void {
    const { open } = real
    real.open = async () => this as unknown as Stream
    return () => {
      real.open = open
    }
  }

  private get knownSeq(): number {
    return Math.max(0, this.messages.length - this.leaderLacks)
  }

  ensure(): Promise<void> {
    return time.call(() => this.faults.delay())
  }

  async info(): ReturnType<Stream['info']> {
    await time.call(() => this.faults.delay())
    const found = {
      created: 'once',
      config: { max_bytes: 2 ** 40 },
      cluster: { leader: 'n1' },
      state: { first_seq: 1, last_seq: this.knownSeq, bytes: this.messages.length },
    }
    return found as unknown as ReturnType<Stream['info']>
  }

  async fence(generation: number): Promise<void> {
    const head: MessageHead = { ...FENCE, kind: 'fence', generation, outbox: [0, 0, 0] }
    this.store({ streamSeq: this.messages.length + 1, id: '', head, data: Buffer.alloc(0) })
  }

  publish(message: Outgoing, timeoutMs: number): ReturnType<Stream['publish']> {
    return time.call(() => this.receive(message, timeoutMs))
  }

  private async receive(message: Outgoing, timeoutMs: number): ReturnType<Stream['publish']> {
    await this.faults.delay()
    const fate = this.faults.fateOf(message)
    if (fate === 'lost' || fate === 'late') {
      await Bun.sleep(timeoutMs)
      if (fate === 'late') void this.arriveLate(message)
      throw timeout()
    }
    const acknowledged = this.accept(message)
    if (fate === 'unanswered') {
      await Bun.sleep(timeoutMs)
      throw timeout()
    }
    await this.faults.delay()
    return acknowledged as Awaited<ReturnType<Stream['publish']>>
  }

  private async arriveLate(message: Outgoing): Promise<void> {
    await Bun.sleep(this.faults.lateMs())
    try {
      this.accept(message)
    } catch {
      // Nobody waits for the refusal.
    }
  }

  private accept(message: Outgoing): { readonly seq: number; readonly duplicate: boolean } {
    if (this.isFull) throw refusal(503, INSUFFICIENT_RESOURCES, 'insufficient resources')
    const known = this.ids.get(message.id)
    if (known !== undefined && performance.now() - known.atMs < DUPLICATE_WINDOW_MS)
      return { seq: known.streamSeq, duplicate: true }
    if (message.streamSeq !== this.messages.length + 1)
      throw refusal(400, WRONG_LAST_SEQUENCE, `wrong last sequence: ${this.messages.length}`)
    this.store({ ...message, data: Buffer.from(message.data) })
    return { seq: message.streamSeq, duplicate: false }
  }

  private store(message: StreamMessage): void {
    this.messages.push(message)
    this.ids.set(message.id, { streamSeq: message.streamSeq, atMs: performance.now() })
  }

  async getFromLeader(streamSeq: number): Promise<StreamMessage | null> {
    await time.call(() => this.faults.delay())
    if (streamSeq > this.knownSeq) throw new BehindError(this.name, streamSeq)
    return this.messages[streamSeq - 1] ?? null
  }

  /** Asks a replica, which may lag, and then the leader. */
  async find(streamSeq: number): Promise<StreamMessage | null> {
    if (this.replicaLacks > 0) {
      await time.call(() => this.faults.delay())
      if (streamSeq <= this.knownSeq - this.replicaLacks) return this.messages[streamSeq - 1] ?? null
    }
    return this.getFromLeader(streamSeq)
  }

  async purge(): Promise<void> {}

  announceEnd(streamSeq: number): void {
    for (const heard of this.listeners)
      void time.within(time.process.servers, () => this.faults.delay().then(() => heard(streamSeq)))
  }

  onEndAnnounced(heard: (streamSeq: number) => void): () => void {
    const listener = time.heardBy(heard)
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }
}

function timeout(): Error {
  return Object.assign(new Error('timeout'), { name: 'TimeoutError' })
}

function refusal(code: number, err_code: number, description: string): JetStreamApiError {
  return new JetStreamApiError({ code, err_code, description })
}
