import type { Journal } from '../../src/stores/journal/journal.ts'
import type { NatsReaderOptions } from '../../src/stores/journal/nats/reader.ts'
import type { Sink } from '../../src/stores/sink/sink.ts'
import type { FaultKind, Faults, Trace } from './faults.ts'
import type { MemoryTable, Row } from './stores.ts'
import type { SimulatedProcess } from './virtual-time.ts'

/** An owner of the log: a process that writes it, and loads it into ClickHouse. */
export interface Owner {
  readonly generation: number
  readonly process: SimulatedProcess
  readonly journal: Journal
  readonly sink: Sink
}

/** A part of a world beside the log and the sink, such as consumers of the log. */
export interface Part {
  /** A process has opened the log as its owner. Called within it. */
  opened?(owner: Owner): Promise<void> | void
  /** Something happens to it. */
  step(): Promise<void> | void
  /** Nothing goes wrong any more. */
  heal?(): void
  /** Says what is wrong, once everything has had the time to be done. @param rows all that are in the log, in order */
  check(rows: readonly Row[], owner: Owner): Promise<void> | void
  /** Ends its processes. */
  end?(): void
}

/** A world as its parts see it. */
export interface Surroundings {
  readonly workspaceId: string
  readonly faults: Faults
  readonly trace: Trace
  /** How the log is read. */
  readonly log: NatsReaderOptions
  readonly table: MemoryTable
  /** The newest generation. */
  generation(): number
  /** How long something takes. */
  delay(): Promise<void>
  /** Whether a fault with this probability happens. */
  fails(probability: number, who: string, kind: FaultKind): boolean
  problem(text: string): void
}
