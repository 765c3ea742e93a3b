import { collectOutput, descendantsOf, isAlive } from '../../support/processes.ts'
import { atEnd } from '../../support/teardown.ts'
import { Unavailable } from './peer.ts'

const READY_MS_MAX = 60_000
const POLL_MS = 20
const STOP_MS_MAX = 10_000

/** A server of a peer, with all processes that it starts. */
export interface PeerProcess {
  readonly pid: number
  /** What it has printed so far. */
  printed(): string
  /** `kill -9` of it and its descendants at once. Resolves when all have ended. */
  kill(): Promise<void>
  stop(): Promise<void>
}

interface PeerProcessOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  isReady(): Promise<boolean>
}

/** Starts a server and waits until it is ready. @throws Unavailable if it is not */
export async function startPeerProcess(
  command: readonly string[],
  { cwd, env = {}, isReady }: PeerProcessOptions,
): Promise<PeerProcess> {
  const child = Bun.spawn([...command], {
    cwd,
    env: { PATH: process.env.PATH ?? '', HOME: cwd, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const { printed } = collectOutput(child)
  const end = async (first: NodeJS.Signals) => {
    const processes = [child.pid, ...descendantsOf(child.pid)]
    for (const pid of processes) signal(pid, first)
    const deadline = performance.now() + STOP_MS_MAX
    while (processes.some(isAlive)) {
      if (performance.now() > deadline) for (const pid of processes) signal(pid, 'SIGKILL')
      await Bun.sleep(POLL_MS / 4)
    }
    await child.exited
  }
  atEnd(() => end('SIGKILL'))
  const deadline = performance.now() + READY_MS_MAX
  while (!(await isReady().catch(() => false))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      await end('SIGKILL')
      throw new Unavailable(`${command[0]} does not start: ${printed.stderr || printed.stdout}`)
    }
    await Bun.sleep(POLL_MS)
  }
  return {
    pid: child.pid,
    printed: () => printed.stdout + printed.stderr,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  if (isAlive(pid)) process.kill(pid, name)
}

/** Whether a server answers there, whatever it says. */
export async function answers(url: string): Promise<boolean> {
  await (await fetch(url, { signal: AbortSignal.timeout(1_000) })).arrayBuffer()
  return true
}

/** Whether something listens on the port. */
export async function isListening(port: number): Promise<boolean> {
  const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
  socket.end()
  return true
}

/** Outgoing connections have ports above these, so that a server finds its port free when it starts again. */
const PORTS = { first: 20_000, count: 10_000 }

/** A free port, for a server that is restarted on it. */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count)
    if (!(await isListening(port).catch(() => false))) return port
  }
}

/** The first line that a program prints about its version. */
export async function versionOf(command: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const child = Bun.spawn([...command], { env: { ...process.env, ...env }, stdout: 'pipe', stderr: 'pipe' })
  const text = (await new Response(child.stdout).text()) + (await new Response(child.stderr).text())
  return /\d+\.\d+(\.\d+)*/.exec(text)?.[0] ?? 'of unknown version'
}
