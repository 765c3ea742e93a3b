import { ClickHouseFailure } from '../protocol.ts'

/** Lets so many tasks run at a time, makes so many more wait, and refuses the rest. */
export function createGate(runningMax: number, waitingMax: number) {
  let running = 0
  const waiting: (() => void)[] = []
  const idlers: (() => void)[] = []

  const enter = (signal: AbortSignal): Promise<void> | undefined => {
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
        reject(new ClickHouseFailure(394, 'QUERY_WAS_CANCELLED', 'The client went away before its query was started.'))
      }
      waiting.push(admitted)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  const leave = () => {
    const next = waiting.shift()
    // The place is handed over, so `running` stays as it is.
    if (next !== undefined) return next()
    running--
    if (running === 0) for (const idler of idlers.splice(0)) idler()
  }

  return {
    async run<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
      const turn = enter(signal)
      if (turn !== undefined) await turn
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
