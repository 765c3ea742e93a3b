import type { EventIdIndex } from '../events/id-index.ts'
import type { RunRef } from '../events/schema.ts'
import type { Appended, Journal } from '../journal/journal.ts'
import type { TaskRow } from '../journal/rows.ts'
import { createColumns } from './event-columns.ts'
import type { MappedEvent } from './mapping.ts'

export interface EventWriterDeps {
  readonly journal: Journal
  readonly ids: EventIdIndex
  /** Called with the result of each append, for the metrics. */
  readonly onAccepted: (accepted: number, duplicates: number) => void
}

/**
 * Appends the events of a run that are new to the journal, and in the same commit, before them, the tasks that `tasksOf`
 * gives for them. So a task is stored if the event of its end is. Whoever repeats the events meanwhile waits for this
 * append, and takes over if it fails. Resolves once everything is on stable storage, with the positions of the events, or
 * of the tasks if there are no events; null if all was stored before.
 *
 * @throws ApiError UNAVAILABLE
 */
export type WriteEvents = (
  run: RunRef,
  events: readonly MappedEvent[],
  tasksOf?: (fresh: readonly boolean[]) => readonly TaskRow[],
) => Promise<Appended | null>

export function createEventWriter({ journal, ids, onAccepted }: EventWriterDeps): WriteEvents {
  const toColumns = createColumns()
  return async (run, events, tasksOf = () => []) => {
    const eventIds = events.map(({ id }) => id)
    const claim = await ids.claim(run, eventIds)
    const append = async (): Promise<Appended | null> => {
      const tasks = tasksOf(claim.fresh)
      const rows = claim.fresh.flatMap((isFresh, row) => (isFresh ? row : []))
      // Without a pause between the two, so that they share a commit.
      const [appendedTasks, appendedEvents] = await Promise.all([
        tasks.length === 0 ? null : journal.appendTasks(tasks, []),
        rows.length === 0 ? null : journal.appendEvents({ run, scan: toColumns(events), rows, ids: eventIds }),
      ])
      return appendedEvents ?? appendedTasks
    }
    const appended = append()
    claim.appended(appended)
    const positions = await appended
    if (claim.duplicates > 0) await claim.settled
    onAccepted(events.length - claim.duplicates, claim.duplicates)
    return positions
  }
}
