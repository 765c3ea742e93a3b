import { sleep } from '../../base/abort.ts'
import { addChecksum, type Figures } from './figures.ts'
import { type Moment, type PlannedTask, type RunPlan, timelineOf } from './plan.ts'
import type { Member } from './provision.ts'
import { FLUSH_TIMEOUT_MS } from './senders/client-sender.ts'
import type { Sender } from './senders/sender.ts'

/** A program of the demo, and how it reports. */
export interface Reporter extends Member {
  readonly sender: Sender
}

export interface RunContext {
  readonly reporters: ReadonlyMap<string, Reporter>
  readonly reported: Figures
  /** The tag that marks all runs of this session. */
  readonly sessionTag: string
  /** When it aborts, runs finish without delays. */
  readonly over: AbortSignal
}

/** Performs a run and reports its start, tasks, events and end as they happen. */
export async function performRun(
  context: RunContext,
  reporter: Reporter,
  plan: RunPlan,
  parentRunId?: string,
): Promise<void> {
  const { over } = context
  const { moments, endsAt } = timelineOf(plan)
  const startedAt = Date.now()
  const until = (at: number) => sleep(Math.max(0, startedAt + at - Date.now()), over)
  const run = await reporter.sender.start(tagged(plan, context, reporter), parentRunId, startedAt)
  for (const moment of moments) {
    await until(moment.at)
    if (moment.kind === 'child') await delegate(context, reporter, moment, run.runId)
    else await run.add(moment, Date.now())
  }
  await until(endsAt)
  await run.end(plan.outcome, Date.now())
  if (isCounted(reporter)) countRun(context.reported, run.runId, { plan, moments })
}

/** The service chooses the ids of runs reported by OpenTelemetry, so only other runs can be compared with SQL. */
function isCounted({ profile }: Reporter): boolean {
  return profile.sender !== 'otlp'
}

function tagged(plan: RunPlan, { sessionTag }: RunContext, reporter: Reporter): RunPlan {
  return isCounted(reporter) ? { ...plan, tags: [...plan.tags, sessionTag] } : plan
}

async function delegate(
  context: RunContext,
  by: Reporter,
  { to, plan }: Moment & { kind: 'child' },
  parentRunId: string,
): Promise<void> {
  const reporter = context.reporters.get(to)
  if (reporter === undefined) return
  // The service refuses a run whose parent it does not know yet.
  await by.client.flush(FLUSH_TIMEOUT_MS)
  await performRun(context, reporter, plan, parentRunId)
}

interface Performed {
  readonly plan: RunPlan
  readonly moments: readonly Moment[]
}

function countRun(figures: Figures, runId: string, { plan, moments }: Performed): void {
  figures.runs++
  figures[`runs ${plan.outcome.status}`]++
  addChecksum(figures, 'runs checksum', runId)
  for (const moment of moments) {
    if (moment.kind === 'event') figures.events++
    if (moment.kind !== 'task') continue
    figures.tasks++
    figures[`tasks ${statusOf(moment.task)}`]++
  }
}

function statusOf({ isSkipped, error }: PlannedTask): 'completed' | 'failed' | 'skipped' {
  if (isSkipped === true) return 'skipped'
  return error === undefined ? 'completed' : 'failed'
}
