import { join } from 'node:path'
import { CliError } from '../../src/cli/shared/error.ts'
import type { SpawnedService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'
import type { EventContent } from './bodies.ts'
import { delivered } from './feeds.ts'
import { type Load, runLoad } from './load.ts'
import { memoryOf } from './memory.ts'
import { otlpLoad } from './otlp.ts'
import { quiet } from './quiet.ts'
import { median, type Report, spread } from './report.ts'
import { type BenchService, benchServiceOf, eventsLoad, runsLoad, spawnForBench, startBenchService } from './servers.ts'

const ROOT = join(import.meta.dir, '..', '..')
/** How much slower or larger a change may make a figure, as a fraction. */
const LOSS_MAX = 0.03

/** One of the two versions that are compared. */
interface Side {
  readonly service: BenchService
  /** The path of its entry point. */
  readonly main: string
}

interface Row {
  readonly title: string
  readonly unit: string
  readonly isLessBetter?: boolean
  measure(side: Side, seconds: number): Promise<number>
}

const calls = (title: string, loadOf: (service: BenchService, seconds: number) => Load): Row => ({
  title,
  unit: 'calls/s',
  measure: async ({ service }, seconds) => (await runLoad(loadOf(service, seconds))).callsPerSecond,
})
const events = (title: string, eventsPerCall: number, connections: number, content?: EventContent) =>
  calls(title, (service, seconds) =>
    eventsLoad(service, service.port, eventsPerCall, { connections, seconds, content }),
  )
const otlp = (signal: 'traces' | 'logs') =>
  calls(`OTLP ${signal}`, (service, seconds) => otlpLoad(service, signal, service.port, seconds))
const deliveries = (title: string, kind: 'ws' | 'sse'): Row => ({
  title,
  unit: 'MB/s',
  measure: async ({ service }, seconds) => (await delivered(service, kind, seconds)).bytes / seconds / 1e6,
})

/** The measurements, by name. */
export const ROWS: Readonly<Record<string, readonly Row[]>> = {
  ingest: [events('100 events a call, 64 connections', 100, 64), events('100 events a call, 16 connections', 100, 16)],
  large: [events('100 model calls of 4 KB a call, 64 connections', 100, 64, 'model calls')],
  single: [events('one event a call, 64 connections', 1, 64)],
  runs: [
    calls('run start and complete, 64 connections', (service, seconds) =>
      runsLoad(service, service.port, { connections: 64, seconds }),
    ),
  ],
  otlp: [otlp('traces'), otlp('logs')],
  feeds: [deliveries('WebSocket to 1,000 subscribers', 'ws'), deliveries('SSE to 1,000 subscribers', 'sse')],
  start: [{ title: 'start with an empty folder, idle', unit: 's', isLessBetter: true, measure: startSeconds }],
  memory: [{ title: 'memory of a new service, idle', unit: 'MiB', isLessBetter: true, measure: idleMiB }],
}

export interface Against {
  readonly names: readonly string[]
  readonly rounds: number
  /** The duration of one measurement. */
  readonly seconds: number
  readonly report: Report
}

/** Compares a commit with the work tree by measuring them alternately. @throws CliError for an unknown commit */
export async function measureAgainst(commit: string, { names, rounds, seconds, report }: Against): Promise<void> {
  const mains = { before: join(await checkOut(commit), 'src', 'main.ts'), after: join(ROOT, 'src', 'main.ts') }
  const before: Side = { main: mains.before, service: await startBenchService({}, mains.before) }
  const after: Side = { main: mains.after, service: await startBenchService({}, mains.after) }
  for (const row of names.flatMap((name) => ROWS[name]!)) {
    report.heading(row.title)
    const figures: { before: number; after: number }[] = []
    const measure = async (side: Side) => {
      await quiet(before.service)
      await quiet(after.service)
      return row.measure(side, seconds)
    }
    for (let round = 0; round <= rounds; round++) {
      // The order alternates, too: the machine is often cooler for the first one.
      const sides = round % 2 === 0 ? [before, after] : [after, before]
      const [first, second] = [await measure(sides[0]!), await measure(sides[1]!)]
      // The first round only warms up the compilers.
      if (round > 0) figures.push(round % 2 === 0 ? { before: first, after: second } : { before: second, after: first })
    }
    const ratios = figures.map((figure) => figure.after / figure.before)
    const [was, is] = [median(figures.map((each) => each.before)), median(figures.map((each) => each.after))]
    report.line(`before ${shown(was)}, now ${shown(is)} ${row.unit}`)
    const ratio = median(ratios)
    const loss = row.isLessBetter === true ? ratio - 1 : 1 - ratio
    report.target(
      `${row.title}: ${ratio.toFixed(2)} of ${commit} (${spread(ratios)}), target at most 3 % worse`,
      loss <= LOSS_MAX,
    )
  }
}

/** @returns the folder of a work tree of the commit, with its packages */
async function checkOut(commit: string): Promise<string> {
  const dir = join(await temporaryDirectory(), 'commit')
  const git = (...args: string[]) => Bun.spawn(['git', ...args], { cwd: ROOT, stdout: 'ignore', stderr: 'pipe' })
  const added = git('worktree', 'add', '--detach', dir, commit)
  const problem = await new Response(added.stderr).text()
  if ((await added.exited) !== 0) throw new CliError(`cannot check out ${commit}: ${problem.trim()}`, 2)
  atEnd(async () => void (await git('worktree', 'remove', '--force', dir).exited))
  const setup = Bun.spawn([process.execPath, 'run', 'setup'], { cwd: dir, stdout: 'inherit', stderr: 'inherit' })
  if ((await setup.exited) !== 0) throw new CliError(`the packages of ${commit} cannot be installed`, 1)
  return dir
}

async function startSeconds({ main }: Side): Promise<number> {
  const began = performance.now()
  const service = await spawnForBench({}, main)
  const seconds = (performance.now() - began) / 1000
  await stop(service)
  return seconds
}

async function idleMiB({ main }: Side): Promise<number> {
  const service = await spawnForBench({}, main)
  await quiet(await benchServiceOf(service))
  const { residentMiB } = await memoryOf(service.pid)
  await stop(service)
  return residentMiB
}

async function stop(service: SpawnedService): Promise<void> {
  service.kill('SIGTERM')
  await service.exited
}

function shown(value: number): string {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 4 })
}
