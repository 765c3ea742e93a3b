import { createHistogram } from 'node:perf_hooks'
import { sleep } from '../../base/abort.ts'
import { Client } from '../../client/index.ts'
import type { ReportStats } from '../../client/reporter.ts'
import type { DemoOptions } from './args.ts'
import { createFigures, type Figures, verify } from './figures.ts'
import { provision } from './provision.ts'
import { createRandom, type Random } from './random.ts'
import { FLUSH_TIMEOUT_MS, performRun, type RunContext } from './run.ts'

interface FleetHooks {
  /** When it aborts, no more runs start and those in progress finish without delays. */
  readonly stop: AbortSignal
  /** Called when the agents are ready. */
  readonly onReady?: (progress: Progress) => void
  /** Called when no more runs will start. */
  readonly onDrain?: () => void
}

/** What the fleet has done. It changes while the fleet runs. */
export interface Progress {
  readonly reported: Figures
  /** A sum over all agents. */
  total(name: keyof ReportStats): number
  /** Milliseconds from request to acknowledgement, for calls that report events. */
  ackMs(percentile: number): number
  /** The last loss or delay of reports. */
  lastProblem(): string | undefined
}

export interface FleetReport {
  readonly progress: Progress
  /** How SQL differs from what was reported. */
  readonly differences: readonly string[]
  /** From the first start to the last acknowledgement. */
  readonly seconds: number
  /** The tag of this session's runs. */
  readonly sessionTag: string
  /** False if the service did not respond: the session's agent keys are still valid. */
  readonly keysRevoked: boolean
}

const TICK_MS = 10
/** With this many runs in progress the next ones wait: the service is down, or slower than the fleet. */
const CONCURRENT_RUNS_MAX = 5_000
/** Of each agent. Enough for the runs in progress, so that no report is dropped while the service is down. */
const BUFFER_BYTES = 64 * 2 ** 20
const RETRIES_MAX = 6

/**
 * Runs the fleet for the requested duration, then verifies that SQL has what was reported.
 *
 * @throws CliError, ServiceError when it cannot start
 */
export async function runFleet(options: DemoOptions, { stop, onReady, onDrain }: FleetHooks): Promise<FleetReport> {
  const { url, key } = options
  const session = `demo-${new Date().toISOString().replace(/\.\d+Z$/, 'Z')}-${crypto.randomUUID().slice(0, 4)}`
  const sessionTag = `session:${session}`
  const client = new Client({ url, key, maxRetries: RETRIES_MAX })
  const ackMicros = createHistogram()
  let lastProblem: string | undefined
  const { members, revokeKeys } = await provision(client, options, session, {
    bufferBytes: BUFFER_BYTES,
    flushAtExit: false,
    onError: ({ message }) => {
      lastProblem = message
    },
    onResponse: (path, ms) => {
      if (path.includes('/events')) ackMicros.record(Math.max(1, Math.round(ms * 1_000)))
    },
  })
  const reported = createFigures()
  const progress: Progress = {
    reported,
    total: (name) => members.reduce((sum, { client }) => sum + client.stats[name], 0),
    ackMs: (percentile) => (ackMicros.count === 0 ? 0 : ackMicros.percentile(percentile) / 1_000),
    lastProblem: () => lastProblem,
  }
  onReady?.(progress)

  const startedAt = performance.now()
  const over = AbortSignal.any([stop, AbortSignal.timeout(options.durationSeconds * 1000)])
  await startRuns({ members, reported, sessionTag, over }, options, onDrain)
  await Promise.all(members.map(({ client }) => client.close(FLUSH_TIMEOUT_MS)))
  const seconds = (performance.now() - startedAt) / 1000
  const differences = await verify(client, reported, sessionTag)
  return { progress, differences, seconds, sessionTag, keysRevoked: await revokeKeys() }
}

/** Starts runs at the requested rate until the time is over; resolves when the last one has ended. */
async function startRuns(context: RunContext, { seed, rate }: DemoOptions, onDrain?: () => void): Promise<void> {
  const random = createRandom(seed)
  const live = new Set<Promise<void>>()
  const begin = () => {
    const member = random.pick(context.members)
    const run = performRun(context, member, member.profile.plan(random)).finally(() => live.delete(run))
    live.add(run)
  }
  let nextAt = performance.now()
  while (!context.over.aborted) {
    for (; performance.now() >= nextAt && live.size < CONCURRENT_RUNS_MAX; nextAt += gapMs(random, rate)) begin()
    await sleep(TICK_MS, context.over)
  }
  onDrain?.()
  await Promise.all(live)
}

/** Exponentially distributed, because runs start independently of each other. */
function gapMs(random: Random, rate: number): number {
  return (-Math.log(1 - random.next()) * 1000) / rate
}
