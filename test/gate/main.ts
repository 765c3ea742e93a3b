import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingTools } from '../support/tools.ts'
import { withLaterNats } from './later-nats.ts'
import { newcomersMachine, whileStarted } from './newcomer.ts'
import { campaignOutcomes, conclude, type Outcome, outcomeOf, outcomesOf, toRepeat } from './outcomes.ts'
import { ownEnvironment, type Place, run, start } from './run.ts'

/**
 * What `.ci/run` runs: everything that must hold before a change lands. Nothing may be imported here but Bun and our own
 * files, because no package is installed yet.
 */

const ROOT = join(import.meta.dir, '..', '..')
const SCRIPT = ['npx', '--yes', 'bun', 'run']
const DEMO = ['demo', '--rate', '4', '--duration', '3']
const SLOW = '.slow.test.ts'
/** `npm pack`, and a start of the package in an empty folder. */
const PACKAGE = 'test/flow/package.slow.test.ts'
/** They mostly wait, so they run at the same time as the slow tests. */
const CAMPAIGNS = ['kills', 'answers', 'cluster', 'corruption', 'requests', 'soak', 'dashboard', 'loop', 'sim']

const directory = mkdtempSync(join(tmpdir(), 'agent-run-service-gate-'))
// Postgres does not run as root, and must reach what is in it.
chmodSync(directory, 0o711)
const here: Place = { name: 'here', cwd: ROOT, env: ownEnvironment() }
const outcomes: Outcome[] = []
let reports = 0

async function main(): Promise<number> {
  await step('types, lint and tidy', () => succeed([...SCRIPT, 'check'], here))

  // Before anything is installed: what a newcomer runs, on what a newcomer has.
  const bare = await newcomersMachine(here, directory)
  await step('the README: start, and a stop', () =>
    whileStarted(bare, (env) => step('the README: demo', () => succeed([...SCRIPT, ...DEMO], { ...bare, env }))),
  )
  const files = [...new Bun.Glob('test/**/*.test.ts').scanSync(ROOT)].sort()
  const isSlow = (file: string) => file.endsWith(SLOW)
  outcomes.push(
    ...(await tests(
      bare,
      [],
      files.filter((file) => !isSlow(file)),
    )),
    ...(await tests(bare, [PACKAGE])),
  )

  // The rest, with everything that tests need: what is slow, and what lacked a tool.
  await step('installing what tests need', installTools)
  const whole = await withLaterNats(here, directory)
  const lacking = outcomes.filter(({ isFile, skipped }) => isFile && skipped > 0).map(({ name }) => name)
  const campaigns = start([...SCRIPT, 'test:long', '--short', ...CAMPAIGNS], whole, { isQuiet: true })
  outcomes.push(...(await tests(whole, [...files.filter((file) => isSlow(file) && file !== PACKAGE), ...lacking])))
  const { output } = await campaigns.ended
  say(output)
  outcomes.push(...campaignOutcomes(CAMPAIGNS, output))

  const second = new Map<Outcome, Outcome>()
  for (const first of toRepeat(outcomes)) {
    const [outcome] = await tests(first.place === bare.name ? bare : whole, [first.name])
    second.set(first, outcome!)
  }
  const { text, isGreen } = conclude(outcomes, second)
  say(text)
  return isGreen ? 0 : 1
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Says what comes next, and when. */
function announce(what: string): void {
  say(`\n${Math.round(performance.now() / 1000)} s: ${what}`)
}

/** Does something that passes unless it throws; the others go on. */
async function step(name: string, act: () => Promise<void>): Promise<void> {
  announce(name)
  const error = await act().then(
    () => undefined,
    (error: Error) => error,
  )
  outcomes.push(outcomeOf(name, error === undefined, error?.message ?? ''))
}

/** @throws Error with what a command printed, unless it succeeds */
async function succeed(command: readonly string[], place: Place): Promise<void> {
  const { exitCode, output } = await run(command, place)
  if (exitCode !== 0) throw new Error(`${output}\n${command.join(' ')} ended with ${exitCode}`)
}

/** Runs the test files of these names, and reads what became of each of `files`. */
async function tests(place: Place, names: readonly string[], files = names): Promise<Outcome[]> {
  announce(`tests ${place.name}`)
  const path = join(directory, `${++reports}.xml`)
  const ran = await run([...SCRIPT, 'test', ...names, '--reporter=junit', `--reporter-outfile=${path}`], place)
  const report = await Bun.file(path)
    .text()
    .catch(() => '')
  return outcomesOf({ report, files, ...ran }, place.name)
}

/** Installs what tests need beside Node, where apt-get can. @throws Error if something is still missing */
async function installTools(): Promise<void> {
  const packages = missingTools().flatMap((tool) => tool.packages.split(' '))
  const install = () => run(['apt-get', 'install', '-y', '-qq', ...packages], here)
  if (packages.length > 0 && process.getuid?.() === 0 && (await install()).exitCode !== 0) {
    await run(['apt-get', 'update', '-qq'], here)
    await install()
  }
  const missing = missingTools().map((tool) => `${tool.packages} (tests of ${tool.tests})`)
  if (missing.length > 0) throw new Error(`install by hand: ${missing.join('; ')}`)
}

process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
process.exit(await main())
