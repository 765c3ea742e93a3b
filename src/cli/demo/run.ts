import { NoResponseError, ServiceError } from '../../client/errors.ts'
import type { components } from '../../client/generated/api.ts'
import type { Client } from '../../client/index.ts'
import type { JsonObject } from '../../client/json.ts'
import type { Counters } from './counters.ts'
import type { DelegateStep, Failure, RunPlan, Step, TaskPlan } from './scripts/plan.ts'

/** An agent of the fleet, and a client with its key. */
export interface Member {
  readonly agentId: string
  readonly client: Client
  readonly choosesRunIds: boolean
}

export interface RunContext {
  readonly counters: Counters
  /** The tag that marks all runs of this session. */
  readonly sessionTag: string
  /** Simulates work of that duration; returns at once when the fleet is stopping. */
  readonly work: (ms: number) => Promise<void>
  /** Resolves when the child run has ended. */
  readonly delegate: (step: DelegateStep, parentRunId: string) => Promise<void>
}

/** Events are reported in batches, like an SDK with a buffer. */
const EVENTS_PER_CALL = 4

/**
 * Executes a run and reports its start, tasks, events and end. A call that is rejected, or has no response, ends the run
 * and is counted.
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
    if (error instanceof NoResponseError) context.counters.unconfirmed++
    else if (error instanceof ServiceError) {
      context.counters.rejected++
      context.counters.lastRejection = error.message
    } else throw error
  }
}

/** A retry after a lost response must not start a second run: the run id or an Idempotency-Key prevents it. */
async function startRun({ counters, sessionTag }: RunContext, member: Member, plan: RunPlan, parent?: string) {
  const { run_id } = await member.client.request('POST', '/api/ingest/v1/run/start', {
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
    ...(member.choosesRunIds && { idempotencyKey: null }),
  })
  counters.runStarted(run_id)
  return run_id
}

type Schemas = components['schemas']

class LiveRun {
  private buffer: (Schemas['NewEvent'] & { id: string })[] = []

  constructor(
    private readonly context: RunContext,
    private readonly member: Member,
    private readonly runId: string,
  ) {}

  async perform(plan: RunPlan): Promise<void> {
    const tasks = plan.tasks.map((task) => new LiveTask(this.context, this.member, this.runId, task))
    await Promise.all(tasks.map((task) => task.report('pending')))
    for (const [index, task] of tasks.entries()) {
      if (task.plan.skipped === true) {
        await task.report('skipped')
        continue
      }
      await task.report('running')
      for (const step of task.plan.steps) await this.execute(step)
      await this.flush()
      const { failure } = task.plan
      if (failure !== undefined) {
        await task.report('failed', failure.message)
        await Promise.all(tasks.slice(index + 1).map((rest) => rest.report('skipped')))
        return this.fail(failure)
      }
      await task.report('completed')
    }
    return this.complete(plan.output)
  }

  private async execute(step: Step): Promise<void> {
    if (step.kind === 'delegate') return this.context.delegate(step, this.runId)
    if (step.kind === 'tool') {
      const call = {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': step.tool,
        'gen_ai.tool.call.id': newId(),
      }
      await this.emit('tool.call.started', 'info', { ...call, input: step.input })
      await this.context.work(step.ms)
      const ended = step.error === undefined ? { output: step.output } : { 'error.type': step.error }
      const level = step.error === undefined ? 'info' : 'warn'
      return this.emit('tool.call.finished', level, { ...call, ...ended, latency_ms: step.ms })
    }
    if (step.kind === 'note') return this.emit(step.type, step.level, step.payload)
    await this.context.work(step.ms)
    return this.emit('llm.call', 'info', { ...step.payload, 'gen_ai.conversation.id': this.runId })
  }

  private async emit(type: string, level: Schemas['EventLevel'], payload: JsonObject): Promise<void> {
    this.buffer.push({ id: newId(), type, level, payload, occurred_at: new Date().toISOString() })
    if (this.buffer.length >= EVENTS_PER_CALL) await this.flush()
  }

  /** A retry sends the same event ids, so no event is stored twice. */
  private async flush(): Promise<void> {
    const events = this.buffer
    if (events.length === 0) return
    this.buffer = []
    await this.member.client.request('POST', '/api/ingest/v1/events', {
      body: { run_id: this.runId, events },
      idempotencyKey: null,
    })
    this.context.counters.eventsAcknowledged(events.map((event) => event.id))
  }

  private async complete(output: JsonObject): Promise<void> {
    const body = { run_id: this.runId, output }
    await this.member.client.request('POST', '/api/ingest/v1/run/complete', { body, idempotencyKey: null })
    this.context.counters.runEnded('completed')
  }

  private async fail({ message, detail }: Failure): Promise<void> {
    const body = { run_id: this.runId, error_message: message, error_detail: detail }
    await this.member.client.request('POST', '/api/ingest/v1/run/fail', { body, idempotencyKey: null })
    this.context.counters.runEnded('failed')
  }
}

class LiveTask {
  private readonly id = newId()
  private status: Schemas['TaskStatus'] | undefined

  constructor(
    private readonly context: RunContext,
    private readonly member: Member,
    private readonly runId: string,
    readonly plan: TaskPlan,
  ) {}

  /** Reporting the same status twice has no effect, so a retry needs no Idempotency-Key. */
  async report(status: Schemas['TaskStatus'], errorMessage?: string): Promise<void> {
    const { name, input, output } = this.plan
    const about = { id: this.id, name, status, input, error_message: errorMessage }
    const task = status === 'completed' ? { ...about, output } : about
    const body = { run_id: this.runId, task }
    await this.member.client.request('POST', '/api/ingest/v1/tasks', { body, idempotencyKey: null })
    this.context.counters.taskChanged(this.status, status)
    this.status = status
  }
}

function newId(): string {
  return Bun.randomUUIDv7()
}
