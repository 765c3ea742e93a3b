/** Pauses a loop between two rounds, for callers that need it to be idle. */
export class Holds {
  private wanted: PromiseWithResolvers<() => void>[] = []

  get areWanted(): boolean {
    return this.wanted.length > 0
  }

  /**
   * Resolves once the loop rests, with the function that lets it go on.
   * @throws the reason of `signal`
   */
  ask(signal?: AbortSignal): Promise<() => void> {
    const hold = Promise.withResolvers<() => void>()
    this.wanted.push(hold)
    const giveUp = () => {
      this.wanted = this.wanted.filter((each) => each !== hold)
      hold.reject(signal?.reason)
    }
    signal?.addEventListener('abort', giveUp, { once: true })
    return hold.promise.finally(() => signal?.removeEventListener('abort', giveUp))
  }

  /** The loop's part: rests for each of them, one after the other, unless `stopped` resolves. */
  async giveWay(stopped?: Promise<void>): Promise<void> {
    for (let hold = this.wanted.shift(); hold !== undefined; hold = this.wanted.shift()) {
      const released = Promise.withResolvers<void>()
      hold.resolve(released.resolve)
      await (stopped === undefined ? released.promise : Promise.race([released.promise, stopped]))
    }
  }
}
