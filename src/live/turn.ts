/** The service does other things too: reporting calls wait for about this, however many watch. */
const TURN_MS = 5

/** Work that may go on for long, cut into turns so that everything else has its own in between. */
export class Turn {
  private endsMs = 0

  /** Counts from now. */
  begin(): void {
    this.endsMs = performance.now() + TURN_MS
  }

  get isOver(): boolean {
    return performance.now() > this.endsMs
  }

  /** Lets others do what they have to do, then begins anew. */
  async giveWay(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.begin()
  }
}
