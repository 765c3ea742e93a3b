import type { Clock } from '../../src/base/clock.ts'
import { createRandom } from '../../src/cli/demo/random.ts'
import { newAgent } from '../support/api.ts'
import type { Random } from '../support/random.ts'
import { startTestService, type TestService } from '../support/service.ts'
import type { Action, PlannedEvent, Profile, RunPlan } from './query-plan.ts'
import { PROFILES } from './query-profiles.ts'

/** The time limit of the service that {@link reportDemo} starts; more than the default, for busy machines. */
export const QUERY_SECONDS = 60

/** A day of the demo agents, reported in a second: the data of the SQL tests. */

/** A run as it was reported. */
export interface ReportedRun {
  readonly runId: string
  readonly agent: string
  readonly parentId: string | undefined
  readonly plan: RunPlan
  readonly status: 'running' | 'completed' | 'failed'
  readonly reason: string | undefined
  /** Unix milliseconds. */
  readonly startedMs: number
  readonly durationMs: number
  readonly tasks: readonly { readonly name: string; readonly status: string }[]
  readonly events: readonly ReportedEvent[]
}

export interface ReportedEvent extends PlannedEvent {
  readonly occurredMs: number
}

export interface Demo {
  readonly service: TestService
  readonly runs: readonly ReportedRun[]
  /** Position of the last event. */
  readonly lastSeq: number
}

const RUNS = 50
const HOUR_MS = 3_600_000
const fails = ({ tasks }: RunPlan) => tasks.some(({ failure }) => failure !== undefined)
const delegates = ({ tasks }: RunPlan) => tasks.some(({ steps }) => steps.some((step) => 'to' in step))
const any = () => true
/** Some kinds of run are rare; a fixed rotation makes sure that all occur. */
const KINDS = [(plan: RunPlan) => !fails(plan), any, fails, any, delegates, any, any]
const STUCK_EVERY = KINDS.length

/** A clock that the test sets, so that a run takes as long as its plan says. */
class SetClock implements Clock {
  ms = Date.now() - 24 * HOUR_MS
  now(): number {
    return this.ms
  }
}

export async function reportDemo(random: Random): Promise<Demo> {
  const clock = new SetClock()
  const service = await startTestService({}, { clock, bounds: { queries: { seconds: QUERY_SECONDS } } })
  const agents = new Map<string, Member>()
  for (const profile of PROFILES)
    agents.set(profile.name, { ...(await newAgent(service.api, { name: profile.name })), profile })
  const demo = { api: service.api, clock, agents, runs: [] as ReportedRun[], lastSeq: 0 }

  for (let i = 0; i < RUNS; i++) {
    // All runs end well before the present time of the engine.
    clock.ms = Date.now() - 23 * HOUR_MS + (i * 22 * HOUR_MS) / RUNS
    const { member, plan } = chosen(random, [...agents.values()], KINDS[i % KINDS.length]!)
    const run = await report(demo, member, plan, undefined, i % STUCK_EVERY === 0)
    // The caller retries the same work, and succeeds.
    if (run.status === 'failed') await report(demo, member, withoutFailure(plan), undefined, false)
  }
  return { service, runs: demo.runs, lastSeq: demo.lastSeq }
}

interface Member {
  readonly agentId: string
  readonly agentKey: string
  readonly profile: Profile
}

/** A random member with a plan of that kind. */
function chosen(random: Random, members: readonly Member[], isWanted: (plan: RunPlan) => boolean) {
  for (;;) {
    const member = random.pick(members)
    const plan = member.profile.plan(createRandom(random.int(0, 2 ** 32 - 1)))
    if (isWanted(plan)) return { member, plan }
  }
}

interface Reporting {
  readonly api: TestService['api']
  readonly clock: SetClock
  readonly agents: ReadonlyMap<string, Member>
  readonly runs: ReportedRun[]
  lastSeq: number
}

/** Reports a run as the demo does, at the times of its plan. A stuck run never ends. */
async function report(
  demo: Reporting,
  member: Member,
  plan: RunPlan,
  parentId: string | undefined,
  isStuck: boolean,
): Promise<ReportedRun> {
  const { clock } = demo
  const call = async (path: string, body: object) => {
    const answer = await demo.api('POST', `/api/ingest/v1/${path}`, body, { key: member.agentKey })
    if (answer.error !== null) throw new Error(`${path}: ${answer.error.message}`)
    return answer.data
  }
  const startedMs = clock.ms
  const { run_id } = await call('run/start', {
    agent_id: member.agentId,
    trigger_type: plan.triggerType,
    input: plan.input,
    external_run_id: plan.externalRunId,
    parent_run_id: parentId,
    tags: plan.tags,
  })
  const events: ReportedEvent[] = []
  const tasks: { name: string; status: string }[] = []
  const run = { runId: run_id, agent: member.profile.name, parentId, plan, startedMs, tasks, events }
  let reason: string | undefined
  for (const [index, task] of plan.tasks.entries()) {
    const id = Bun.randomUUIDv7()
    const setStatus = (status: string) =>
      call('tasks', { run_id, task: { id, name: task.name, status, input: task.input } })
    if (task.isSkipped || reason !== undefined) {
      await setStatus('skipped')
      tasks.push({ name: task.name, status: 'skipped' })
      continue
    }
    await setStatus('running')
    for (const step of task.steps) {
      if ('to' in step) {
        const child = demo.agents.get(step.to)!
        await report(demo, child, child.profile.plan(createRandom(step.seed)), run_id, false)
      } else events.push(...eventsOf(step, clock))
    }
    const isLeft = isStuck && index === plan.tasks.length - 1
    const status = isLeft ? 'running' : task.failure === undefined ? 'completed' : 'failed'
    if (!isLeft) await setStatus(status)
    tasks.push({ name: task.name, status })
    reason = task.failure?.message
  }
  const sent = events.map(({ occurredMs, ...event }) => ({ ...event, occurred_at: new Date(occurredMs).toISOString() }))
  demo.lastSeq = (await call('events', { run_id, events: sent })).last_seq
  const status = reason !== undefined ? 'failed' : isStuck ? 'running' : 'completed'
  if (status === 'failed') await call('run/fail', { run_id, error_message: reason })
  if (status === 'completed') await call('run/complete', { run_id, output: plan.output })
  const reported = { ...run, status, reason, durationMs: clock.ms - startedMs } as const
  demo.runs.push(reported)
  return reported
}

function withoutFailure(plan: RunPlan): RunPlan {
  return { ...plan, tasks: plan.tasks.map(({ failure: _, ...task }) => task) }
}

/** The events of an action; advances the clock by its duration. */
function eventsOf({ before, ms, after }: Action, clock: SetClock): ReportedEvent[] {
  const startedMs = clock.ms
  clock.ms += ms
  const started = before === undefined ? [] : [{ ...before, occurredMs: startedMs }]
  return [...started, { ...after, occurredMs: clock.ms }]
}
