import type { RunRef } from '../../base/ids.ts'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import type { Appended, Journal } from '../../stores/journal/journal.ts'
import type { TaskToAppend } from '../../stores/journal/rows.ts'
import { eventsToClaim, type PartitionRef, type Partitions, writerOf } from '../../tenants/partitions/partition.ts'
import { columnsOf } from './event-columns.ts'
import type { MappedEvent, MappedTask } from './mapping.ts'

interface EventWriterDeps {
  readonly partitions: Partitions
  /** Called with the result of each append, for the metrics. */
  readonly onAccepted: (accepted: number, duplicates: number) => void
}

/** Events of a run, and the JSON of their payloads. */
interface WrittenEvents {
  readonly events: readonly MappedEvent[]
  readonly json: Bytes
}

/**
 * Appends those events of a run that are not stored yet, and before them, in the same commit, the tasks that `tasksOf`
 * returns. So if the end event of a task is stored, the task is, too. A concurrent call with the same events waits for
 * this append, and takes over if it fails. Resolves once everything is on stable storage, with the positions of the
 * events, or of the tasks if there are no new events; with null if nothing was appended.
 *
 * @param tasksOf gets the indexes of the events that are new
 * @throws ApiError UNAVAILABLE
 */
export type WriteEvents = (
  caller: PartitionRef,
  run: RunRef,
  written: WrittenEvents,
  tasksOf?: (fresh: ReadonlySet<number>) => readonly TaskToAppend[],
) => Promise<Appended | null>

export function createEventWriter({ partitions, onAccepted }: EventWriterDeps): WriteEvents {
  return async (caller, run, { events, json }, tasksOf = () => []) => {
    const { journal, ids } = writerOf(partitions, caller)
    const eventIds = events.map(({ id }) => id)
    const call = eventsToClaim(run, eventIds)
    const { duplicates, durable } = await ids.claim(call, async (rows): Promise<Appended | null> => {
      const tasks = tasksOf(new Set(rows))
      const scan = rows.length === 0 ? null : columnsOf(events, json)
      return appendReported(journal, tasks, scan && { run, scan, rows, ids: eventIds })
    })
    const positions = await durable
    onAccepted(events.length - duplicates, duplicates)
    return positions
  }
}

/** Appends tasks and events of a run in one commit. Resolves with the positions of the events, or else of the tasks. */
export async function appendReported(
  journal: Pick<Journal, 'appendTasks' | 'appendEvents'>,
  tasks: readonly TaskToAppend[],
  events: Parameters<Journal['appendEvents']>[0] | null,
): Promise<Appended | null> {
  // Both calls in the same tick, so that they share a commit.
  const [appendedTasks, appendedEvents] = await Promise.all([
    tasks.length === 0 ? null : journal.appendTasks(tasks, []),
    events === null ? null : journal.appendEvents(events),
  ])
  return appendedEvents ?? appendedTasks
}

/** The row of a task whose input and output are in `json`. */
export function taskRow(
  { workspaceId, agentId, runId }: RunRef,
  task: MappedTask,
  json: Bytes,
  now: number,
): TaskToAppend {
  const text = json.buffer
  return {
    workspace_id: workspaceId,
    agent_id: agentId,
    run_id: runId,
    task_id: task.taskId,
    parent_task_id: task.parentTaskId,
    name: task.name,
    status: task.status,
    input: task.input && { text, ...task.input },
    output: task.output && { text, ...task.output },
    error_message: task.errorMessage,
    created_at: now,
    updated_at: now,
    started_at: task.startedAt,
    completed_at: task.completedAt,
  }
}
