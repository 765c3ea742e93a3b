import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Unavailable } from './peer.ts'

/*
 * Peers are no dependencies of the project: npm and apt-get install them into a cache directory when they are measured.
 */

/** Peers get a Node of their own, because the machine's may be too old for some of them. */
const NODE_VERSION = '24.21.0'
const INSTALL_MS_MAX = 280_000

/** A program of a Debian package, with the environment that it needs. */
export interface Program {
  readonly path: string
  readonly env: Record<string, string>
}

/** @returns a directory with these packages and Node. @throws Unavailable */
export async function npmPackages(
  cache: string,
  packages: Readonly<Record<string, string>>,
  { ignorePeers = false } = {},
): Promise<string> {
  const dependencies = { ...packages, node: NODE_VERSION }
  const text = JSON.stringify({ private: true, type: 'module', dependencies })
  const flags = ['--no-audit', '--no-fund', '--loglevel=error', ...(ignorePeers ? ['--legacy-peer-deps'] : [])]
  return once(join(cache, `npm-${Bun.hash(text).toString(36)}`), async (directory) => {
    await Bun.write(join(directory, 'package.json'), text)
    await run(['npm', 'install', ...flags], directory)
  })
}

/** The Node of {@link npmPackages}. */
export function nodeOf(directory: string): string {
  return join(directory, 'node_modules', 'node', 'bin', 'node')
}

/**
 * A program of a Debian package: the installed one, or else unpacked into the cache with the packages that it needs and
 * the machine lacks, which takes no root. @throws Unavailable
 */
export async function debianProgram(cache: string, name: string): Promise<Program> {
  const installed = Bun.which(name) ?? Bun.which(name, { PATH: '/usr/sbin:/usr/bin' })
  if (installed !== null) return { path: installed, env: {} }
  const root = await once(join(cache, `debian-${name}`), async (directory) => {
    const plan = await run(['apt-get', 'install', '--simulate', '--no-install-recommends', name], directory)
    const missing = [...plan.matchAll(/^Inst (\S+)/gm)].map(([, each]) => each!)
    await run(['apt-get', 'download', ...missing], directory)
    for (const file of new Bun.Glob('*.deb').scanSync(directory)) await run(['dpkg', '-x', file, '.'], directory)
  })
  const path = ['usr/bin', 'usr/sbin'].map((folder) => join(root, folder, name)).find((each) => existsSync(each))
  if (path === undefined) throw new Unavailable(`Debian's package ${name} has no program ${name}`)
  const folders = ['usr/lib', 'lib'].flatMap((lib) => [lib, `${lib}/x86_64-linux-gnu`, `${lib}/aarch64-linux-gnu`])
  const libraries = folders.map((each) => join(root, each))
  return { path, env: { LD_LIBRARY_PATH: libraries.join(':') } }
}

/** Fills the directory unless it has been filled before; an interrupted attempt leaves nothing there. */
async function once(directory: string, fill: (unfinished: string) => Promise<void>): Promise<string> {
  if (existsSync(directory)) return directory
  const unfinished = `${directory}.unfinished`
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { recursive: true })
  await fill(unfinished)
  await rename(unfinished, directory)
  return directory
}

/** @returns what it printed. @throws Unavailable with the end of its errors */
async function run(command: readonly string[], cwd: string): Promise<string> {
  if (Bun.which(command[0]!) === null) throw new Unavailable(`${command[0]} is not installed`)
  const child = Bun.spawn([...command], {
    cwd,
    // Bun passes on the PATH that it was started with, not the one that `useRealNode` has set: scripts of packages need Node.
    env: process.env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: INSTALL_MS_MAX,
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Unavailable(`${command.slice(0, 2).join(' ')} ended with ${code}: ${stderr}`)
  return stdout
}
