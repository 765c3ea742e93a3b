import type { EventContent } from './bodies.ts'
import { measureClient } from './client.ts'
import { measureCluster } from './cluster.ts'
import { compare } from './compare.ts'
import { measureCpu } from './cpu.ts'
import { measureFeeds } from './feeds.ts'
import { measureDelay, measureFreshness } from './fresh.ts'
import { measureInvokes } from './invokes.ts'
import { measureJournals } from './journals.ts'
import { measureLangfuse } from './langfuse.ts'
import { measureLiveRuns } from './live-runs.ts'
import { measureMcp } from './mcp.ts'
import { memoryOf, SETTLE_MS, shownMemory } from './memory.ts'
import { measureOtlp } from './otlp.ts'
import { measureQueries } from './queries.ts'
import type { Report } from './report.ts'
import { measureScores } from './scores.ts'
import { measureSearch } from './search.ts'
import { type BenchService, eventsLoad, runsLoad, startNaiveServer } from './servers.ts'
import { measureSustained } from './sustained.ts'
import { measureTexts } from './texts.ts'
import { measureVolume } from './volume.ts'
import { measureWebhooks } from './webhooks.ts'
import { measureWorkers } from './workers.ts'

/** The input of every part of the benchmark. */
export interface Bench {
  readonly service: BenchService
  readonly report: Report
  /** Pairs of measurements for a ratio. */
  readonly rounds: number
  /** The duration of one measurement. */
  readonly seconds: number
  /** The number of events in the part `volume`; `search` has a fiftieth. */
  readonly rows: number
  /** Started on first use. */
  readonly barePort: () => Promise<number>
  /** Whether the figures of the part `cpu` replace the recorded ones. */
  readonly record: boolean
}

export type Part = (bench: Bench) => Promise<void>

const EVENTS_PER_CALL = 100
const IDLE_TARGET_MIB = 300
const CONNECTIONS = 64
const INGEST_TARGET = 0.65
const FEW_CONNECTIONS = 16
const FEW_CONNECTIONS_TARGET = 0.55
const MODEL_CALLS_TARGET = 1.5
const SINGLE_TARGET = 0.45
const RUNS_TARGET = 2

/** The parts by name, in the order in which they run. */
export const PARTS: Readonly<Record<string, Part>> = {
  idle,
  cpu: measureCpu,
  texts: measureTexts,
  ingest: async (bench) => {
    await events(bench, 'ingest', { eventsPerCall: EVENTS_PER_CALL, target: INGEST_TARGET })
    await events(bench, 'ingest', {
      ...{ eventsPerCall: EVENTS_PER_CALL, connections: FEW_CONNECTIONS, target: FEW_CONNECTIONS_TARGET },
    })
  },
  large: (bench) =>
    events(bench, 'large', { eventsPerCall: EVENTS_PER_CALL, content: 'model calls', target: MODEL_CALLS_TARGET }),
  single: (bench) => events(bench, 'single', { eventsPerCall: 1, target: SINGLE_TARGET }),
  live: measureLiveRuns,
  otlp: measureOtlp,
  scores: measureScores,
  langfuse: measureLangfuse,
  runs,
  delay: measureDelay,
  sustained: measureSustained,
  feeds: measureFeeds,
  queries: measureQueries,
  mcp: measureMcp,
  volume: measureVolume,
  search: measureSearch,
  fresh: measureFreshness,
  invokes: measureInvokes,
  webhooks: measureWebhooks,
  client: measureClient,
  journals: measureJournals,
  cluster: measureCluster,
  workers: measureWorkers,
  memory,
}

interface EventCalls {
  readonly eventsPerCall: number
  readonly connections?: number
  readonly content?: EventContent
  readonly target: number
}

/** Event calls compared with a server that only parses their JSON. */
async function events(
  bench: Bench,
  name: string,
  { eventsPerCall, connections = CONNECTIONS, content, target }: EventCalls,
): Promise<void> {
  const { service, seconds, barePort } = bench
  const load = (port: number) => eventsLoad(service, port, eventsPerCall, { connections, seconds, content })
  const what = content === undefined ? 'events' : `${content} of 4 KB`
  await compare(bench, {
    name: `${name}: ${eventsPerCall === 1 ? 'one event' : `${eventsPerCall} ${what}`} a call, ${connections} connections`,
    ...{ target, eventsPerCall, ours: load(service.port) },
    baseline: { name: 'bare', load: load(await barePort()) },
  })
}

/** Run start and complete compared with a server that runs one statement and commit per call. */
async function runs(bench: Bench): Promise<void> {
  const { service, seconds } = bench
  const load = (port: number) => runsLoad(service, port, { connections: 64, seconds })
  await compare(bench, {
    name: 'runs: start and complete, 64 connections',
    ...{ target: RUNS_TARGET, eventsPerCall: 1, ours: load(service.port) },
    baseline: { name: 'naive', load: load(await startNaiveServer()) },
  })
}

async function idle({ service, report }: Bench): Promise<void> {
  report.heading('idle: memory of all processes of the service')
  await Bun.sleep(SETTLE_MS)
  const memory = await memoryOf(service.pid)
  const text = `idle memory: ${shownMemory(memory)}, target ${IDLE_TARGET_MIB}`
  report.target(text, memory.residentMiB <= IDLE_TARGET_MIB)
}

async function memory({ service, report }: Bench): Promise<void> {
  report.heading('memory: all processes of the service, after the load')
  report.line(shownMemory(await memoryOf(service.pid)))
}
