import type { Packet } from './packet.ts'
import type { Subscription } from './subscription.ts'

/** So that others have a turn in between, however many watch. */
const MEMBERS_MAX = 64

let topics = 0

/**
 * Live subscriptions of a channel that get the same bytes, in one call: a text is encoded once for all of them. Only those
 * whose queue has room are members, so that nothing is ever dropped.
 */
export class Shard {
  readonly members = new Set<Subscription>()
  private readonly topic = `feed ${++topics}`

  constructor(readonly key: string) {}

  get hasRoom(): boolean {
    return this.members.size < MEMBERS_MAX
  }

  add(subscription: Subscription): void {
    this.members.add(subscription)
    subscription.shard = this
    subscription.outlet.sharing?.enter(this.topic)
  }

  remove(subscription: Subscription): void {
    this.members.delete(subscription)
    subscription.shard = undefined
    subscription.outlet.sharing?.exit(this.topic)
  }

  /** Sends the packet to all members. */
  send(packet: Packet): void {
    const [first] = this.members
    first?.outlet.sharing?.publish(this.topic, packet)
    for (const subscription of this.members) {
      subscription.position = packet.lastSeq
      subscription.outlet.sharing?.sent()
    }
  }
}
