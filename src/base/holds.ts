/** Pauses a loop between two rounds, for callers that need it to be idle. */
export class Holds {
  private pending: PromiseWithResolvers<() => void>[] = []

  get arePending(): boolean {
    return this.pending.length > 0
  }

  /**
   * Resolves once the loop is paused, with the function that resumes it.
   * @throws the reason of `signal`
   */
  request(signal?: AbortSignal): Promise<() => void> {
    const hold = Promise.withResolvers<() => void>()
    this.pending.push(hold)
    const cancel = () => {
      this.pending = this.pending.filter((each) => each !== hold)
      hold.reject(signal?.reason)
    }
    signal?.addEventListener('abort', cancel, { once: true })
    return hold.promise.finally(() => signal?.removeEventListener('abort', cancel))
  }

  /** For the loop, between two rounds: pauses for each request in turn. `stopped` ends the pause early when it resolves. */
  async grant(stopped?: Promise<void>): Promise<void> {
    for (let hold = this.pending.shift(); hold !== undefined; hold = this.pending.shift()) {
      const released = Promise.withResolvers<void>()
      hold.resolve(released.resolve)
      await (stopped === undefined ? released.promise : Promise.race([released.promise, stopped]))
    }
  }
}
