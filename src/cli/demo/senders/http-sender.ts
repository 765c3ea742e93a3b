import type { Client } from '../../../client/index.ts'
import { scoresOf } from '../content/scores.ts'
import type { Outcome, PlannedEvent, PlannedTask } from '../plan.ts'
import type { Sender } from './sender.ts'

type SentEvent = ReturnType<typeof eventBody>
type StatusOfTask = 'running' | 'completed' | 'failed' | 'skipped'

interface HttpOptions {
  readonly onEvent?: (id: string) => void
  /**
   * For runs of the past: schedules the calls that report tasks and events, which are made when the run has ended. Without
   * it, each call is made at once.
   */
  readonly later?: (call: () => Promise<unknown>) => void
}

/** Reports with plain calls of the API. */
export function httpSender(client: Client, agentId: string, options: HttpOptions = {}): Sender {
  const { onEvent = () => {}, later } = options
  return {
    async start(plan, parentRunId) {
      const { run_id } = await client.request('POST', '/api/ingest/v1/run/start', {
        body: {
          agent_id: agentId,
          trigger_type: plan.triggerType,
          external_run_id: plan.externalRunId,
          parent_run_id: parentRunId,
          session_id: plan.sessionId,
          external_user_id: plan.externalUserId,
          tags: [...plan.tags],
          metadata: plan.metadata,
          input: plan.input,
        },
      })
      const tasks = new Map<PlannedTask, SentTask>()
      const report = (body: object) =>
        client.request('POST', '/api/ingest/v1/tasks', { body: { run_id, task: body } as never })
      const send = (events: readonly SentEvent[]) =>
        client.request('POST', '/api/ingest/v1/events', { body: { run_id, events: [...events] } })
      const events: SentEvent[] = []
      return {
        runId: run_id,
        async add(moment, at) {
          if (moment.kind === 'event') {
            const taskId = moment.task === undefined ? undefined : tasks.get(moment.task)?.id
            const event = eventBody(moment.event, taskId, at)
            onEvent(event.id)
            if (later !== undefined) events.push(event)
            else await send([event])
            return
          }
          if (moment.kind === 'task') {
            const { name, input, isSkipped } = moment.task
            const parent_task_id = moment.parent === undefined ? undefined : tasks.get(moment.parent)?.id
            const sent: SentTask = { id: Bun.randomUUIDv7(), name, input, parent_task_id, started_at: timeOf(at) }
            tasks.set(moment.task, sent)
            if (isSkipped !== true && later === undefined) await report({ ...sent, status: 'running' })
            return
          }
          const body = { ...tasks.get(moment.task), ...endOf(moment.task), completed_at: timeOf(at) }
          if (later === undefined) await report(body)
          else later(() => report(body))
        },
        async end(outcome, at) {
          await endRun(client, run_id, outcome)
          if (events.length > 0) later?.(() => send(events))
          const scores = scoresOf(plan).map((score) => ({ ...score, run_id, created_at: timeOf(at) }))
          const score = () => client.request('POST', '/api/ingest/v1/scores', { body: { scores } })
          if (scores.length === 0) return
          if (later === undefined) await score()
          else later(score)
        },
      }
    },
  }
}

interface SentTask {
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly parent_task_id: string | undefined
  readonly started_at: string
}

function endRun(client: Client, run_id: string, outcome: Outcome): Promise<unknown> {
  if (outcome.status === 'cancelled') return client.runs.cancel(run_id, { reason: outcome.reason })
  if (outcome.status === 'completed')
    return client.request('POST', '/api/ingest/v1/run/complete', { body: { run_id, output: outcome.output } })
  const body = { run_id, error_message: outcome.message, error_detail: outcome.detail }
  return client.request('POST', '/api/ingest/v1/run/fail', { body })
}

function eventBody({ type, level, payload }: PlannedEvent, task_id: string | undefined, at: number) {
  return { id: Bun.randomUUIDv7(), type, level, payload, task_id, occurred_at: timeOf(at) }
}

function endOf({ isSkipped, error, output }: PlannedTask): { status: StatusOfTask; [member: string]: unknown } {
  if (isSkipped === true) return { status: 'skipped' }
  return error === undefined ? { status: 'completed', output } : { status: 'failed', error_message: error }
}

function timeOf(at: number): string {
  return new Date(at).toISOString()
}
