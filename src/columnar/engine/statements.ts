import { ClickHouseFailure } from '../protocol.ts'

/**
 * The statements under way. Some functions of the engine look neither at its time limit nor for a KILL while they work on a
 * block; only the end of the process ends those. That end is prepared here: everybody gets an answer first.
 */
export class Statements {
  private readonly underWay = new Set<UnderWay>()
  private isEnding = false

  /**
   * @param onEnd called once everything under way has been answered; the process is to end, and to be started again
   */
  constructor(private readonly onEnd: (quotaKeys: readonly string[]) => void) {}

  /**
   * The result of a statement, or a failure as soon as the process has to end.
   * @param quotaKey whose it is: see `Statement.quotaKey`
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
   * The engine does not let go of a statement. Its owner's statements fail as too long, so that nobody sends them again;
   * the others' fail as cut off, and can be repeated.
   * @param isToBlame whether its owner is named as the reason: on a machine that is too busy nobody is
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

interface UnderWay {
  readonly quotaKey: string | undefined
  readonly reject: (failure: ClickHouseFailure) => void
}

const TOO_LONG = new ClickHouseFailure(
  159,
  'TIMEOUT_EXCEEDED',
  'Timeout exceeded: a query could not be stopped at its time limit, so the engine was restarted.',
)
const RESTARTING = new ClickHouseFailure(236, 'ABORTED', 'The engine is being restarted.')
