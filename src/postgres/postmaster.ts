import { readFile, readlink, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log.ts'

/** A running server process of Postgres. */
export interface Postmaster {
  readonly pid: number
  /** Resolves with the exit code once it is gone. */
  readonly ended: Promise<number>
}

/** How long each way of asking gets, politest first. SIGINT writes the buffers out; SIGQUIT leaves that to recovery. */
const STOP_STEPS = [
  { signal: 'SIGINT', waitMs: 4_000 },
  { signal: 'SIGQUIT', waitMs: 1_000 },
  { signal: 'SIGKILL', waitMs: 1_000 },
] as const
const POLL_MS = 10

export async function stopPostmaster(server: Postmaster): Promise<void> {
  let ended = false
  void server.ended.then(() => {
    ended = true
  })
  await signalUntil(server.pid, async () => {
    await Promise.resolve()
    return ended
  })
}

/**
 * A service that was killed leaves a server behind for a moment. Waits for it to end, then clears its pid file away if
 * it lies: after a reboot the number in it may be any process, and Postgres would refuse to start because of it.
 * The caller holds the lock on the data directory, so nobody else may own what is found.
 */
export async function stopOrphan(cluster: string, log: Log, onProgress: (step: string) => void): Promise<void> {
  const pidFile = join(cluster, 'postmaster.pid')
  const text = await readFile(pidFile, 'utf8').catch(() => '')
  const pid = Number(text.split('\n')[0])
  if (text === '') return
  if (await isServerOf(pid, cluster)) {
    onProgress('waiting for the Postgres of a killed service to end')
    log.warn('stopping the Postgres that a killed service left behind', { pid })
    await signalUntil(pid, async () => !(await isServerOf(pid, cluster)))
  }
  await rm(pidFile, { force: true })
}

/** Ends the server when this process dies, however it dies. */
export function endWithService(pid: number): () => void {
  return signalAfterService('INT', String(pid))
}

/**
 * Ends initdb when this process dies. It looks at signals only between its steps and starts servers of its own, so its
 * group is killed: the cluster was not complete, and is begun anew by the next start.
 */
export function killGroupWithService(pid: number): () => void {
  return signalAfterService('KILL', `-${pid}`)
}

/** The watcher sees the pipe to us close. */
function signalAfterService(signal: string, target: string): () => void {
  const watcher = Bun.spawn(
    ['sh', '-c', 'read -r _; kill -s "$1" -- "$2" 2>/dev/null', 'end-with-service', signal, target],
    {
      cwd: '/',
      env: {},
      detached: true,
      stdin: 'pipe',
      stdout: 'ignore',
      stderr: 'ignore',
    },
  )
  // The number may soon belong to another process, so the watcher goes as soon as the server has gone.
  return () => watcher.kill('SIGKILL')
}

/** Passes what the server prints on to our log, line by line, as loud as it is meant. */
export async function relayLines(
  stream: ReadableStream<Uint8Array>,
  log: Log,
  onLine: (line: string) => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      onLine(line)
      if (line.startsWith('PANIC')) log.error('postgres', { line })
      else if (line.startsWith('WARNING')) log.warn('postgres', { line })
      else log.debug('postgres', { line })
    }
  }
}

async function signalUntil(pid: number, isGone: () => Promise<boolean>): Promise<void> {
  for (const { signal, waitMs } of STOP_STEPS) {
    if (await isGone()) return
    try {
      process.kill(pid, signal)
    } catch {
      // Gone between the look and the signal.
    }
    const deadline = performance.now() + waitMs
    while (performance.now() < deadline) {
      if (await isGone()) return
      await Bun.sleep(POLL_MS)
    }
  }
}

/** Whether process `pid` is a Postgres working in `cluster`. Its working directory tells; where that is hidden, its name. */
async function isServerOf(pid: number, cluster: string): Promise<boolean> {
  if (!Number.isSafeInteger(pid) || pid <= 1) return false
  if (process.platform === 'linux') {
    const [cwd, home] = await Promise.all([readlink(`/proc/${pid}/cwd`).catch(() => ''), realpath(cluster)])
    return cwd === home
  }
  const ps = Bun.spawn(['ps', '-o', 'command=', '-p', String(pid)], { stdout: 'pipe', stderr: 'ignore' })
  return (await new Response(ps.stdout).text()).includes(cluster)
}
