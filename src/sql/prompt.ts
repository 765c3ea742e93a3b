import { createInterface, type Interface } from 'node:readline'
import { CliError } from '../cli/error.ts'
import type { Note } from '../cli/terminal.ts'
import { runCommand } from './commands.ts'
import { complete } from './completion.ts'
import type { History } from './history.ts'
import type { Schema } from './service.ts'
import type { Session } from './session.ts'
import { onOneLine, splitStatements } from './statements.ts'

export interface PromptDeps {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
  readonly session: Session
  readonly schema: Schema | null
  readonly history: History
  readonly note: Note
}

const READY = 'sql> '
/** Of a statement that goes on. */
const MORE = ' ... '

/** Reads statements and commands from a terminal until it is told to stop: by `\q`, Ctrl-D, or `signal`. */
export function runPrompt(deps: PromptDeps, signal: AbortSignal): Promise<void> {
  return new Prompt(deps).run(signal)
}

/**
 * Lines that come while a statement runs wait their turn. Ctrl-C gives up the statement that runs and what waits behind
 * it; else what has been typed.
 */
class Prompt {
  private readonly readline: Interface
  private readonly remember: (entry: string) => Promise<void>
  private readonly lines: string[] = []
  /** The beginning of a statement. */
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
    this.readline.on('SIGINT', () => this.giveUp())
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
    // What has been typed meanwhile stays, with the cursor where it is.
    this.readline.prompt(true)
  }

  private quit(): void {
    this.lines.length = 0
    this.readline.close()
  }

  private giveUp(): void {
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
      const run = (statement: string) => this.ask(statement)
      return runCommand(line, { ...this.deps, run, quit: () => this.quit() })
    }
    if (this.pending === '' && /^\s*(quit|exit)\s*;?\s*$/i.test(line)) return this.quit()
    const { complete: statements, rest } = splitStatements(`${this.pending}${line}\n`)
    this.pending = rest
    for (const statement of statements) if (!(await this.ask(statement))) break
  }

  /** @returns whether to go on with what comes next */
  private async ask(statement: string): Promise<boolean> {
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
 * Readline remembers lines; people look for statements. So what it remembers is always what we do.
 *
 * @returns what adds an entry of one line
 */
function keepHistory(readline: Interface, history: History): (entry: string) => Promise<void> {
  let live: string[] = []
  const show = () => live.splice(0, live.length, ...history.entries)
  readline.on('history', (entries: string[]) => {
    live = entries
    show()
  })
  return async (entry) => {
    await history.add(entry)
    show()
  }
}
