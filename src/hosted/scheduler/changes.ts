/** After so long whoever waits looks by itself: what other processes do is told by no signal. */
const SILENCE_MS = 1_000

/** Wakes those in this process who wait for a change of something, which they then look at themselves. */
export class ChangeSignals {
  private readonly listeners = new Map<string, Set<() => void>>()

  /** Resolves when {@link tell} is called for the key, when nobody has for a while, or when the signal aborts. */
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

  tell(key: string): void {
    for (const listener of this.listeners.get(key) ?? []) listener()
  }
}
