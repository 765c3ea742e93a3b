/** Bytes that may be in memory at once. Callers wait in order; one that needs more than all gets all. */
export class ByteBudget {
  private free: number
  private readonly waiting: { readonly bytes: number; readonly resolve: () => void }[] = []

  constructor(private readonly total: number) {
    this.free = total
  }

  /** Resolves with what gives the bytes back. */
  async take(bytes: number): Promise<() => void> {
    const taken = Math.min(bytes, this.total)
    if (this.waiting.length > 0 || this.free < taken) {
      await new Promise<void>((resolve) => this.waiting.push({ bytes: taken, resolve }))
    } else this.free -= taken
    return () => this.release(taken)
  }

  private release(bytes: number): void {
    this.free += bytes
    for (let next = this.waiting[0]; next !== undefined && next.bytes <= this.free; next = this.waiting[0]) {
      this.waiting.shift()
      this.free -= next.bytes
      next.resolve()
    }
  }
}
