import { join } from 'node:path'
import { atEnd } from '../support/teardown.ts'

export interface TailProcess {
  /** Complete lines of standard output so far. */
  lines(): string[]
  /** Its output on standard error so far. */
  notes(): string
  signal(name: NodeJS.Signals): void
  /** The exit code, once all output was read. */
  readonly exited: Promise<number>
}

const MAIN = join(import.meta.dir, '..', '..', 'src', 'cli', 'tail', 'main.ts')

/** `bun run tail` as a real process. */
export function spawnTail(url: string, key: string, ...args: string[]): TailProcess {
  return spawn(url, key, [process.execPath, MAIN, ...args])
}

/** The same piped to a reader that exits after some lines: the exit code is the tail's. */
export function spawnWithReader(url: string, key: string, lines: number, ...args: string[]): TailProcess {
  const pipe = `{ "$@"; echo "exit code $?" >&2; } | head -n ${lines}`
  return spawn(url, key, ['sh', '-c', pipe, 'sh', process.execPath, MAIN, ...args])
}

/** The same piped to a reader that takes nothing until `release` is called. */
export function spawnStalled(url: string, key: string, ...args: string[]): TailProcess & { release(): void } {
  const pipe = 'exec 3<&0; "$@" </dev/null | { read -r _ <&3; exec cat; }'
  return spawn(url, key, ['sh', '-c', pipe, 'sh', process.execPath, MAIN, ...args])
}

function spawn(url: string, key: string, command: string[]) {
  const child = Bun.spawn(command, {
    env: { PATH: process.env.PATH ?? '', AGENT_RUN_URL: url, AGENT_RUN_KEY: key },
    // Its own process group, so that a shell's children end with it.
    detached: true,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  atEnd(async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
    await child.exited
  })
  const printed = { stdout: '', stderr: '' }
  const collect = async (name: keyof typeof printed) => {
    const decoder = new TextDecoder()
    for await (const chunk of child[name]) printed[name] += decoder.decode(chunk, { stream: true })
  }
  const read = Promise.all([collect('stdout'), collect('stderr')])
  return {
    lines: () => printed.stdout.split('\n').slice(0, -1),
    notes: () => printed.stderr,
    signal: (name: NodeJS.Signals) => child.kill(name),
    release() {
      child.stdin.write('\n')
      child.stdin.end()
    },
    exited: child.exited.then(async (code) => {
      await read
      return code
    }),
  }
}
