import { type Client, createClient } from '../cli/client.ts'
import type { DemoOptions } from './args.ts'
import { Counters } from './counters.ts'
import { type FleetMember, provision } from './provision.ts'
import { createRandom, type Random } from './random.ts'
import { performRun, type RunContext } from './run.ts'
import type { DelegateStep } from './scripts/plan.ts'
import { type Verification, verify } from './verify.ts'

export interface FleetHooks {
  /** Aborted: start no more runs, end the ones under way at once, then sum up. */
  readonly stop: AbortSignal
  /** Told when the agents are ready. The counters go on changing while the fleet works. */
  readonly onReady?: (counters: Counters) => void
  /** Told when no more runs are started. */
  readonly onDrain?: () => void
}

export interface FleetReport {
  readonly counters: Counters
  readonly verification: Verification
  /** From the first start to the last answer, seconds. */
  readonly seconds: number
  /** What the runs of this session are tagged with. */
  readonly sessionTag: string
  /** False when the service was gone by then: the session's agent keys are still valid. */
  readonly keysRevoked: boolean
}

const TICK_MS = 10
/** Past this many runs at a time the next ones wait: the service is away, or slower than the fleet. */
const RUNS_AT_A_TIME_MAX = 5_000
/** How long a call is repeated: long enough for a service that is killed and started again. */
const CALL_PATIENCE_MS = 60_000
const FIRST_CALL_PATIENCE_MS = 1_500
const LAST_CALL_PATIENCE_MS = 10_000
const SQL_PATIENCE_MS = 15_000

/**
 * Runs the fleet against a service for as long as asked, then checks that SQL holds what was acknowledged.
 *
 * @throws CliError, CallRefused when it cannot begin
 */
export async function runFleet(options: DemoOptions, { stop, onReady, onDrain }: FleetHooks): Promise<FleetReport> {
  const counters = new Counters()
  const session = `demo-${new Date().toISOString().replace(/\.\d+Z$/, 'Z')}-${crypto.randomUUID().slice(0, 4)}`
  const sessionTag = `session:${session}`
  const patient = createClient({
    url: options.url,
    patienceMs: CALL_PATIENCE_MS,
    onRetry: () => counters.retries++,
    onAnswer: (path, ms) => {
      if (path.endsWith('/events')) counters.ackLatency.add(ms)
    },
  })
  const impatient = createClient({ url: options.url, patienceMs: FIRST_CALL_PATIENCE_MS })
  const crew = await provision(impatient, options, session)
  onReady?.(counters)

  const startedAt = performance.now()
  await drive({ options, client: patient, counters, sessionTag, members: crew.members, stop, onDrain })
  const seconds = (performance.now() - startedAt) / 1000
  const asking = createClient({ url: options.url, patienceMs: LAST_CALL_PATIENCE_MS })
  const verification = await verify(asking, { key: options.key, sessionTag, counters, patienceMs: SQL_PATIENCE_MS })
  const keysRevoked = await crew.dismiss()
  return { counters, verification, seconds, sessionTag, keysRevoked }
}

interface Drive {
  readonly options: DemoOptions
  readonly client: Client
  readonly counters: Counters
  readonly sessionTag: string
  readonly members: readonly FleetMember[]
  readonly stop: AbortSignal
  readonly onDrain: (() => void) | undefined
}

/** Starts runs at the rate asked for until the time is up; resolves when the last one has ended. */
async function drive({ options, client, counters, sessionTag, members, stop, onDrain }: Drive): Promise<void> {
  const random = createRandom(options.seed)
  const over = AbortSignal.any([stop, AbortSignal.timeout(options.durationSeconds * 1000)])
  const context: RunContext = {
    client,
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
    for (; performance.now() >= nextAt && live.size < RUNS_AT_A_TIME_MAX; nextAt += gapMs(random, options.rate)) begin()
    await sleep(TICK_MS, over)
  }
  onDrain?.()
  await Promise.all(live)
}

/** Agents are asked at random moments, not in step. */
function gapMs(random: Random, rate: number): number {
  return (-Math.log(1 - random.next()) * 1000) / rate
}

/** A child run by an agent of the kind asked for, or by any if the fleet has none. */
async function delegate(context: RunContext, members: readonly FleetMember[], step: DelegateStep, parentRunId: string) {
  const random = createRandom(step.seed)
  const able = members.filter(({ profile }) => profile.name === step.to)
  const member = random.pick(able.length > 0 ? able : members)
  // A child passes nothing on, so that runs end.
  await performRun({ ...context, delegate: async () => {} }, member, member.profile.plan(random), parentRunId)
}

/** Resolves after `ms`, or at once when it is over. A signal of a long session must not collect listeners. */
function sleep(ms: number, over: AbortSignal): Promise<void> {
  if (over.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      over.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    over.addEventListener('abort', done)
  })
}
