import { readFileSync } from 'node:fs'
import { StartError } from '../base/start-error.ts'

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
