import { CallRefused, CallUnconfirmed, type Client } from '../cli/client.ts'
import type { Counters } from './counters.ts'
import type { DelegateStep, RunPlan, Step, TaskPlan } from './scripts/plan.ts'

/** An agent of the fleet and the key that reports for it. */
export interface Member {
  readonly agentId: string
  readonly key: string
  readonly choosesRunIds: boolean
}

export interface RunContext {
  readonly client: Client
  readonly counters: Counters
  /** On every run of this session, so that they can be told from others'. */
  readonly sessionTag: string
  /** Waits as long as the agent works; not at all when the fleet is to come to an end. */
  readonly work: (ms: number) => Promise<void>
  /** Carries out a child run; resolves when it has ended. */
  readonly delegate: (step: DelegateStep, parentRunId: string) => Promise<void>
}

/** Steps are reported together, as an SDK does that buffers for a moment. */
const EVENTS_PER_CALL = 4

/**
 * Carries out one run and reports it: start, its tasks and events, then its end. A call that the service refuses, or
 * never answers, ends the run there and is counted.
 */
export async function performRun(
  context: RunContext,
  member: Member,
  plan: RunPlan,
  parentRunId?: string,
): Promise<void> {
  try {
    const runId = await startRun(context, member, plan, parentRunId)
    await new LiveRun(context, member, runId).perform(plan)
  } catch (error) {
    if (error instanceof CallUnconfirmed) context.counters.unconfirmed++
    else if (error instanceof CallRefused) {
      context.counters.refused++
      context.counters.lastRefusal = error.message
    } else throw error
  }
}

/** Starting again after a lost answer must not start a second run: by an id of ours, or by an Idempotency-Key. */
async function startRun({ client, counters, sessionTag }: RunContext, member: Member, plan: RunPlan, parent?: string) {
  const data = await client({
    key: member.key,
    path: '/api/ingest/v1/run/start',
    body: {
      agent_id: member.agentId,
      ...(member.choosesRunIds && { run_id: Bun.randomUUIDv7() }),
      trigger_type: plan.triggerType,
      input: plan.input,
      external_run_id: plan.externalRunId,
      parent_run_id: parent,
      tags: [...plan.tags, sessionTag],
      metadata: plan.metadata,
    },
    ...(!member.choosesRunIds && { idempotencyKey: crypto.randomUUID() }),
  })
  const { run_id } = data as { run_id: string }
  counters.runStarted(run_id)
  return run_id
}

interface OutgoingEvent {
  readonly id: string
  readonly type: string
  readonly level: string
  readonly payload: object
  readonly occurred_at: string
}

class LiveRun {
  private buffer: OutgoingEvent[] = []

  constructor(
    private readonly context: RunContext,
    private readonly member: Member,
    private readonly runId: string,
  ) {}

  async perform(plan: RunPlan): Promise<void> {
    const tasks = plan.tasks.map((task) => new LiveTask(this.context, this.member, this.runId, task))
    await Promise.all(tasks.map((task) => task.move('pending')))
    for (const [index, task] of tasks.entries()) {
      if (task.plan.skipped === true) {
        await task.move('skipped')
        continue
      }
      await task.move('running')
      for (const step of task.plan.steps) await this.take(step)
      await this.flush()
      const { failure } = task.plan
      if (failure !== undefined) {
        await task.move('failed', failure.message)
        await Promise.all(tasks.slice(index + 1).map((rest) => rest.move('skipped')))
        return this.end('failed', { error_message: failure.message, error_detail: failure.detail })
      }
      await task.move('completed')
    }
    return this.end('completed', { output: plan.output })
  }

  private async take(step: Step): Promise<void> {
    if (step.kind === 'delegate') return this.context.delegate(step, this.runId)
    if (step.kind === 'tool') {
      const call = {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': step.tool,
        'gen_ai.tool.call.id': newId(),
      }
      await this.say('tool.call.started', 'info', { ...call, input: step.input })
      await this.context.work(step.ms)
      const ended = step.error === undefined ? { output: step.output } : { 'error.type': step.error }
      const level = step.error === undefined ? 'info' : 'warn'
      return this.say('tool.call.finished', level, { ...call, ...ended, latency_ms: step.ms })
    }
    if (step.kind === 'note') return this.say(step.type, step.level, step.payload)
    await this.context.work(step.ms)
    return this.say('llm.call', 'info', { ...step.payload, 'gen_ai.conversation.id': this.runId })
  }

  private async say(type: string, level: string, payload: object): Promise<void> {
    this.buffer.push({ id: newId(), type, level, payload, occurred_at: new Date().toISOString() })
    if (this.buffer.length >= EVENTS_PER_CALL) await this.flush()
  }

  /** A repeat of the call carries the same event ids, so no event is stored twice. */
  private async flush(): Promise<void> {
    const events = this.buffer
    if (events.length === 0) return
    this.buffer = []
    await this.context.client({
      key: this.member.key,
      path: '/api/ingest/v1/events',
      body: { run_id: this.runId, events },
    })
    this.context.counters.eventsAcknowledged(events.map((event) => event.id))
  }

  private async end(state: 'completed' | 'failed', outcome: object): Promise<void> {
    await this.context.client({
      key: this.member.key,
      path: `/api/ingest/v1/run/${state === 'completed' ? 'complete' : 'fail'}`,
      body: { run_id: this.runId, ...outcome },
    })
    this.context.counters.runEnded(state)
  }
}

class LiveTask {
  private readonly id = newId()
  private status: string | undefined

  constructor(
    private readonly context: RunContext,
    private readonly member: Member,
    private readonly runId: string,
    readonly plan: TaskPlan,
  ) {}

  /** Reporting a status twice changes nothing, so this call needs no key to be repeated. */
  async move(status: string, errorMessage?: string): Promise<void> {
    const { name, input, output } = this.plan
    await this.context.client({
      key: this.member.key,
      path: '/api/ingest/v1/tasks',
      body: {
        run_id: this.runId,
        task: {
          id: this.id,
          name,
          status,
          input,
          ...(status === 'completed' && { output }),
          error_message: errorMessage,
        },
      },
    })
    this.context.counters.taskMoved(this.status, status)
    this.status = status
  }
}

function newId(): string {
  return Bun.randomUUIDv7()
}
