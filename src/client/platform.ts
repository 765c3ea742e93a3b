import type { ReportError } from './errors.ts'
import type { Transport } from './http.ts'
import type { Spool } from './spool.ts'

/** What differs between Node (and Bun, Deno) and browsers. */
export interface Platform {
  readonly env: (name: string) => string | undefined
  /** Undefined if the platform sends its own. */
  readonly userAgent?: string | undefined
  /** Called with lost reports when the program does not handle them itself. */
  readonly warn: (error: ReportError) => void
  /**
   * Calls `finish` when the program is about to end, and lets it wait a moment.
   * @returns a function that undoes it
   */
  readonly onExit: (finish: () => Promise<unknown>) => () => void
  /** Default: `fetch`. */
  readonly transport?: Transport | undefined
  /** @throws Error when the file cannot be used, or another process uses it */
  readonly openSpool: (path: string) => Spool
}

/** Browsers: no environment, no files, and no moment to wait at the end. */
export const WEB: Platform = {
  env: () => undefined,
  warn: (error) => globalThis.reportError?.(error),
  onExit: () => () => {},
  openSpool() {
    throw new Error('a spool needs a file system; import the client in Node, Bun or Deno')
  },
}
