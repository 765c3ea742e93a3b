import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { freePorts } from '../support/processes.ts'
import { type Place, run, start } from './run.ts'

/** The machine of somebody who has just cloned the project: Debian, git and Node, and an empty home. */

/** What is on its PATH besides the programs of Debian's required packages. `awk` and `which` are alternatives there, so no package lists them. */
const PROGRAMS = ['git', 'node', 'npm', 'npx', 'awk', 'which']
/** The first start downloads packages. */
const START_MS_MAX = 300_000
const STOP_MS_MAX = 30_000

/** Copies what a clone of the project would have, with the uncommitted changes, into a new folder. */
export async function newcomersMachine(own: Place, directory: string): Promise<Place> {
  const [cwd, home, bin] = ['clone', 'home', 'bin'].map((name) => join(directory, name)) as [string, string, string]
  for (const path of [cwd, home, bin]) mkdirSync(path)
  for (const path of [...(await requiredPrograms(own)), ...PROGRAMS.map((name) => Bun.which(name, own.env) ?? '')]) {
    const link = join(bin, basename(path))
    if (existsSync(path) && !existsSync(link)) symlinkSync(path, link)
  }
  const files = await linesOf(['git', 'ls-files', '--cached', '--others', '--exclude-standard'], own)
  for (const file of files.filter((each) => existsSync(join(own.cwd, each))))
    cpSync(join(own.cwd, file), join(cwd, file))
  return { name: 'on a bare machine', cwd, env: { ...own.env, HOME: home, PATH: bin } }
}

/** The programs of the packages that every Debian has. */
async function requiredPrograms(own: Place): Promise<string[]> {
  const packages = readFileSync('/var/lib/dpkg/status', 'utf8').split('\n\n')
  const required = packages
    .filter((each) => /^Priority: required$/m.test(each))
    .map((each) => /^Package: (.+)$/m.exec(each)![1]!)
  const paths = await linesOf(['dpkg', '--listfiles', ...required], own)
  return paths.filter((path) => /^(\/usr)?\/s?bin\/[^/]+$/.test(path))
}

async function linesOf(command: readonly string[], own: Place): Promise<string[]> {
  const { exitCode, output } = await run(command, own, { isQuiet: true })
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}: ${output}`)
  return output.split('\n').filter((line) => line !== '')
}

/** Runs the README's `start`, waits until it answers and has printed a key, calls `use`, and stops it with SIGTERM. */
export async function whileStarted(place: Place, use: (env: Place['env']) => Promise<void>): Promise<void> {
  const [port] = freePorts(1)
  const url = `http://127.0.0.1:${port}`
  const service = start(['npx', '--yes', 'bun', 'run', 'start'], { ...place, env: { ...place.env, PORT: `${port}` } })
  const answers = (path: string) =>
    fetch(url + path).then(
      ({ ok }) => ok,
      () => false,
    )
  const isStarted = async () => service.child.exitCode !== null || (await answers('/readyz'))
  try {
    await eventually(isStarted, { timeoutMs: START_MS_MAX })
    const key = await eventually(() => /keep it\): (svc_ws_\w+)/.exec(service.output())?.[1] ?? false, {
      timeoutMs: 5_000,
    })
    await use({ ...place.env, AGENT_RUN_URL: url, AGENT_RUN_KEY: key })
  } finally {
    service.child.kill('SIGTERM')
    await service.ended
  }
  await eventually(async () => !(await answers('/healthz')), { timeoutMs: STOP_MS_MAX })
}
