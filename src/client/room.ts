import type { Lane, Settled } from './lane.ts'
import { type Deferred, deferred, TIMER_MAX_MS } from './timing.ts'

/** Callers that wait for room. They keep the process alive. */
export class RoomWaiters {
  private waiting: Deferred<void> | undefined

  /** @param onTimeout called when there was no room for so long after the first of them began to wait; the wait ends */
  constructor(
    private readonly timeoutMs: number,
    private readonly onTimeout: () => void,
  ) {}

  /** @param onFirst called if nobody waits yet */
  wait(onFirst: () => void): Promise<void> {
    if (this.waiting !== undefined) return this.waiting.promise
    const waiting = deferred()
    this.waiting = waiting
    const giveUp = () => {
      this.onTimeout()
      this.release()
    }
    const timer = setTimeout(giveUp, Math.min(this.timeoutMs, TIMER_MAX_MS))
    void waiting.promise.then(() => clearTimeout(timer))
    onFirst()
    return waiting.promise
  }

  /** Ends the wait. */
  release(): void {
    this.waiting?.resolve()
    this.waiting = undefined
  }
}

/** What was dropped of a run. */
interface Dropped extends Settled {
  readonly lane: Lane
  /** Whether nothing of the run is left, and what is still reported about it must be dropped, too. */
  readonly isRunDropped: boolean
}

/**
 * Drops the oldest reports: what was reported up to some moment, in the order of all runs. A run that was over by then and of
 * which nothing was sent is dropped as a whole. Of other runs only events and scores are: later reports need their starts and
 * tasks, and without an end a run would never be over. When that is not enough, runs that go on are dropped as a whole, and
 * tasks of those that the service knows. Children of a dropped run are dropped with it: the service would refuse them.
 *
 * @param newest the number of the newest report
 * @param bytes how much room is needed
 */
export function dropOldest(lanes: readonly Lane[], newest: number, bytes: number): Dropped[] {
  const whole = (alsoOpenRuns: boolean) =>
    lanes.map((lane) => ({ lane, at: lane.wholeAt(alsoOpenRuns), size: lane.size }))
  const ofOverRuns = whole(false)
  const isEnough = sizeThrough(ofOverRuns, newest, false) >= bytes
  const parts = isEnough ? ofOverRuns : whole(true)
  let [low, high] = [0, newest]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (sizeThrough(parts, middle, !isEnough) >= bytes) high = middle
    else low = middle + 1
  }
  const runs = new Set<string>()
  const dropped: Dropped[] = []
  for (const { lane, at } of parts) {
    if (at <= low || runs.has(lane.parentRunId ?? '')) {
      runs.add(lane.runId)
      dropped.push({ lane, isRunDropped: !lane.hasEnd, ...lane.dropAll() })
    } else if (lane.sizeThrough(low, !isEnough) > 0)
      dropped.push({ lane, isRunDropped: false, ...lane.dropThrough(low, !isEnough) })
  }
  return dropped
}

interface Part {
  readonly lane: Lane
  /** Dropping up to this report drops the whole run. */
  readonly at: number
  /** What that frees. */
  readonly size: number
}

/** What dropping up to a report would free. */
function sizeThrough(parts: readonly Part[], mark: number, withTasks: boolean): number {
  let size = 0
  for (const part of parts) size += part.at <= mark ? part.size : part.lane.sizeThrough(mark, withTasks)
  return size
}
