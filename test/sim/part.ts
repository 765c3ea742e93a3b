import type { RunRef } from '../../src/base/ids.ts'
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
  /** What else it has started. */
  readonly started: Stoppable[]
}

export interface Stoppable {
  stop(): Promise<void>
}

/** A part of a world beside the log and the sink, such as consumers of the log. */
export interface Part {
  /** A process has opened the log as its owner. Called within it. @returns what is stopped once it has lost it */
  opened?(owner: Owner): Stoppable | Promise<Stoppable> | undefined
  /** Something happens to it. */
  step(): Promise<void> | void
  /** Nothing goes wrong any more. */
  heal?(): void
  /** Whether it has done everything, as far as the newest owner's log shows. */
  isDone?(owner: Owner): boolean
  /** Says what is wrong, once it has done everything or has had the time to. @param rows all that are in the log, in order */
  check(rows: readonly Row[], owner: Owner): Promise<void> | void
  /** Ends its processes. */
  end?(): void
}

/** A world as its parts see it. */
export interface Surroundings {
  readonly workspaceId: string
  /** The runs whose events the world reports. */
  readonly runs: readonly RunRef[]
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
