import type { Frame } from '../journal.ts'
import { LogJournal, type LogJournalOptions } from '../log/log-journal.ts'
import { openParts, type PartsOptions } from './parts.ts'
import { LocalStorage } from './storage.ts'

const SEGMENT_BYTES = 32 * 1024 * 1024

export interface LocalJournalOptions extends Omit<PartsOptions, 'segmentBytes'>, LogJournalOptions {
  /** See {@link PartsOptions}. */
  readonly segmentBytes?: number
}

/** A journal in local segment files. */
export type LocalJournal = LogJournal

/** Opens the journal in `dir`, creating it on first use. Only one process at a time may open it. */
export async function openLocalJournal(options: LocalJournalOptions): Promise<LocalJournal> {
  const { parts, endSeq } = await openParts({ segmentBytes: SEGMENT_BYTES, ...options })
  const { consumers, segments } = parts
  const outboxIds = new Map<Frame['kind'], readonly string[]>()
  for (const { kind, outboxIds: ids } of segments.recovered) if (ids.length > 0) outboxIds.set(kind, ids)
  segments.recovered.length = 0
  return new LogJournal(new LocalStorage(options.dir, parts), { endSeq, outboxIds, consumers }, options)
}
