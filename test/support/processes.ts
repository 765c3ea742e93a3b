import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { atEnd } from './teardown.ts'

export interface Process {
  readonly pid: number
  readonly command: string
}

/** The direct children of a process. */
export function childrenOf(pid: number): Process[] {
  return process.platform === 'linux' ? childrenInProc(pid) : childrenOfPs(pid)
}

/** On Linux without `ps`, which not every machine has. */
function childrenInProc(parent: number): Process[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => {
    try {
      // The name before the state may contain spaces and parentheses.
      const [, ppid] = /^.*\) \S (\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
      if (Number(ppid) !== parent) return []
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
      return [{ pid: Number(pid), command }]
    } catch {
      // It has ended meanwhile.
      return []
    }
  })
}

function childrenOfPs(parent: number): Process[] {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
  const lines = stdout.split('\n').map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
  return lines.flatMap((match) =>
    match !== null && Number(match[2]) === parent ? [{ pid: Number(match[1]), command: match[3]! }] : [],
  )
}

/** All descendants of a process. */
export function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child.pid, ...descendantsOf(child.pid)])
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Piped into it; empty by default. */
  readonly stdin?: string
}

/** Runs a program without a terminal until it ends. */
export async function runProgram(command: readonly string[], { env = {}, cwd, stdin = '' }: ProgramOptions = {}) {
  const child = Bun.spawn([...command], {
    env: { PATH: process.env.PATH ?? '', ...env },
    ...(cwd !== undefined && { cwd }),
    stdin: new TextEncoder().encode(stdin),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  atEnd(async () => child.kill('SIGKILL'))
  const [bytes, stderr, code] = await Promise.all([
    new Response(child.stdout).bytes(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, stdout: new TextDecoder().decode(bytes), stderr, bytes }
}

/** Runs a program in a directory, with our environment. @returns what it printed @throws Error with that when it fails */
export async function runTool(
  command: readonly string[],
  cwd: string,
  { env = {}, stdin = '' }: Omit<ProgramOptions, 'cwd'> = {},
): Promise<string> {
  const own = process.env as Record<string, string>
  const { code, stdout, stderr } = await runProgram(command, { cwd, env: { ...own, ...env }, stdin })
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}:\n${stdout}${stderr}`)
  return stdout
}

/** Collects what a program prints while it runs. */
export function collectOutput(child: Readonly<Record<'stdout' | 'stderr', ReadableStream<Uint8Array>>>) {
  const printed = { stdout: '', stderr: '' }
  let changed = Promise.withResolvers<void>()
  const collect = async (name: keyof typeof printed) => {
    const decoder = new TextDecoder()
    for await (const chunk of child[name]) {
      printed[name] += decoder.decode(chunk, { stream: true })
      changed.resolve()
      changed = Promise.withResolvers()
    }
  }
  return { printed, read: Promise.all([collect('stdout'), collect('stderr')]), change: () => changed.promise }
}

/** Ports that were free a moment ago. */
export function freePorts(count: number): number[] {
  const listeners = Array.from({ length: count }, listenAnywhere)
  for (const listener of listeners) listener.stop(true)
  return listeners.map(({ port }) => port)
}

/** Below the ports of outgoing connections on Linux: one of those could take a port before the server that it is for. */
const PORTS = { first: 12_000, count: 20_000 }

function listenAnywhere() {
  for (let attempt = 0; ; attempt++) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count)
    try {
      return Bun.listen({ hostname: '127.0.0.1', port, socket: { data: () => {} } })
    } catch (error) {
      if (attempt === 20) throw error
    }
  }
}

interface TerminalOptions {
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly columns?: number
}

/** A program in a pseudo-terminal. */
export function openTerminal(command: readonly string[], { env, cwd, columns = 100 }: TerminalOptions) {
  const decoder = new TextDecoder()
  let shown = ''
  const child = Bun.spawn([...command], {
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm-256color', ...env },
    ...(cwd !== undefined && { cwd }),
    terminal: {
      cols: columns,
      rows: 40,
      data(_terminal, data) {
        shown += decoder.decode(data, { stream: true })
      },
    },
  })
  atEnd(async () => {
    child.kill('SIGKILL')
    await child.exited
    child.terminal?.close()
  })
  return {
    pid: child.pid,
    /** All output so far, unchanged. */
    shown: () => shown,
    type: (keys: string) => void child.terminal?.write(keys),
    signal: (name: NodeJS.Signals) => child.kill(name),
    exited: child.exited,
  }
}
