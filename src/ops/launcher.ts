import { readFileSync } from 'node:fs'

const POLL_MS = 100
/** npx, a shell, `bun run`, a shell, and us. */
const LEVELS_MAX = 5

/**
 * Calls `onGone` once the npm (or npx) that this process was started by has ended. npm takes a SIGTERM without passing it
 * on to what it runs, so that `npx bun run start` would end and leave the service behind. Does nothing when npm has no
 * part in it: a service may well outlive the shell it was started from. Linux only, where npm's shell does this.
 *
 * @returns a function that ends the watch
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

/** From us up to npm; empty when npm is not among our ancestors. */
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
 * npm calls itself "npm exec …" or "npm run …" where it can; where it cannot, it is the script that an interpreter
 * runs.
 */
function isNpm(pid: number): boolean {
  try {
    const [command = '', script = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return /^np[mx]\b/.test(command) || /\/np[mx](-cli\.js)?$/.test(script)
  } catch {
    return false
  }
}
