import { createHistogram } from 'node:perf_hooks'
import { sleep } from '../../base/abort.ts'
import { isCallFailure } from '../../client/errors.ts'
import { Client } from '../../client/index.ts'
import type { ClientOptions } from '../../client/options.ts'
import type { ReportStats } from '../../client/report-stats.ts'
import type { DemoOptions } from './args.ts'
import { pinBoard } from './boards.ts'
import { PROFILES } from './content/profiles.ts'
import { addChecksum, createFigures, type Figures, verify } from './figures.ts'
import { Desk, usesModel } from './hosted/desk.ts'
import type { ModelServer } from './hosted/model-server.ts'
import type { Profile, RunPlan } from './plan.ts'
import { Company, type Edit, type Member } from './provision.ts'
import { createRandom, type Random } from './random.ts'
import { performRun, type Reporter, type RunContext } from './run.ts'
import { clientSender, FLUSH_TIMEOUT_MS } from './senders/client-sender.ts'
import { httpSender } from './senders/http-sender.ts'
import { EXPORT_MS, otlpSender } from './senders/otlp-sender.ts'
import type { Sender } from './senders/sender.ts'

interface FleetHooks {
  /** When it aborts, no more runs start and those in progress finish without delays. */
  readonly stop: AbortSignal
  /** Called when the agents are ready. */
  readonly onReady?: (progress: Progress) => void
  /** Called when no more runs will start. */
  readonly onDrain?: () => void
  /** Called before the first run, with everything the demo has in the workspace. */
  readonly onCompany?: (company: Company, client: Client) => Promise<void>
}

