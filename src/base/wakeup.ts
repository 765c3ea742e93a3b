/** Lets one loop wait until it is woken or some time has passed. Waking it while it is busy ends its next wait at once. */
export class Wakeup {
  private isWoken = false
  private resume: (() => void) | undefined

  wake(): void {
    this.isWoken = true
    this.resume?.()
  }

  /** Forgets that it was woken. */
  clear(): void {
    this.isWoken = false
  }

  /**
   * Resolves once it is woken, after `ms`, or when `signal` aborts. One call at a time.
   * @returns whether it was woken
   */
  async next(ms = Number.POSITIVE_INFINITY, signal?: AbortSignal): Promise<boolean> {
    if (!this.isWoken && signal?.aborted !== true) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const end = () => resolve()
      const timer = ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(end, ms)
      signal?.addEventListener('abort', end)
      this.resume = end
      await promise
      this.resume = undefined
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    }
    const { isWoken } = this
    this.isWoken = false
    return isWoken
  }
}
