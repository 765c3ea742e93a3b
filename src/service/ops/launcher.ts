import { readFileSync } from 'node:fs'

/** Each poll reads a file of /proc for every level, some 60 µs each. */
const POLL_MS = 250
/** npx, a shell, `bun run`, a shell, and this process. */
const LEVELS_MAX = 5

/**
 * Calls `onGone` once the npm (or npx) that started this process has ended. npm forwards SIGTERM only to the shell that it
 * starts, and that shell (dash) ends without telling `bun run`, whose child this process is: `npx bun run start` would end and
 * leave the service running, whatever its script execs. Does nothing when npm did not start this process: a service may
 * outlive the shell that started it. Linux only, where npm's shell does this.
 *
 * @returns a function that stops watching
 */
export function onLauncherGone(onGone: () => void): () => void {
  const links = process.platform === 'linux' ? linksToNpm() : []
  if (links.length === 0) return () => {}
  const timer = setInterval(() => {
    if (links.every(({ pid, parent }) => parentOf(pid) === parent)) return
    clearInterval(timer)
    onGone()
  }, POLL_MS)
  timer.unref()
  return () => clearInterval(timer)
}

interface Link {
  readonly pid: number
  readonly parent: number
}

/** The processes from this one up to npm; empty when npm is not an ancestor. */
function linksToNpm(): Link[] {
  const links: Link[] = []
  let pid = process.pid
  while (links.length < LEVELS_MAX) {
    const parent = parentOf(pid)
    if (parent === undefined || parent <= 1) return []
    links.push({ pid, parent })
    if (isNpm(parent)) return links
    pid = parent
  }
  return []
}

function parentOf(pid: number): number | undefined {
  try {
    // "pid (name) state parent …"; the name may hold spaces and parentheses.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')
    return Number(fields?.[1])
  } catch {
    return undefined
  }
}

/**
 * npm sets its process title to "npm exec …" or "npm run …" where it can. Elsewhere it is the script of an interpreter.
 */
function isNpm(pid: number): boolean {
  try {
    const [command = '', script = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return /^np[mx]\b/.test(command) || /\/np[mx](-cli\.js)?$/.test(script)
  } catch {
    return false
  }
}
