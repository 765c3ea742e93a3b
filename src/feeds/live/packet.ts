import type { ApiError } from '../../base/errors.ts'
import { encodeCursor } from '../../stores/journal/cursor.ts'
import type { Activity } from './activity.ts'

/** Characters of a message, unless one activity alone is longer: small enough for a queue, large enough for one system call. */
const PACKET_LENGTH_MAX = 32 * 1024

/** The cache is cleared at this number of lists, or at this many characters, which bounds its memory. */
const CACHED_MAX = 64
const CACHED_LENGTH_MAX = 8 * 1024 * 1024

/** Activities sent together, in order, to all subscriptions with the same filter. Each encoding is made only once. */
export class Packet {
  private joined: string | undefined
  private messageId: string | undefined
  private message = ''
  private stream: Uint8Array<ArrayBuffer> | undefined

  /**
   * @param items at least one
   * @param length characters of their text
   */
  constructor(
    readonly epoch: string,
    readonly items: readonly Activity[],
    readonly length: number,
  ) {}

  get firstSeq(): number {
    return this.items[0].seq
  }

  get lastSeq(): number {
    return this.items[this.items.length - 1].seq
  }

  /**
   * As a WebSocket message. Only the last one is cached: most clients use the same subscription id.
   * @param id the subscription's id, as JSON
   */
  webSocketMessage(id: string): string {
    if (this.messageId === id) return this.message
    this.joined ??= this.items.map(({ text }) => text).join()
    this.messageId = id
    this.message = `{"op":"activity","id":${id},"items":[${this.joined}]}`
    return this.message
  }

  /** As frames of an event stream. */
  eventStream(): Uint8Array<ArrayBuffer> {
    this.stream ??= Buffer.from(this.items.map((item) => eventFrame(this.epoch, item)).join(''))
    return this.stream
  }
}

/** Splits activities into packets, in order. */
export function packetsOf(epoch: string, items: readonly Activity[]): Packet[] {
  const packets: Packet[] = []
  let start = 0
  let length = 0
  for (let i = 0; i < items.length; i++) {
    if (i > start && length + items[i].text.length > PACKET_LENGTH_MAX) {
      packets.push(new Packet(epoch, items.slice(start, i), length))
      start = i
      length = 0
    }
    length += items[i].text.length
  }
  if (start < items.length) packets.push(new Packet(epoch, start === 0 ? items : items.slice(start), length))
  return packets
}

/**
 * Packets of lists of activities. Equal lists share their packets, so that different filters with the same matches are
 * encoded only once.
 */
export class PacketCache {
  private readonly known = new Map<string, { readonly items: readonly Activity[]; readonly packets: Packet[] }>()
  /** Characters of the known lists. */
  private length = 0

  constructor(private readonly epoch: string) {}

  packetsOf(items: readonly Activity[]): readonly Packet[] {
    const key = `${items[0].seq} ${items[items.length - 1].seq} ${items.length}`
    const known = this.known.get(key)
    if (known !== undefined && isSame(known.items, items)) return known.packets
    const packets = packetsOf(this.epoch, items)
    if (this.known.size >= CACHED_MAX || this.length >= CACHED_LENGTH_MAX) {
      this.known.clear()
      this.length = 0
    }
    this.known.set(key, { items, packets })
    for (const { length } of packets) this.length += length
    return packets
  }
}

function isSame(a: readonly Activity[], b: readonly Activity[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index])
}

function eventFrame(epoch: string, { seq, kind, text }: Activity): string {
  return `id: ${encodeCursor(epoch, seq)}\nevent: ${kind}\ndata: ${text}\n\n`
}

/** The part of a connection that receives a subscription's activities. Calls come one at a time, in order. */
export interface Outlet {
  /**
   * Takes the packet, or returns false when the queue is full: then it took nothing, and calls `hub.resume` once there is
   * room. Nothing is sent in between.
   */
  send(packet: Packet): boolean
  /** How it receives packets together with other outlets while it is live; if undefined, through {@link send}. */
  readonly sharing?: Sharing | undefined
  /** Reports that activity after `afterSeq` and up to `resumedSeq` is lost. */
  gap(afterSeq: number, resumedSeq: number): void
  /** All activity from before the subscription has been sent; the rest follows as it happens. May be called more than once. */
  caughtUp(): void
  /** Nothing more can be read for the subscription; the outlet unsubscribes. */
  failed(error: ApiError): void
}

/** How an outlet takes part in sending the same bytes to several outlets at once. */
export interface Sharing {
  /** Outlets of a channel with the same key receive the same bytes. */
  readonly key: string
  readonly connection: SharingConnection
  /** Sends the packet to every outlet in the topic. */
  publish(topic: string, packet: Packet): void
}

interface SharingConnection {
  /** The queue is full, as when {@link Outlet.send} returns false: nothing may be sent to it. */
  readonly isFull: boolean
  enter(topic: string): void
  exit(topic: string): void
  /** A packet was published to it; its queue may now be full. */
  sent(): void
}
