import type { ApiError } from '../base/errors.ts'
import type { Packet } from './packet.ts'

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
