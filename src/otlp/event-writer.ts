import type { EventIdIndex } from '../events/id-index.ts'
import type { RunRef } from '../events/schema.ts'
import type { Appended, Journal } from '../journal/journal.ts'
import { toColumns } from './event-columns.ts'
import type { MappedEvent } from './mapping.ts'

export interface EventWriterDeps {
  readonly journal: Journal
  readonly ids: EventIdIndex
  /** Called with the result of each append, for the metrics. */
  readonly onAccepted: (accepted: number, duplicates: number) => void
}

/**
 * Appends the events of a run that are new to the journal, after `before` has written what must be stored first. Whoever
 * repeats the events meanwhile waits for this append, and takes over if it fails. Resolves once they are on stable
 * storage, with their positions; null if all of them were stored before.
 *
 * @throws ApiError UNAVAILABLE, and what `before` throws
 */
export type WriteEvents = (
  run: RunRef,
  events: readonly MappedEvent[],
  before: (fresh: readonly boolean[]) => Promise<unknown>,
) => Promise<Appended | null>

export function createEventWriter({ journal, ids, onAccepted }: EventWriterDeps): WriteEvents {
  return async (run, events, before) => {
    const eventIds = events.map(({ id }) => id)
    const claim = await ids.claim(run, eventIds)
    const rows = claim.fresh.flatMap((isFresh, row) => (isFresh ? row : []))
    const append = async (): Promise<Appended | null> => {
      await before(claim.fresh)
      return rows.length === 0 ? null : journal.appendEvents({ run, scan: toColumns(events), rows, ids: eventIds })
    }
    const appended = append()
    claim.appended(appended)
    const positions = await appended
    if (claim.duplicates > 0) await claim.settled
    onAccepted(rows.length, claim.duplicates)
    return positions
  }
}
