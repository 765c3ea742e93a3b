import { createInterface } from 'node:readline'
import { CliError } from '../shared/error.ts'
import type { Note } from '../shared/terminal.ts'
import { splitStatements } from './statements.ts'

type RunStatement = (statement: string, signal: AbortSignal) => Promise<void>

/** Ends the prompt; so does Ctrl-D. */
const QUIT = /^\s*(\\q|quit|exit)\s*;?\s*$/i

/**
 * Reads statements from a terminal and runs each once its semicolon is there. Ctrl-C cancels the running one and those after
 * it on the line, or discards what was typed.
 */
export async function runPrompt(run: RunStatement, note: Note): Promise<void> {
  const readline = createInterface({ input: process.stdin, output: process.stdout })
  let running: AbortController | undefined
  /** The beginning of an incomplete statement. */
  let pending = ''
  /** Lines that wait for a running statement, such as those of a pasted text. */
  let waiting = 0
  const ask = () => {
    readline.setPrompt(pending === '' ? 'sql> ' : ' ... ')
    // Keeps what was typed meanwhile.
    readline.prompt(true)
  }
  /** Resolves to false if the statement was cancelled. */
  const attempt = async (statement: string): Promise<boolean> => {
    running = new AbortController()
    const { signal } = running
    try {
      await run(statement, signal)
    } catch (error) {
      if (!signal.aborted && !(error instanceof CliError)) throw error
      note(signal.aborted ? 'cancelled' : (error as Error).message, signal.aborted ? 'yellowBold' : 'red')
    }
    running = undefined
    return !signal.aborted
  }
  readline.on('SIGINT', () => {
    if (running !== undefined) return running.abort()
    pending = ''
    process.stdout.write('^C\n')
    for (const name of ['e', 'u']) readline.write(null, { ctrl: true, name })
    ask()
  })
  // The terminal must be restored before the process exits.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      readline.close()
      process.exit()
    })
  readline.on('line', () => waiting++)
  ask()
  for await (const line of readline) {
    waiting--
    if (pending === '' && QUIT.test(line)) return
    const { complete, rest } = splitStatements(`${pending}${line}\n`)
    pending = rest
    for (const statement of complete) if (!(await attempt(statement))) break
    if (waiting === 0) ask()
  }
  process.stdout.write('\n')
}
