import { ClickHouseFailure } from '../protocol.ts'

const TOO_LONG = new ClickHouseFailure(
  159,
  'TIMEOUT_EXCEEDED',
  'Timeout exceeded: a query could not be stopped at its time limit, so the engine was restarted.',
)
const RESTARTING = new ClickHouseFailure(236, 'ABORTED', 'The engine is being restarted.')

/**
 * The running statements. Some functions of the engine check neither the time limit nor for a KILL while they process a
 * block; only killing the process ends them. Before that, every running statement gets a response.
 */
export class Statements {
  private readonly underWay = new Set<{
    readonly quotaKey: string | undefined
    reject(failure: ClickHouseFailure): void
  }>()
  private isEnding = false

  /**
   * @param onEnd called once all running statements have a response; the process must then be restarted
   */
  constructor(private readonly onEnd: (quotaKeys: readonly string[]) => void) {}

  /**
   * Runs a statement; it fails as soon as the process has to end.
   * @param quotaKey see `Statement.quotaKey`
   */
  async during<T>(quotaKey: string | undefined, run: () => Promise<T>): Promise<T> {
    if (this.isEnding) throw RESTARTING
    const { promise, reject } = Promise.withResolvers<never>()
    const entry = { quotaKey, reject }
    this.underWay.add(entry)
    try {
      return await Promise.race([run(), promise])
    } finally {
      this.underWay.delete(entry)
    }
  }

  /**
   * Handles a statement that the engine does not end. Statements of its owner fail with a timeout, so that they are not
   * retried; all others fail as aborted and can be retried.
   * @param isToBlame whether its owner is reported as the cause; not on a machine that is merely busy
   */
  stuck(quotaKey: string | undefined, isToBlame: boolean): void {
    if (this.isEnding) return
    this.isEnding = true
    for (const entry of this.underWay) {
      const isOwners = quotaKey !== undefined && entry.quotaKey === quotaKey
      entry.reject(isOwners ? TOO_LONG : RESTARTING)
    }
    this.onEnd(quotaKey === undefined || !isToBlame ? [] : [quotaKey])
  }
}
