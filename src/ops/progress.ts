/** Says what is going on while something takes longer than a second. */
export interface Progress {
  /** Runs `work`, which may name its current step with `say`; until then `label` is shown. */
  during<T>(label: string, work: (say: (step: string) => void) => Promise<T>): Promise<T>
}

/** One line of a terminal, written over. */
export interface ProgressLine extends Progress {
  /** Empties the line, so that other text can be written; it comes back with the next change. */
  clear(): void
}

const INTERVAL_MS = 1_000

/**
 * For output that nobody watches. @param write is given whole lines, each at most once a second for each piece of work
 */
export function createProgress(write: (line: string) => void): Progress {
  return {
    async during(label, work) {
      let step = label
      const startedAt = performance.now()
      const timer = setInterval(() => {
        write(`  ${step} … ${Math.round((performance.now() - startedAt) / 1000)} s\n`)
      }, INTERVAL_MS)
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

/**
 * For a terminal: one line with everything under way and its time, gone when nothing is.
 *
 * @param columns how wide the terminal is: a line that wraps could not be written over
 */
export function createProgressLine({
  write,
  columns,
}: {
  readonly write: (text: string) => void
  readonly columns: () => number
}): ProgressLine {
  const steps = new Map<symbol, string>()
  let startedAt = 0
  let timer: ReturnType<typeof setInterval> | undefined
  const clear = () => write('\r\x1b[K')
  const draw = () => {
    const seconds = Math.floor((performance.now() - startedAt) / 1000)
    const text = `  ${[...steps.values()].join(', ')} … ${seconds > 0 ? `${seconds} s` : ''}`
    write(`\r\x1b[K${text.slice(0, Math.max(0, columns() - 1))}`)
  }
  return {
    clear,
    async during(label, work) {
      const id = Symbol(label)
      if (steps.size === 0) startedAt = performance.now()
      steps.set(id, label)
      timer ??= setInterval(draw, INTERVAL_MS)
      draw()
      try {
        return await work((next) => {
          steps.set(id, next)
          draw()
        })
      } finally {
        steps.delete(id)
        if (steps.size > 0) draw()
        else {
          clearInterval(timer)
          timer = undefined
          clear()
        }
      }
    },
  }
}
