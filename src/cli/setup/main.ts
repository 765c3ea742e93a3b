import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createProgressLine, type Progress } from '../../base/progress.ts'
import { onLauncherGone } from '../../service/ops/launcher.ts'
import { ensureStores } from './stores.ts'

/**
 * `bun run setup`, and the first step of most other scripts: installs packages. Nothing outside of Bun may be imported
 * here. `--production` leaves out the packages that only tests and checks need; those that are there already stay.
 * `--service` also checks that the embedded stores can run, unless external servers are configured. `--os` and `--cpu`
 * install for another platform, to check what is available for it.
 */
const OPTIONS = {
  production: { type: 'boolean' },
  service: { type: 'boolean' },
  os: { type: 'string' },
  cpu: { type: 'string' },
} as const

/** The platform whose packages are all in `bun.lock`. */
const LOCKED_PLATFORM = 'linux-x64'
/** The width of a terminal that does not report it. */
const COLUMNS = 80

const { stderr } = process
const root = process.cwd()
const modules = join(root, 'node_modules')
const values = readArgs()
const { os = process.platform, cpu = process.arch } = values
const children = new Set<Bun.Subprocess>()

function readArgs() {
  try {
    return parseArgs({ args: Bun.argv.slice(2), options: OPTIONS }).values
  } catch (error) {
    stderr.write(`setup: ${(error as Error).message}; options: --production, --service, --os <name>, --cpu <name>\n`)
    return process.exit(2)
  }
}

async function main(): Promise<number> {
  exitOnSignals()
  const progress = createDisplay()
  const isFrozen = `${os}-${cpu}` === LOCKED_PLATFORM
  const installed = await progress.during('Installing packages', () =>
    run([process.execPath, 'install', isFrozen ? '--frozen-lockfile' : '--no-save', '--no-progress', ...selection()]),
  )
  if (!installed.isDone) {
    stderr.write(`${installed.output}setup: the packages could not be installed\n`)
    return 1
  }
  if (values.service !== true) return 0
  const problems = await progress.during('Checking the embedded stores', checkStores)
  for (const problem of problems) stderr.write(`setup: ${problem}\n`)
  return problems.length === 0 ? 0 : 1
}

/** Runs once for each version of the lockfile, because loading the engine takes a second. */
async function checkStores(): Promise<string[]> {
  const { CLICKHOUSE_URL, DATABASE_URL } = process.env
  const wanted = [os, cpu, !CLICKHOUSE_URL, !DATABASE_URL, Bun.hash(readFileSync(join(root, 'bun.lock')))].join(' ')
  const stamp = join(modules, '.stores-checked')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return []
  const problems = await ensureStores({
    root,
    os,
    cpu,
    env: process.env,
    run: async (command) => existsSync(command[0] ?? '') && (await run(command)).isDone,
    add: async (each) =>
      (await run([process.execPath, 'add', '--no-save', '--no-progress', ...selection(), each])).isDone,
  })
  if (problems.length === 0) writeFileSync(stamp, wanted)
  return problems
}

/** Which packages to install. `--production` would refuse to add one that the lockfile does not list. */
function selection(): string[] {
  return [
    ...(values.production ? ['--omit', 'dev'] : []),
    ...(values.os ? ['--os', values.os] : []),
    ...(values.cpu ? ['--cpu', values.cpu] : []),
  ]
}

/** On a terminal, a line that disappears when the work is done. Elsewhere, one line if there is much to install. */
function createDisplay(): Progress {
  if (stderr.isTTY === true)
    return createProgressLine({ write: (text) => stderr.write(text), columns: () => stderr.columns || COLUMNS })
  if (!existsSync(modules)) stderr.write('Installing packages …\n')
  return { during: (_, work) => work(() => {}) }
}

async function run(command: readonly string[]): Promise<{ isDone: boolean; output: string }> {
  const child = spawn(command)
  // A program for another processor cannot be started.
  if (child === undefined) return { isDone: false, output: '' }
  children.add(child)
  const [code, ...texts] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  children.delete(child)
  return { isDone: code === 0, output: texts.join('') }
}

function spawn(command: readonly string[]) {
  try {
    return Bun.spawn([...command], { cwd: root, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  } catch {
    return undefined
  }
}

/** On a signal, or when the npx that started this process ends, stops the installer first and then exits. */
function exitOnSignals(): void {
  stderr.on('error', () => {})
  const end = async (exitCode: number) => {
    for (const child of children) child.kill('SIGTERM')
    await Promise.all([...children].map((child) => child.exited))
    if (stderr.isTTY === true) stderr.write('\r\x1b[K')
    process.exit(exitCode)
  }
  process.on('SIGINT', () => void end(130))
  process.on('SIGTERM', () => void end(143))
  onLauncherGone(() => void end(143))
}

process.exit(await main())
