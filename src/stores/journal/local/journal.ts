import { Consumers, LogJournal, type LogJournalOptions } from '../log/log-journal.ts'
import type { FoundJournal, StartDecision } from '../start.ts'
import { LocalStorage, type LocalStorageOptions } from './storage.ts'

export interface LocalJournalOptions extends LocalStorageOptions, LogJournalOptions {
  /** Called at every start to decide where positions continue, see {@link StartDecision}. */
  readonly decideStart?: (found: FoundJournal) => Promise<StartDecision>
}

/** A journal in local segment files. */
export type LocalJournal = LogJournal

/**
 * Opens the journal in `dir`, creating it on first use. Only one process at a time may open it. Positions continue after
 * all that were ever assigned.
 */
export async function openLocalJournal(options: LocalJournalOptions): Promise<LocalJournal> {
  const consumers = new Consumers()
  const storage = await LocalStorage.open(options, consumers)
  const { identity, acknowledged } = storage
  const found = { epoch: identity.epoch, endSeq: storage.endSeq, acknowledgedSeq: acknowledged.seq }
  const decision: StartDecision = (await options.decideStart?.(found)) ?? { afterSeq: 0, loadedSeq: 0, newEpoch: false }
  const endSeq = Math.max(found.endSeq, found.acknowledgedSeq, decision.afterSeq)
  if (decision.newEpoch) identity.begin(endSeq + 1)
  if (endSeq > found.endSeq || decision.newEpoch) {
    // A journal that has never assigned a position has no gap: earlier positions belong to another journal.
    if (Math.max(found.endSeq, found.acknowledgedSeq) > 0) storage.addGap(found.endSeq, endSeq, decision.loadedSeq)
    await storage.begin(endSeq + 1)
  }
  // Rows that were durable, but not acknowledged, before a crash are part of the journal now: readers may have them.
  const { receivedAt, outboxIds } = storage
  if (storage.endSeq > acknowledged.seq) acknowledged.set(storage.endSeq, receivedAt)
  const start = { endSeq, receivedAt: Math.max(receivedAt, decision.decidedMs ?? 0), outboxIds, consumers }
  return new LogJournal(storage, start, options)
}
