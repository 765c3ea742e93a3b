import { createInterface, type Interface } from 'node:readline'
import { CliError } from '../shared/error.ts'
import type { Note } from '../shared/terminal.ts'
import { runCommand } from './commands.ts'
import { complete } from './completion.ts'
import type { History } from './history.ts'
import type { Schema } from './service.ts'
import type { Session } from './session.ts'
import { onOneLine, splitStatements } from './statements.ts'

interface PromptDeps {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
  readonly session: Session
  readonly schema: Schema | null
  readonly history: History
  readonly note: Note
}

const READY = 'sql> '
/** Shown on the continuation lines of a statement. */
const MORE = ' ... '

/** Reads statements and commands from a terminal until `\q`, Ctrl-D or `signal` ends it. */
export function runPrompt(deps: PromptDeps, signal: AbortSignal): Promise<void> {
  return new Prompt(deps).run(signal)
}

/**
 * Lines that arrive while a statement runs are queued. Ctrl-C cancels the running statement and the queue, or else
 * discards the current input.
 */
class Prompt {
  private readonly readline: Interface
  private readonly remember: (entry: string) => Promise<void>
  private readonly lines: string[] = []
  /** The beginning of an incomplete statement. */
  private pending = ''
  private running: AbortController | undefined
  private isWorking = false
  private isClosed = false
  private readonly over = Promise.withResolvers<void>()

  constructor(private readonly deps: PromptDeps) {
    const { input, output, schema, history } = deps
    this.readline = createInterface({
      input,
      output,
      terminal: true,
      history: [...history.entries],
      completer: (line: string) => complete(schema, line, this.pending),
    })
    this.remember = keepHistory(this.readline, history)
  }

  async run(signal: AbortSignal): Promise<void> {
    this.readline.on('line', (line) => {
      this.lines.push(line)
      this.work().catch(this.over.reject)
    })
    this.readline.on('SIGINT', () => this.cancel())
    this.readline.on('close', () => {
      this.isClosed = true
      if (this.isWorking) return
      this.deps.output.write('\n')
      this.over.resolve()
    })
    signal.addEventListener('abort', () => {
      this.running?.abort()
      this.quit()
    })
    this.ready()
    try {
      await this.over.promise
    } finally {
      this.readline.close()
    }
  }

  private ready(): void {
    this.readline.setPrompt(this.pending === '' ? READY : MORE)
    // Keeps what the user has typed meanwhile, and the cursor position.
    this.readline.prompt(true)
  }

  private quit(): void {
    this.lines.length = 0
    this.readline.close()
  }

  private cancel(): void {
    this.lines.length = 0
    this.running?.abort()
    if (this.isWorking) return
    this.pending = ''
    this.deps.output.write('^C\n')
    this.readline.write(null, { ctrl: true, name: 'e' })
    this.readline.write(null, { ctrl: true, name: 'u' })
    this.ready()
  }

  private async work(): Promise<void> {
    if (this.isWorking) return
    this.isWorking = true
    for (let line = this.lines.shift(); line !== undefined; line = this.lines.shift()) await this.take(line)
    this.isWorking = false
    if (this.isClosed) this.over.resolve()
    else this.ready()
  }

  private async take(line: string): Promise<void> {
    if (line.trimStart().startsWith('\\')) {
      await this.remember(line.trim())
      const run = (statement: string) => this.runStatement(statement)
      return runCommand(line, { ...this.deps, run, quit: () => this.quit() })
    }
    if (this.pending === '' && /^\s*(quit|exit)\s*;?\s*$/i.test(line)) return this.quit()
    const { complete: statements, rest } = splitStatements(`${this.pending}${line}\n`)
    this.pending = rest
    for (const statement of statements) if (!(await this.runStatement(statement))) break
  }

  /** @returns false if the statement was cancelled: the next ones are not run */
  private async runStatement(statement: string): Promise<boolean> {
    const { session, note } = this.deps
    const entry = onOneLine(statement)
    if (entry !== null) await this.remember(`${entry};`)
    const running = new AbortController()
    this.running = running
    try {
      await session.run(statement, running.signal)
    } catch (error) {
      if (running.signal.aborted) note('cancelled', 'yellowBold')
      else if (error instanceof CliError) note(error.message, 'red')
      else throw error
    } finally {
      this.running = undefined
    }
    return !running.signal.aborted
  }
}

/**
 * Readline records each line, but users look for statements. So its history is always replaced by ours.
 *
 * @returns a function that adds an entry of one line
 */
function keepHistory(readline: Interface, history: History): (entry: string) => Promise<void> {
  let live: string[] = []
  const replace = () => live.splice(0, live.length, ...history.entries)
  readline.on('history', (entries: string[]) => {
    live = entries
    replace()
  })
  return async (entry) => {
    await history.add(entry)
    replace()
  }
}
