import { ClickHouseFailure } from './protocol.ts'

/** Runs up to `runningMax` tasks at a time, queues up to `waitingMax`, and refuses the rest. */
export function createGate(runningMax: number, waitingMax: number) {
  let running = 0
  const waiting: (() => void)[] = []
  const idlers: (() => void)[] = []

  const enter = (signal: AbortSignal): Promise<void> | undefined => {
    // It may have disconnected while it waited for another gate. An aborted signal fires no event.
    if (signal.aborted) throw disconnected()
    if (running < runningMax) {
      running++
      return undefined
    }
    if (waiting.length >= waitingMax) {
      throw new ClickHouseFailure(
        202,
        'TOO_MANY_SIMULTANEOUS_QUERIES',
        `Too many simultaneous queries: ${running + waiting.length}.`,
      )
    }
    return new Promise((resolve, reject) => {
      const admitted = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        waiting.splice(waiting.indexOf(admitted), 1)
        reject(disconnected())
      }
      waiting.push(admitted)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  const leave = () => {
    const next = waiting.shift()
    // The slot is handed over, so `running` does not change.
    if (next !== undefined) return next()
    running--
    if (running === 0) for (const idler of idlers.splice(0)) idler()
  }

  return {
    async run<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
      const admission = enter(signal)
      if (admission !== undefined) await admission
      try {
        return await task()
      } finally {
        leave()
      }
    },
    /** Resolves once nothing runs. */
    idle: () => (running === 0 ? Promise.resolve() : new Promise<void>((resolve) => idlers.push(resolve))),
  }
}

function disconnected(): ClickHouseFailure {
  return new ClickHouseFailure(394, 'QUERY_WAS_CANCELLED', 'The client disconnected before its query was started.')
}
