import type { PartitionRef } from './partition.ts'

/** The sources that live feeds read: one for each partition, which any process can open. */
export interface Feeds<Source> {
  /** The source of a caller's workspace, with everything that was acknowledged before the call. @throws ApiError UNAVAILABLE */
  of(ref: PartitionRef): Promise<Source>
  /** The sources that are open in this process. */
  opened(): readonly Source[]
}

/** How long a source stays open, and how it catches up with the log's owner. */
export interface SourceLifetime {
  /** Keeps the source open until the returned function is called. Calls `end` if it has to close anyway. */
  retain(end: () => void): () => void
  /** Whether it may lack what was acknowledged a moment ago, in another process. */
  readonly mayLag: boolean
  /** Waits until everything that was acknowledged before the call can be read. @throws ApiError UNAVAILABLE */
  refresh(): Promise<void>
}
