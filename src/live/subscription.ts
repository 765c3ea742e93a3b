import type { ApiError } from '../http/errors.ts'
import type { Channel } from './channel.ts'
import type { Packet } from './packet.ts'
import type { Shard } from './shard.ts'

/** Where the activities of a subscription go: part of a connection. Calls come one at a time, in order. */
export interface Outlet {
  /**
   * Takes the packet, or answers false when its queue is full: then nothing of it was taken, and the outlet calls
   * `hub.resume` once there is room. Between the two it is sent nothing.
   */
  send(packet: Packet): boolean
  /** How it is sent packets together with others while it is live; without, by {@link send}. */
  readonly sharing?: Sharing | undefined
  /** Says that what was accepted after `afterSeq` and up to `resumedSeq` is lost. */
  gap(afterSeq: number, resumedSeq: number): void
  /** All that was accepted before the subscription is sent; what follows comes as it happens. May be called again. */
  caughtUp(): void
  /** Nothing more can be read for it; the outlet unsubscribes. */
  failed(error: ApiError): void
}

/** An outlet's part in what is sent to several at once. */
export interface Sharing {
  /** Outlets of a channel with the same key are sent the same bytes. */
  readonly key: string
  /** As when {@link Outlet.send} answers false: it must not be sent anything. */
  readonly isFull: boolean
  enter(topic: string): void
  exit(topic: string): void
  /** Sends the packet to everyone in the topic. */
  publish(topic: string, packet: Packet): void
  /** It has been sent something: its queue may be full now. */
  sent(): void
}

/**
 * - `live`: has everything up to the hub's position, and gets the rest as it happens
 * - `behind`: is read what it misses, from memory, segments or ClickHouse
 * - `reading`: the same, while ClickHouse is being asked
 * - `full`: its outlet takes nothing for the moment
 */
export type SubscriptionState = 'live' | 'behind' | 'reading' | 'full' | 'ended'

/** One filter on one connection, and how far it has come. The hub's: nobody else writes to it. */
export interface Subscription {
  readonly channel: Channel
  readonly outlet: Outlet
  /** Everything that matches up to here has been sent. Kept while it is not live. */
  position: number
  /** Where the journal ended when it began: it has not caught up before that. */
  readonly promisedSeq: number
  state: SubscriptionState
  /** While it is live and shares. */
  shard: Shard | undefined
}
