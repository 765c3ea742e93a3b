import { sleep } from '../../base/abort.ts'
import type { Client } from '../../client/index.ts'
import type { Run } from '../../client/run.ts'
import { addChecksum, type Figures } from './figures.ts'
import type { Action, Delegation, PlannedEvent, Profile, RunPlan } from './plan.ts'
import { createRandom } from './random.ts'

/** An agent of the fleet, and a client with its key. */
export interface Member {
  readonly agentId: string
  readonly client: Client
  readonly profile: Profile
}

export interface RunContext {
  readonly members: readonly Member[]
  readonly reported: Figures
  /** The tag that marks all runs of this session. */
  readonly sessionTag: string
  /** When it aborts, runs finish without delays. */
  readonly over: AbortSignal
}

/** Long enough for a service that is killed and restarted. */
export const FLUSH_TIMEOUT_MS = 60_000

/** Performs a run and reports its start, tasks, events and end. */
export async function performRun(context: RunContext, member: Member, plan: RunPlan, parent?: Run): Promise<void> {
  const { reported } = context
  const { agentId, client } = member
  const tags = [...plan.tags, context.sessionTag]
  const run = client.startRun({ ...plan, agentId, tags, parentRunId: parent?.runId })
  reported.runs++
  addChecksum(reported, 'runs checksum', run.runId)
  let failed = false
  for (const { name, input, steps, output, isSkipped = false, failure } of plan.tasks) {
    const task = run.startTask(name, { input })
    reported.tasks++
    if (isSkipped || failed) {
      task.skip()
      reported['tasks skipped']++
      continue
    }
    for (const step of steps) {
      if (!('to' in step)) await act(context, run, step)
      // A child run does not delegate again, so that the depth is bounded.
      else if (parent === undefined) await delegate(context, member, run, step)
    }
    if (failure === undefined) {
      task.complete(output)
      reported['tasks completed']++
      continue
    }
    const error = Object.assign(new Error(failure.message), failure.detail)
    task.fail(error)
    run.fail(error)
    reported['tasks failed']++
    failed = true
  }
  // After a failure this has no effect.
  run.complete(plan.output)
  reported[failed ? 'runs failed' : 'runs completed']++
}

async function act({ reported, over }: RunContext, run: Run, { before, ms, after }: Action): Promise<void> {
  const emit = ({ type, level, payload }: PlannedEvent) => {
    const id = Bun.randomUUIDv7()
    reported.events++
    addChecksum(reported, 'events checksum', id)
    return run.event(type, payload, { id, level })
  }
  if (before !== undefined) await emit(before)
  await sleep(ms, over)
  await emit(after)
}

/** A child run of an agent of the requested kind, or of any agent if the fleet has none. */
async function delegate(context: RunContext, by: Member, run: Run, { to, seed }: Delegation): Promise<void> {
  const random = createRandom(seed)
  const able = context.members.filter(({ profile }) => profile.name === to)
  const member = random.pick(able.length > 0 ? able : context.members)
  // The service refuses a run whose parent it does not know yet.
  await by.client.flush(FLUSH_TIMEOUT_MS)
  await performRun(context, member, member.profile.plan(random), run)
}
