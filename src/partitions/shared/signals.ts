/** Sent between nodes so that none has to wait for its next poll. A lost signal only costs that wait. */
export type Signal = 'outbox' | 'cluster'

/** Publishes to all nodes, this one included. */
export interface SignalBus {
  publish(signal: Signal): void
  /** Calls `listener` for each signal, of any node. */
  listen(listener: (signal: Signal) => void): void
}

/** Signals of the outbox are sent at most this often. */
const OUTBOX_INTERVAL_MS = 5

/** Sends the signals of this node, those of a busy outbox together. */
export class Signals {
  private isScheduled = false

  constructor(private readonly bus: SignalBus) {}

  /** This node has committed rows to the outbox. Cheap. */
  outboxChanged(): void {
    if (this.isScheduled) return
    this.isScheduled = true
    setTimeout(() => {
      this.isScheduled = false
      this.bus.publish('outbox')
    }, OUTBOX_INTERVAL_MS)
  }

  /** A partition is free. */
  partitionReleased(): void {
    this.bus.publish('cluster')
  }
}
