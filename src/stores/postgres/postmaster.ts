import { readFileSync } from 'node:fs'
import { readdir, readFile, readlink, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../base/log.ts'
import { StartError } from '../../base/start-error.ts'

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
  await signalUntil([server.pid], async () => {
    await Promise.resolve()
    return ended
  })
}

/**
 * A killed service leaves its server running for a moment, and a killed server its backends. This waits for all of them
 * to end, then removes stale lock files: the pid in one may belong to any process after a reboot, or to a zombie that
 * no parent has reaped, and Postgres would refuse to start. The caller holds the lock on the data directory, so no other
 * service can own the server.
 */
export async function stopOrphans(home: string, cluster: string, log: Log, onProgress: (step: string) => void) {
  const pidFile = join(cluster, 'postmaster.pid')
  const postmaster = Number((await readFile(pidFile, 'utf8').catch(() => '')).split('\n')[0])
  const orphans = () => processesOf(cluster, postmaster)
  let running = await orphans()
  if (running.length > 0) {
    onProgress('waiting for the Postgres of a killed service to end')
    log.warn('stopping the Postgres that a killed service left behind', { pids: running })
  }
  if (running.includes(postmaster)) await signalUntil([postmaster], async () => (await orphans()).length === 0)
  running = await orphans()
  // To a backend SIGINT only means to cancel its statement.
  const steps = STOP_STEPS.filter(({ signal }) => signal !== 'SIGINT')
  if (running.length > 0) await signalUntil(running, async () => (await orphans()).length === 0, steps)
  for (const path of [pidFile, join(home, '.s.PGSQL.5432.lock')]) await rm(path, { force: true })
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

async function signalUntil(
  pids: readonly number[],
  haveEnded: () => Promise<boolean>,
  steps: readonly (typeof STOP_STEPS)[number][] = STOP_STEPS,
): Promise<void> {
  for (const { signal, waitMs } of steps) {
    if (await haveEnded()) return
    for (const pid of pids) {
      try {
        process.kill(pid, signal)
      } catch {
        // Ended between the check and the signal.
      }
    }
    const deadline = performance.now() + waitMs
    while (performance.now() < deadline) {
      if (await haveEnded()) return
      await Bun.sleep(POLL_MS)
    }
  }
}

/**
 * The running Postgres processes of `cluster`: on Linux the server and its backends, found by their working directory;
 * elsewhere only `postmaster`, if its command line names the cluster.
 */
async function processesOf(cluster: string, postmaster: number): Promise<number[]> {
  if (process.platform === 'linux') {
    const home = await realpath(cluster)
    const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 1)
    const isOurs = await Promise.all(
      pids.map(async (pid) => {
        // A zombie has no working directory. A shell in the cluster's directory is not Postgres.
        if ((await readlink(`/proc/${pid}/cwd`).catch(() => '')) !== home) return false
        return (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).startsWith('postgres')
      }),
    )
    return pids.filter((_, index) => isOurs[index])
  }
  if (!Number.isSafeInteger(postmaster) || postmaster <= 1) return []
  const ps = Bun.spawn(['ps', '-o', 'command=', '-p', String(postmaster)], { stdout: 'pipe', stderr: 'ignore' })
  return (await new Response(ps.stdout).text()).includes(cluster) ? [postmaster] : []
}

/** How to run a program that refuses to run as root, and which user must own its files. */
export interface ProcessOwner {
  /** Undefined: the user that runs the service. */
  readonly ids: { readonly uid: number; readonly gid: number } | undefined
  /** Starts `command` as that user in its own process group, so that Ctrl-C on the service does not reach it. */
  spawn(command: readonly string[]): Bun.Subprocess<'ignore', 'pipe', 'pipe'>
}

/**
 * Postgres refuses to run as root. If the service runs as root, Postgres runs as the user `postgres`, or as `nobody` if
 * there is no such user. That user must be able to access its binaries and files. Below a private directory (`/root`)
 * it cannot, so there it keeps a single capability of root, to bypass directory permissions.
 *
 * @param reach what the user must be able to access: `initdb` and the programs beside it, and a directory
 * @throws StartError when no option works on this machine
 */
export async function chooseOwner(reach: {
  initdb: string
  directory: string
  ids: { uid: number; gid: number } | undefined
}): Promise<ProcessOwner> {
  if (process.getuid?.() !== 0) return { ids: undefined, spawn: (command) => spawn(command) }

  const ids = reach.ids ?? unprivilegedUser(readFileSync('/etc/passwd', 'utf8'))
  if (ids === undefined) {
    throw new StartError('Postgres refuses to run as root and there is no user "postgres" or "nobody" to run it as')
  }
  const direct: ProcessOwner = { ids, spawn: (command) => spawn(command, ids) }
  if (await reaches(direct, reach)) return direct

  const setpriv = Bun.which('setpriv')
  if (setpriv !== null) {
    const prefix = [setpriv, `--reuid=${ids.uid}`, `--regid=${ids.gid}`, '--clear-groups']
    prefix.push('--inh-caps=+dac_override', '--ambient-caps=+dac_override')
    // Without this, access(2), which Postgres uses to find its programs, ignores the capability.
    prefix.push('--securebits=+no_setuid_fixup')
    const capable: ProcessOwner = { ids, spawn: (command) => spawn([...prefix, ...command]) }
    if (await reaches(capable, reach)) return capable
  }
  throw new StartError(
    `Postgres refuses to run as root, and user ${ids.uid} cannot access ${reach.directory} or ${reach.initdb}: ` +
      'run the service as another user, move both out of private directories, or set DATABASE_URL',
  )
}

/** The user `postgres`, or else `nobody`, from a passwd file. */
function unprivilegedUser(passwd: string): { uid: number; gid: number } | undefined {
  const entries = passwd.split('\n').map((line) => line.split(':'))
  const entry = entries.find(([name]) => name === 'postgres') ?? entries.find(([name]) => name === 'nobody')
  return entry && { uid: Number(entry[2]), gid: Number(entry[3]) }
}

/** Tries it: initdb looks for its companion programs at start; `--show` then exits. */
async function reaches(owner: ProcessOwner, reach: { initdb: string; directory: string }): Promise<boolean> {
  const script = '"$1" --show --pgdata="$2" --username=service >/dev/null && cd "$2"'
  const probe = owner.spawn(['sh', '-c', script, 'sh', reach.initdb, reach.directory])
  return (await probe.exited) === 0
}

function spawn(command: readonly string[], ids?: { uid: number; gid: number }) {
  // The service's environment is not inherited: it may contain secrets.
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' }
  return Bun.spawn([...command], {
    ...ids,
    cwd: '/',
    env,
    detached: true,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
}
