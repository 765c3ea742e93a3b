/** Says what is going on while something takes longer than a second. */
export interface Progress {
  /** Runs `work`, which may name its current step with `say`; until then `label` is shown. */
  during<T>(label: string, work: (say: (step: string) => void) => Promise<T>): Promise<T>
}

const PATIENCE_MS = 1_000

/** @param write is given whole lines, each at most once a second for each piece of work */
export function createProgress(write: (line: string) => void): Progress {
  return {
    async during(label, work) {
      let step = label
      const startedAt = performance.now()
      const timer = setInterval(() => {
        write(`  ${step} … ${Math.round((performance.now() - startedAt) / 1000)} s\n`)
      }, PATIENCE_MS)
      try {
        return await work((next) => {
          step = next
        })
      } finally {
        clearInterval(timer)
      }
    },
  }
}
