import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { openTerminal, runProgram } from '../support/processes.ts'

/** The service to query, and the key. */
export interface Target {
  readonly url: string
  readonly workspaceKey: string
}

const MAIN = join(import.meta.dir, '..', '..', 'src', 'cli', 'sql', 'main.ts')

function environment({ url, workspaceKey }: Target): Record<string, string> {
  return { AGENT_RUN_URL: url, AGENT_RUN_KEY: workspaceKey }
}

/** `bun run sql` as a real process without a terminal. */
export async function runSql(target: Target, args: readonly string[], stdin = '') {
  return runProgram([process.execPath, MAIN, ...args], { env: environment(target), stdin })
}

/** The same piped to a reader that exits after some lines; the exit code comes last on standard error. */
export async function runSqlIntoHead(target: Target, lines: number, args: readonly string[]) {
  const pipe = `{ "$@"; echo "exit code $?" >&2; } | head -n ${lines}`
  return runProgram(['sh', '-c', pipe, 'sh', process.execPath, MAIN, ...args], { env: environment(target) })
}

export interface TerminalOptions {
  readonly args?: readonly string[]
  readonly columns?: number
  readonly env?: Readonly<Record<string, string>>
}

export type Terminal = ReturnType<typeof openPrompt>

/** `bun run sql` in a pseudo-terminal. */
export function openPrompt(target: Target, { args = [], columns = 100, env = {} }: TerminalOptions = {}) {
  const terminal = openTerminal([process.execPath, MAIN, ...args], {
    env: { ...environment(target), LANG: 'en_US.UTF-8', ...env },
    columns,
  })
  let seen = 0
  const plain = () => Bun.stripANSI(terminal.shown()).replaceAll('\r', '')
  return {
    ...terminal,
    /** All output, unchanged. */
    raw: terminal.shown,
    /** Everything shown since the last call of `next`, without colours and cursor movements. */
    shown: () => plain().slice(seen),
    /** The output up to and including `pattern`, once it is there; the rest is for the next call. */
    async next(pattern: RegExp): Promise<string> {
      const found = await eventually(() => {
        const match = pattern.exec(plain().slice(seen))
        if (match === null) throw new Error(`no ${pattern} in: ${plain().slice(seen)}`)
        return match
      })
      const text = plain().slice(seen, seen + found.index + found[0].length)
      seen += text.length
      return text
    },
  }
}
