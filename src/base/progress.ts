/** Shows the progress of work that takes longer than a second. */
export interface Progress {
  /** Runs `work`, which may name its current step with `say`; until then `label` is shown. */
  during<T>(label: string, work: (say: (step: string) => void) => Promise<T>): Promise<T>
}

/** Progress on one line of a terminal, which is overwritten. */
export interface ProgressLine extends Progress {
  /** Clears the line, so that other text can be written. It reappears with the next change. */
  clear(): void
}

const INTERVAL_MS = 1_000

/**
 * Progress for output that is not a terminal.
 * @param write receives whole lines, at most one a second for each piece of work
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
 * Progress for a terminal: one line with all current steps and the elapsed time, cleared when no work is left.
 *
 * @param columns the width of the terminal: a line that wraps cannot be overwritten
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
