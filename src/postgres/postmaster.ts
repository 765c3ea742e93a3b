import { readFile, readlink, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log.ts'

/** A running server process of Postgres. */
export interface Postmaster {
  readonly pid: number
  /** Resolves with the exit code when the process has ended. */
  readonly ended: Promise<number>
}

/** Stop signals, gentlest first, and how long each may take. SIGINT flushes the buffers; SIGQUIT leaves that to recovery. */
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
 * A killed service leaves its server running for a moment. This waits for it to end, then removes a stale pid file:
 * after a reboot the pid may belong to any process, and Postgres would refuse to start. The caller holds the lock on
 * the data directory, so no other service can own the server.
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

/** Stops the server when this process ends in any way, including SIGKILL. */
export function endWithService(pid: number): () => void {
  return signalAfterService('INT', String(pid))
}

/**
 * Kills initdb when this process ends. It handles signals only between its steps and starts servers itself, so its whole
 * process group is killed. The next start creates the cluster from scratch.
 */
export function killGroupWithService(pid: number): () => void {
  return signalAfterService('KILL', `-${pid}`)
}

/** A watcher process sends the signal when its pipe from this process closes. */
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
  // The pid may soon be reused, so the watcher must end as soon as the server has ended.
  return () => watcher.kill('SIGKILL')
}

/** Writes the server's output to the service's log, line by line, with the matching level. */
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
      // Ended between the check and the signal.
    }
    const deadline = performance.now() + waitMs
    while (performance.now() < deadline) {
      if (await isGone()) return
      await Bun.sleep(POLL_MS)
    }
  }
}

/** Whether process `pid` is the Postgres of `cluster`, by its working directory, or elsewhere than Linux by its command line. */
async function isServerOf(pid: number, cluster: string): Promise<boolean> {
  if (!Number.isSafeInteger(pid) || pid <= 1) return false
  if (process.platform === 'linux') {
    const [cwd, home] = await Promise.all([readlink(`/proc/${pid}/cwd`).catch(() => ''), realpath(cluster)])
    return cwd === home
  }
  const ps = Bun.spawn(['ps', '-o', 'command=', '-p', String(pid)], { stdout: 'pipe', stderr: 'ignore' })
  return (await new Response(ps.stdout).text()).includes(cluster)
}
