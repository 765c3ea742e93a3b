import { readFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { type Load, runLoad } from './load.ts'
import { otlpLoad } from './otlp.ts'
import type { Bench } from './parts.ts'
import { drained } from './quiet.ts'
import { median } from './report.ts'
import { type BenchService, eventsLoad, runsLoad } from './servers.ts'
import { planOf, subscribe } from './watchers.ts'

const RECORD = join(import.meta.dir, 'recorded.json')
const ROUNDS = 7
/** No load begins later than this, so that this part ends within a minute on a busy machine, too. */
const BEGIN_MS_MAX = 40_000
/** A load ends after its calls, or after this time. */
const SECONDS_MAX = 5
const BACKLOG_WAIT_MS = 2_000
const SUBSCRIBERS = 100
/** Linux counts processor times in `/proc` in this unit, on every kind of processor. */
const TICK_US = 10_000

/** Figures of an earlier commit, to compare with. */
interface Recorded {
  readonly machine: string
  readonly commit: string
  readonly date: string
  /** Microseconds of the main thread for each call, by the title of the row. */
  readonly microseconds: Readonly<Record<string, number>>
}

interface Row {
  readonly title: string
  /** How many answers of the load are one call. */
  readonly answers?: number
  readonly load: (service: BenchService) => Load
  readonly subscribers?: number
}

const QUERY = { query: "select type, count() as n from events where level = 'error' group by type order by n desc" }

/** Enough calls for some 200 ms: the system counts in steps of 10 ms. */
const ROWS: readonly Row[] = [
  { title: 'one event a call', load: events(1, 16, 6_000) },
  { title: '100 events a call', load: events(100, 16, 1_000) },
  {
    title: 'OTLP export of 512 spans',
    load: (service) => ({ ...otlpLoad(service, 'traces', service.port, SECONDS_MAX), calls: 50 }),
  },
  {
    title: 'run start and complete',
    answers: 2,
    load: (service) => ({
      ...runsLoad(service, service.port, { connections: 16, seconds: SECONDS_MAX }),
      calls: 3_000,
    }),
  },
  { title: `one event for ${SUBSCRIBERS} WebSockets`, load: events(1, 1, 1_500), subscribers: SUBSCRIBERS },
  {
    title: 'guarded query',
    load: ({ port, workspaceKey: key }) => {
      const requests = [{ path: '/api/v1/query', key, body: JSON.stringify(QUERY) }]
      return { port, requests, connections: 2, seconds: SECONDS_MAX, calls: 200 }
    },
  },
]

function events(eventsPerCall: number, connections: number, calls: number) {
  return (service: BenchService): Load => ({
    ...eventsLoad(service, service.port, eventsPerCall, { connections, seconds: SECONDS_MAX }),
    calls,
  })
}

/**
 * The processor time of the service's main thread for each call, beside the recorded one. Other work on the machine
 * changes it little, so it is a first sign that a change has made a path slower. Linux only.
 */
export async function measureCpu({ service, report, record }: Bench): Promise<void> {
  report.heading('cpu: time of the main thread for each call')
  if (process.platform !== 'linux') return report.line('skipped: only Linux counts it for each thread')
  const file = Bun.file(RECORD)
  const recorded = (await file.exists()) ? ((await file.json()) as Recorded) : undefined
  const figures = ROWS.map((): number[] => [])
  const deadline = performance.now() + BEGIN_MS_MAX
  for (let round = 0; round <= ROUNDS; round++)
    for (const [index, row] of ROWS.entries()) {
      if (performance.now() > deadline) break
      const microseconds = await measureRow(service, row)
      // The first round only warms up the compilers.
      if (round > 0) figures[index]!.push(microseconds)
    }
  const measured = ROWS.flatMap(({ title }, index) =>
    figures[index]!.length === 0 ? [] : [[title, Number(median(figures[index]!).toPrecision(3))] as const],
  )
  for (const line of linesOf(
    ROWS.map(({ title }) => title),
    new Map(measured),
    recorded,
  ))
    report.line(line)
  if (record) await write(measured)
}

/** What is said of the figures, one line for each title. */
export function linesOf(
  titles: readonly string[],
  measured: ReadonlyMap<string, number>,
  recorded: Recorded | undefined,
): string[] {
  const lines: string[] = []
  if (recorded === undefined) lines.push('nothing is recorded yet: --record does it')
  else {
    const { machine, commit, date } = recorded
    lines.push(`recorded at ${commit} on ${date}${machine === machineName() ? '' : `, on another machine: ${machine}`}`)
  }
  for (const title of titles) {
    const microseconds = measured.get(title)
    if (microseconds === undefined) {
      lines.push(`${title.padEnd(26)} not measured: the machine is too busy`)
      continue
    }
    const before = recorded?.microseconds[title]
    const beside =
      before === undefined ? 'not recorded' : `recorded ${before}, ${(microseconds / before).toFixed(2)} of it`
    lines.push(`${title.padEnd(26)} ${String(microseconds).padStart(7)} µs   ${beside}`)
  }
  return lines
}

async function measureRow(service: BenchService, { load, answers = 1, subscribers = 0 }: Row): Promise<number> {
  const watchers = subscribers === 0 ? undefined : await subscribe(await planOf(service, 'ws', subscribers))
  await drained(service, BACKLOG_WAIT_MS)
  const before = await mainThreadMicroseconds(service.pid)
  const { calls, failures, firstFailure } = await runLoad(load(service))
  const after = await mainThreadMicroseconds(service.pid)
  await watchers?.stop()
  if (failures > 0) throw new Error(`${failures} calls failed, the first with ${firstFailure}`)
  return ((after - before) / calls) * answers
}

async function mainThreadMicroseconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/task/${pid}/stat`, 'utf8')
  // The name of the program, in parentheses, may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_US
}

async function write(measured: readonly (readonly [title: string, microseconds: number])[]): Promise<void> {
  const commit = (await Bun.$`git rev-parse --short HEAD`.cwd(import.meta.dir).text()).trim()
  const date = new Date().toISOString().slice(0, 10)
  const recorded: Recorded = { machine: machineName(), commit, date, microseconds: Object.fromEntries(measured) }
  await Bun.write(RECORD, `${JSON.stringify(recorded, null, 2)}\n`)
}

function machineName(): string {
  const processors = cpus()
  return `${processors.length} × ${processors[0]?.model.trim() || process.arch}, Bun ${Bun.version}`
}
