interface StoringDeps<Batch, Result> {
  /** What is to be stored next; undefined for nothing. */
  readonly next: () => Batch | undefined
  readonly store: (batch: Batch) => Promise<Result>
  readonly stored: (batch: Batch, result: Result) => void
  /** Waits a moment, so that what ends meanwhile is stored together. */
  readonly gather: () => Promise<void>
}

/** Stores batches one after the other. The next {@link start} retries one that could not be stored. */
export class Storing<Batch, Result> {
  private batch: Batch | undefined
  private work: Promise<void> | undefined

  constructor(private readonly deps: StoringDeps<Batch, Result>) {}

  /** The batch that is being stored, or could not be. */
  get current(): Batch | undefined {
    return this.batch
  }

  /** Resolves when nothing is being stored. */
  get finished(): Promise<void> | undefined {
    return this.work
  }

  /** Stores until there is nothing more, or until it fails, which `store` reports. */
  start(): void {
    this.work ??= this.storeAll().catch(() => {
      this.work = undefined
    })
  }

  private async storeAll(): Promise<void> {
    const { next, store, stored, gather } = this.deps
    await gather()
    for (;;) {
      this.batch ??= next()
      if (this.batch === undefined) break
      const result = await store(this.batch)
      const { batch } = this
      this.batch = undefined
      stored(batch, result)
    }
    this.work = undefined
  }
}
