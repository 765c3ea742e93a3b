/** After this long without a signal, waiters check anyway: changes by other processes send none. */
const SILENCE_MS = 1_000

/** Wakes waiters in this process when something they wait for may have changed; they then check it themselves. */
export class ChangeSignals {
  private readonly listeners = new Map<string, Set<() => void>>()

  /** Resolves when {@link notify} is called for the key, after a while without a signal, or when the signal aborts. */
  next(key: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const listeners = this.listeners.get(key) ?? new Set()
      this.listeners.set(key, listeners)
      const changed = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', changed)
        listeners.delete(changed)
        if (listeners.size === 0) this.listeners.delete(key)
        resolve()
      }
      const timer = setTimeout(changed, SILENCE_MS)
      signal.addEventListener('abort', changed, { once: true })
      listeners.add(changed)
    })
  }

  /** Wakes all waiters of the key. */
  notify(key: string): void {
    for (const listener of this.listeners.get(key) ?? []) listener()
  }
}
