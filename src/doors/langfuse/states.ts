import type { Merged } from './merged.ts'

/** What is known of an observation. */
export interface ObservationState {
  readonly observationId: string
  /** Without values if {@link isReleased}. */
  readonly merged: Merged
  /** Whether only the times of the values are known: the values are stored, and read again for a later update. */
  readonly isReleased: boolean
  /** Whether its own event is stored, such as `llm.call`: there is one for each observation. */
  readonly isFinal: boolean
  readonly isRoot: boolean
  readonly hasEnded: boolean
}

/** Ids of events from the future that are remembered for a run. */
const FUTURE_EVENTS_MAX = 1_000
const RUN_BYTES = 1_000
/** What an entry takes apart from its merged state: ids and map entries. */
const ENTRY_BYTES = 300

interface Bounds {
  readonly bytes: number
  /** Of one run. A larger one is forgotten, and read again when something of it is needed. */
  readonly bytesPerRun: number
}

const MIB = 1024 * 1024
const BOUNDS: Bounds = { bytes: 64 * MIB, bytesPerRun: 16 * MIB }

/** What this process knows of the observations of a run. */
export class RunState {
  private readonly observations = new Map<string, ObservationState>()
  private readonly open = new Set<string>()
  /** Events with a timestamp in the future, which count as sent when they arrived; a repeat arrives later. */
  private readonly future = new Set<string>()
  trace: Merged | null = null
  hasEnded = false
  /** Whether a root observation has ended. */
  hasEndedRoot = false
  /** What the stores were told of the run; empty until they were told. */
  reported = ''
  /** The earliest start that the stores were told, Unix milliseconds. */
  startedAt = Number.POSITIVE_INFINITY
  bytes = RUN_BYTES

  /** @param isWhole whether everything that is stored of the run is known here, because this process saw it begin */
  constructor(readonly isWhole: boolean) {}

  get(taskId: string): ObservationState | undefined {
    return this.observations.get(taskId)
  }

  /** Of a run that is large, only the times of the values are kept. */
  set(taskId: string, observed: ObservationState): void {
    const before = sizeOf(this.observations.get(taskId))
    const isLarge = this.bytes + sizeOf(observed) - before > BOUNDS.bytesPerRun
    const state = isLarge ? { ...observed, merged: observed.merged.released(), isReleased: true } : observed
    this.bytes += sizeOf(state) - before
    this.observations.set(taskId, state)
    if (state.isFinal) this.open.delete(taskId)
    else this.open.add(taskId)
  }

  setTrace(trace: Merged): void {
    this.bytes += trace.bytes - (this.trace?.bytes ?? 0)
    this.trace = trace
  }

  /** The observations whose own event is not stored. */
  *unfinished(): Generator<[string, ObservationState]> {
    for (const taskId of this.open) {
      const state = this.observations.get(taskId)
      if (state !== undefined) yield [taskId, state]
    }
  }

  isKnownFuture(eventId: string): boolean {
    return this.future.has(eventId)
  }

  addFuture(eventId: string): void {
    if (this.future.size >= FUTURE_EVENTS_MAX) return
    this.future.add(eventId)
    this.bytes += ENTRY_BYTES + 2 * eventId.length
  }
}

function sizeOf(state: ObservationState | undefined): number {
  return state === undefined ? 0 : ENTRY_BYTES + 2 * state.observationId.length + state.merged.bytes
}

/**
 * The states of the runs that were reported last, in bounded memory: only a cache of what is stored. The least recently used
 * are forgotten.
 */
export class RunStates {
  /** By run key, in order of use. */
  private readonly runs = new Map<string, RunState>()
  private bytes = 0

  constructor(private readonly bounds = BOUNDS) {}

  /** Takes the state of a run out: it is put back once what was merged into it is stored, and forgotten otherwise. */
  take(key: string): RunState | undefined {
    const state = this.runs.get(key)
    if (state !== undefined) {
      this.runs.delete(key)
      this.bytes -= state.bytes
    }
    return state
  }

  put(key: string, state: RunState): void {
    this.take(key)
    if (state.bytes > this.bounds.bytesPerRun) return
    this.runs.set(key, state)
    this.bytes += state.bytes
    for (const oldest of this.runs.keys()) {
      if (this.bytes <= this.bounds.bytes) return
      this.take(oldest)
    }
  }

  get size(): number {
    return this.runs.size
  }

  get bytesHeld(): number {
    return this.bytes
  }
}
