import { readFileSync } from 'node:fs'
import { StartError } from '../ops/start-error.ts'

/** How to run a program that refuses to run as root, and who its files must belong to. */
export interface ProcessOwner {
  /** Undefined: whoever runs the service. */
  readonly ids: { readonly uid: number; readonly gid: number } | undefined
  /** Starts `command` as that owner in its own process group, so that a Ctrl-C meant for the service does not reach it. */
  spawn(command: readonly string[], options: SpawnOptions): Bun.Subprocess<'ignore', 'pipe', 'pipe'>
}

export interface SpawnOptions {
  readonly env: Record<string, string>
}

/**
 * Postgres refuses to run as root. When the service does, Postgres runs as the user `postgres`, or `nobody` where there
 * is none. That user must be able to reach its binaries and its files; under a private home (`/root`) it cannot, so
 * there it keeps root's one capability to pass directories, and still is not root.
 *
 * @param reach programs and directories the owner must be able to get to
 * @throws StartError when no arrangement works on this machine
 */
export async function chooseOwner(reach: {
  binary: string
  directory: string
  ids: { uid: number; gid: number } | undefined
}): Promise<ProcessOwner> {
  if (process.getuid?.() !== 0) return { ids: undefined, spawn: (command, options) => spawn(command, options) }

  const ids = reach.ids ?? unprivilegedUser(readFileSync('/etc/passwd', 'utf8'))
  if (ids === undefined) {
    throw new StartError('Postgres refuses to run as root and there is no user "postgres" or "nobody" to run it as')
  }
  const direct: ProcessOwner = { ids, spawn: (command, options) => spawn(command, options, ids) }
  if (await reaches(direct, reach)) return direct

  const setpriv = Bun.which('setpriv')
  if (setpriv !== null) {
    const prefix = [setpriv, `--reuid=${ids.uid}`, `--regid=${ids.gid}`, '--clear-groups']
    prefix.push('--inh-caps=+dac_override', '--ambient-caps=+dac_override')
    const capable: ProcessOwner = { ids, spawn: (command, options) => spawn([...prefix, ...command], options) }
    if (await reaches(capable, reach)) return capable
  }
  throw new StartError(
    `Postgres refuses to run as root, and user ${ids.uid} cannot get to ${reach.directory} or ${reach.binary}: ` +
      'run the service as another user, move both out of private directories, or set DATABASE_URL',
  )
}

/** `postgres`, else `nobody`, of a passwd file. */
function unprivilegedUser(passwd: string): { uid: number; gid: number } | undefined {
  const entries = passwd.split('\n').map((line) => line.split(':'))
  const entry = entries.find(([name]) => name === 'postgres') ?? entries.find(([name]) => name === 'nobody')
  return entry && { uid: Number(entry[2]), gid: Number(entry[3]) }
}

async function reaches(owner: ProcessOwner, reach: { binary: string; directory: string }): Promise<boolean> {
  const script = '"$1" --version && cd "$2"'
  const probe = owner.spawn(['sh', '-c', script, 'sh', reach.binary, reach.directory], { env: {} })
  return (await probe.exited) === 0
}

function spawn(command: readonly string[], options: SpawnOptions, ids?: { uid: number; gid: number }) {
  // Nothing of our environment goes along: it may hold secrets that Postgres has no business with.
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC', ...options.env }
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
