export type ReportProgress = ReturnType<typeof createReport>

interface Terminal {
  readonly isTTY?: boolean
  write(text: string): unknown
}

const REFRESH_MS = 100
const MIB = 1024 * 1024

/** Reports the progress of a command's steps: on a terminal, a line that is updated; otherwise one line after each step. */
export function createReport(terminal: Terminal) {
  return {
    /** @param totalBytes undefined when the total is unknown */
    async during<T>(
      label: string,
      totalBytes: number | undefined,
      work: (onBytes: (bytes: number) => void) => Promise<T>,
    ): Promise<T> {
      const startedAt = performance.now()
      let done = 0
      const line = () => {
        const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
        const share = totalBytes === undefined || totalBytes === 0 ? '' : `  ${Math.floor((done / totalBytes) * 100)} %`
        const size = done === 0 ? '' : `  ${(done / MIB).toFixed(1)} MiB`
        return `  ${label}${size}${share}  ${seconds} s`
      }
      const show = () => terminal.write(`\r\x1b[2K${line()}`)
      const timer = terminal.isTTY === true ? setInterval(show, REFRESH_MS) : undefined
      try {
        return await work((bytes) => {
          done += bytes
        })
      } finally {
        clearInterval(timer)
        terminal.write(`${terminal.isTTY === true ? '\r\x1b[2K' : ''}${line()}\n`)
      }
    },
  }
}