/** What the fleet has done. It changes while the fleet runs. */
export interface Progress {
  readonly reported: Figures
  /** Whether the service runs agents with the demo's model. */
  readonly isHosting: boolean
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

type FleetOptions = Pick<DemoOptions, 'url' | 'key' | 'agents' | 'rate' | 'durationSeconds' | 'seed'>

const TICK_MS = 10
/** Maximum of conversations in progress. More would pile up while the service is down or slower than the fleet. */
const CONCURRENT_MAX = 2_000
/** Conversations of this many seconds start at once at the beginning, so that there is something to see. */
const OPENING_SECONDS = 24
const OPENING_MAX = 100
/** When the agents get their next version. */
const EDIT_AFTER_MS = 20_000
/** Per agent. Enough for the runs in progress, so that no report is dropped while the service is down. */
const BUFFER_BYTES = 16 * 2 ** 20
const RETRIES_MAX = 6

/**
 * Runs the fleet for the requested duration, then verifies that SQL has what was reported.
 *
 * @throws CliError, ServiceError when it cannot start
 */
export async function runFleet(options: FleetOptions, model: ModelServer, hooks: FleetHooks): Promise<FleetReport> {
  const { url, key } = options
  const session = `demo:${crypto.randomUUID().slice(0, 6)}`
  const client = new Client({ url, key, maxRetries: RETRIES_MAX })
  const ackMicros = createHistogram()
  let lastProblem: string | undefined
  const company = new Company(client, session)
  const reporting: ClientOptions = {
    bufferBytes: BUFFER_BYTES,
    whenFull: 'wait',
    flushAtExit: false,
    onError: ({ message }) => {
      lastProblem = message
    },
    onResponse: (path, ms) => {
      if (path.includes('/events')) ackMicros.record(Math.max(1, Math.round(ms * 1_000)))
    },
  }
  await company.hirePrograms(reporting)
  await company.hireHosted(model.toolsUrl)
  await pinBoard(client)
  const isHosting = await usesModel(client, company.hosted.get('Policy expert') ?? '', () => model.answers)
  await hooks.onCompany?.(company, client)
  const members = [...company.members.values()]
  const reported = createFigures()
  const progress: Progress = {
    reported,
    isHosting,
    total: (name) => members.reduce((sum, { client }) => sum + client.stats[name], 0),
    ackMs: (percentile) => (ackMicros.count === 0 ? 0 : ackMicros.percentile(percentile) / 1_000),
    lastProblem: () => lastProblem,
  }
  hooks.onReady?.(progress)

  const startedAt = performance.now()
  const over = AbortSignal.any([hooks.stop, AbortSignal.timeout(options.durationSeconds * 1_000)])
  const reporters = new Map(
    members.map((member) => [member.profile.name, { ...member, sender: senderOf(member, reported) }]),
  )
  const context = { reporters, reported, sessionTag: session, over }
  const random = createRandom(options.seed)
  const desk = new Desk({ client, agents: company.hosted, random: createRandom(options.seed + 1) })
  const recordFailure = (error: unknown) => {
    if (!isCallFailure(error)) throw error
    lastProblem = error.message
  }
  await Promise.all([
    startEpisodes(context, {
      random,
      agents: options.agents,
      rate: options.rate,
      recordFailure,
      onDrain: hooks.onDrain,
    }),
    isHosting ? desk.keepBusy(over).catch(recordFailure) : undefined,
    editAgents(company.edits, over).catch(recordFailure),
  ])
  await Promise.all(members.map(({ client }) => client.close(FLUSH_TIMEOUT_MS)))
  const seconds = (performance.now() - startedAt) / 1_000
  const differences = await verify(client, reported, session)
  return { progress, differences, seconds, sessionTag: session, keysRevoked: await company.revokeKeys() }
}

function senderOf({ profile, client, agentId }: Member, reported: Figures): Sender {
  const onEvent = (id: string) => addChecksum(reported, 'events checksum', id)
  if (profile.sender === 'otlp') return otlpSender(client, profile.name, EXPORT_MS)
  return profile.sender === 'http' ? httpSender(client, agentId, { onEvent }) : clientSender(client, agentId, onEvent)
}

interface EpisodeOptions {
  readonly random: Random
  readonly agents: number
  /** Per second. */
  readonly rate: number
  /** Records a failed call as the last problem. @throws any other error */
  readonly recordFailure: (error: unknown) => void
  readonly onDrain: (() => void) | undefined
}

/** Starts conversations and jobs at the requested rate until the time is over; resolves when the last one has ended. */
async function startEpisodes(
  context: RunContext,
  { random, agents, rate, recordFailure, onDrain }: EpisodeOptions,
): Promise<void> {
  const live = new Set<Promise<void>>()
  const begin = () => {
    const profile = pickProfile(random, agents)
    const reporter = context.reporters.get(profile.name)
    if (reporter === undefined) return
    const episode = performEpisode(context, reporter, profile.episode(random), random)
      .catch(recordFailure)
      .finally(() => live.delete(episode))
    live.add(episode)
  }
  const opening = Math.min(OPENING_MAX, Math.ceil(rate * OPENING_SECONDS))
  for (let i = 0; i < opening && !context.over.aborted; i++) begin()
  let nextAt = performance.now()
  while (!context.over.aborted) {
    for (; performance.now() >= nextAt && live.size < CONCURRENT_MAX; nextAt += gapMs(random, rate)) begin()
    await sleep(TICK_MS, context.over)
  }
  onDrain?.()
  await Promise.all(live)
}

/** Performs runs one after the other, with pauses as people make them. */
async function performEpisode(
  context: RunContext,
  reporter: Reporter,
  plans: readonly RunPlan[],
  random: Random,
): Promise<void> {
  for (const plan of plans) {
    await performRun(context, reporter, plan)
    if (context.over.aborted) return
    await sleep(random.latencyMs(3_000), context.over)
  }
}

/**
 * A random profile by share; agents that only other agents start have none.
 * @param agents how many of the profiles take part, from the first
 */
export function pickProfile(random: Random, agents = PROFILES.length): Profile {
  const working = PROFILES.filter(({ share }) => share > 0).slice(0, agents)
  return random.pick(working.flatMap((profile) => Array.from({ length: profile.share }, () => profile)))
}

/** Gives new agents their next versions one after the other, so that each version has runs. */
async function editAgents(edits: readonly (readonly Edit[])[], over: AbortSignal): Promise<void> {
  for (let version = 0; edits.some((each) => version < each.length); version++) {
    await sleep(EDIT_AFTER_MS, over)
    for (const each of edits) await each[version]?.()
  }
}

/** Exponentially distributed, because conversations start independently of each other. */
function gapMs(random: Random, rate: number): number {
  return (-Math.log(1 - random.next()) * 1_000) / rate
}
