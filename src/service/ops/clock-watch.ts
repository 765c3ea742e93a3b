import { type Clock, type ClockState, SteadyClock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Metrics } from '../../base/metrics.ts'

const INTERVAL_MS = 1_000
/** For how long `/readyz` shows a jump that was followed. */
const SHOWN_MS = 3_600_000

/**
 * Looks at the clock once a second, so that its jumps are noticed and followed whoever else uses it, and logs them.
 * @returns a function that stops that
 */
export function watchClock(clock: Clock, log: Log, metrics: Pick<Metrics, 'gauge'>): () => void {
  const help = 'Seconds by which the system clock is ahead of the time that is used, because it has just jumped.'
  metrics.gauge('clock_off_seconds', help, () => stateOf(clock).offByMs / 1000)
  let before = stateOf(clock)
  const timer = setInterval(() => {
    const { offByMs, jump } = stateOf(clock)
    const isFollowed = jump !== null && (before.jump === null || jump.agoMs < before.jump.agoMs)
    if (isFollowed) log.warn('the system clock has jumped, and is followed now', { by_ms: jump.byMs })
    else if (offByMs !== 0 && before.offByMs === 0)
      log.warn('the system clock has jumped; it is followed if it stays so', { by_ms: offByMs })
    else if (offByMs === 0 && before.offByMs !== 0) log.info('the system clock is right again')
    before = { offByMs, jump }
  }, INTERVAL_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** The clock in `GET /readyz`. */
export function clockHealth(clock: Clock) {
  const { offByMs, jump } = stateOf(clock)
  const problem =
    offByMs !== 0
      ? `the system clock has jumped by ${seconds(offByMs)}; it is followed if it stays so`
      : jump !== null && jump.agoMs < SHOWN_MS
        ? `the system clock jumped by ${seconds(jump.byMs)}, ${seconds(jump.agoMs)} ago, and is followed`
        : null
  return { ok: problem === null, off_by_ms: offByMs, problem }
}

function stateOf(clock: Clock): ClockState {
  return clock instanceof SteadyClock ? clock.state : { offByMs: 0, jump: null }
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`
}
