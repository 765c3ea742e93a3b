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

/** @returns a cheap function that tells all nodes that this one has written to the outbox; frequent calls are merged */
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
