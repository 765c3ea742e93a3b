import type { Client } from '../../../client/index.ts'
import type { Task } from '../../../client/run.ts'
import { scoresOf } from '../content/scores.ts'
import type { PlannedTask } from '../plan.ts'
import type { Sender } from './sender.ts'

/** Long enough for a service that is killed and restarted. */
export const FLUSH_TIMEOUT_MS = 60_000

/** Reports with our client, in the background. Only for the present, because the client takes the time itself. */
export function clientSender(client: Client, agentId: string, onEvent: (id: string) => void): Sender {
  return {
    async start(plan, parentRunId) {
      const { steps: _steps, outcome: _outcome, ...options } = plan
      const run = client.startRun({ ...options, agentId, parentRunId })
      const tasks = new Map<PlannedTask, Task>()
      const partOf = (task: PlannedTask | undefined) => (task === undefined ? run : (tasks.get(task) ?? run))
      return {
        runId: run.runId,
        async add(moment) {
          if (moment.kind === 'task') {
            const { name, input } = moment.task
            tasks.set(moment.task, partOf(moment.parent).startTask(name, { input }))
          } else if (moment.kind === 'event') {
            const { type, level, payload } = moment.event
            const id = Bun.randomUUIDv7()
            onEvent(id)
            await partOf(moment.task).event(type, payload, { id, level })
          } else endTask(tasks.get(moment.task), moment.task)
        },
        async end(outcome) {
          for (const { name, value, label, ...rest } of scoresOf(plan)) void run.score(name, value ?? label ?? '', rest)
          if (outcome.status === 'completed') return run.complete(outcome.output)
          if (outcome.status === 'failed') return run.fail(Object.assign(new Error(outcome.message), outcome.detail))
          await client.flush(FLUSH_TIMEOUT_MS)
          return client.runs.cancel(run.runId, { reason: outcome.reason })
        },
      }
    },
  }
}

function endTask(task: Task | undefined, { isSkipped, error, output }: PlannedTask): void {
  if (isSkipped === true) task?.skip()
  else if (error !== undefined) task?.fail(new Error(error))
  else task?.complete(output)
}
