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

/** @returns the function that tells all nodes, once for a busy outbox, that this one has committed rows to it. Cheap. */
export function outboxSignal(bus: SignalBus): () => void {
  let isScheduled = false
  return () => {
    if (isScheduled) return
    isScheduled = true
    setTimeout(() => {
      isScheduled = false
      bus.publish('outbox')
    }, OUTBOX_INTERVAL_MS)
  }
}
