import { sleep } from '../../base/abort.ts'
import { Client } from '../../client/index.ts'
import type { DemoOptions } from './args.ts'
import { Counters } from './counters.ts'
import { type FleetMember, provision } from './provision.ts'
import { createRandom, type Random } from './random.ts'
import { performRun, type RunContext } from './run.ts'
import type { DelegateStep } from './scripts/plan.ts'
import { type Verification, verify } from './verify.ts'

interface FleetHooks {
  /** When it aborts, no more runs start and those in progress finish without delays. */
  readonly stop: AbortSignal
  /** Called when the agents are ready. The counters change while the fleet runs. */
  readonly onReady?: (counters: Counters) => void
  /** Called when no more runs will start. */
  readonly onDrain?: () => void
}

export interface FleetReport {
  readonly counters: Counters
  readonly verification: Verification
  /** From the first start to the last response. */
  readonly seconds: number
  /** The tag of this session's runs. */
  readonly sessionTag: string
  /** False if the service did not respond: the session's agent keys are still valid. */
  readonly keysRevoked: boolean
}

const TICK_MS = 10
/** With this many runs in progress the next ones wait: the service is down, or slower than the fleet. */
const CONCURRENT_RUNS_MAX = 5_000
/** These take about a minute: long enough for a service that is killed and restarted. */
const CALL_RETRIES = 20
const SETUP_RETRIES = 4
const QUERY_RETRIES = 8
const VERIFY_TIMEOUT_MS = 15_000

/**
 * Runs the fleet for the requested duration, then verifies that SQL has what was acknowledged.
 *
 * @throws CliError, ServiceError when it cannot start
 */
export async function runFleet(options: DemoOptions, { stop, onReady, onDrain }: FleetHooks): Promise<FleetReport> {
  const counters = new Counters()
  const session = `demo-${new Date().toISOString().replace(/\.\d+Z$/, 'Z')}-${crypto.randomUUID().slice(0, 4)}`
  const sessionTag = `session:${session}`
  const { url, key } = options
  const setupClient = new Client({ url, key, maxRetries: SETUP_RETRIES })
  const agents = await provision(setupClient, options, session, {
    maxRetries: CALL_RETRIES,
    onRetry: () => counters.retries++,
    onResponse: (path, ms) => {
      if (path.endsWith('/events')) counters.ackLatency.add(ms)
    },
  })
  onReady?.(counters)

  const startedAt = performance.now()
  await startRuns({ options, counters, sessionTag, members: agents.members, stop, onDrain })
  const seconds = (performance.now() - startedAt) / 1000
  const queryClient = new Client({ url, key, maxRetries: QUERY_RETRIES })
  const verification = await verify(queryClient, { sessionTag, counters, timeoutMs: VERIFY_TIMEOUT_MS })
  const keysRevoked = await agents.revokeKeys()
  return { counters, verification, seconds, sessionTag, keysRevoked }
}

interface FleetDeps {
  readonly options: DemoOptions
  readonly counters: Counters
  readonly sessionTag: string
  readonly members: readonly FleetMember[]
  readonly stop: AbortSignal
  readonly onDrain: (() => void) | undefined
}

/** Starts runs at the requested rate until the time is up; resolves when the last one has ended. */
async function startRuns({ options, counters, sessionTag, members, stop, onDrain }: FleetDeps): Promise<void> {
  const random = createRandom(options.seed)
  const over = AbortSignal.any([stop, AbortSignal.timeout(options.durationSeconds * 1000)])
  const context: RunContext = {
    counters,
    sessionTag,
    work: (ms) => sleep(ms, over),
    delegate: (step, parentRunId) => delegate(context, members, step, parentRunId),
  }
  const live = new Set<Promise<void>>()
  const begin = () => {
    const member = random.pick(members)
    const run = performRun(context, member, member.profile.plan(random)).finally(() => live.delete(run))
    live.add(run)
  }
  let nextAt = performance.now()
  while (!over.aborted) {
    for (; performance.now() >= nextAt && live.size < CONCURRENT_RUNS_MAX; nextAt += gapMs(random, options.rate))
      begin()
    await sleep(TICK_MS, over)
  }
  onDrain?.()
  await Promise.all(live)
}

/** Exponentially distributed, because runs start independently of each other. */
function gapMs(random: Random, rate: number): number {
  return (-Math.log(1 - random.next()) * 1000) / rate
}

/** Runs a child run with an agent of the requested kind, or with any agent if the fleet has none. */
async function delegate(context: RunContext, members: readonly FleetMember[], step: DelegateStep, parentRunId: string) {
  const random = createRandom(step.seed)
  const able = members.filter(({ profile }) => profile.name === step.to)
  const member = random.pick(able.length > 0 ? able : members)
  // A child run does not delegate again, so that the depth is bounded.
  await performRun({ ...context, delegate: async () => {} }, member, member.profile.plan(random), parentRunId)
}
