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
 * @param reach what the owner must be able to get to: the program `initdb` and those beside it, and a directory
 * @throws StartError when no arrangement works on this machine
 */
export async function chooseOwner(reach: {
  initdb: string
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
    // Otherwise access(2), with which Postgres looks for its own programs, would not count the capability.
    prefix.push('--securebits=+no_setuid_fixup')
    const capable: ProcessOwner = { ids, spawn: (command, options) => spawn([...prefix, ...command], options) }
    if (await reaches(capable, reach)) return capable
  }
  throw new StartError(
    `Postgres refuses to run as root, and user ${ids.uid} cannot get to ${reach.directory} or ${reach.initdb}: ` +
      'run the service as another user, move both out of private directories, or set DATABASE_URL',
  )
}

/** `postgres`, else `nobody`, of a passwd file. */
function unprivilegedUser(passwd: string): { uid: number; gid: number } | undefined {
  const entries = passwd.split('\n').map((line) => line.split(':'))
  const entry = entries.find(([name]) => name === 'postgres') ?? entries.find(([name]) => name === 'nobody')
  return entry && { uid: Number(entry[2]), gid: Number(entry[3]) }
}

/** Tries it: initdb looks for its companions as it starts, and `--show` ends there. */
async function reaches(owner: ProcessOwner, reach: { initdb: string; directory: string }): Promise<boolean> {
  const script = '"$1" --show --pgdata="$2" --username=service >/dev/null && cd "$2"'
  const probe = owner.spawn(['sh', '-c', script, 'sh', reach.initdb, reach.directory], { env: {} })
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
