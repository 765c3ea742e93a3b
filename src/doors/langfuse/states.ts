import { LRUCache } from 'lru-cache'
import type { Merged } from './merged.ts'
import { endedAtOf } from './observation.ts'

/**
 * How far an observation is. It never goes back:
 *
 * | phase | is | next |
 * |---|---|---|
 * | `updated` | known only by updates, which may arrive before the create | `open`, `complete` |
 * | `open` | created, and has not ended | `complete` |
 * | `complete` | its own event is stored, such as `llm.call`: at its end, or at that of its run | |
 */
type Phase = 'updated' | 'open' | 'complete'

/** What is known of an observation. */
export interface ObservationState {
  readonly observationId: string
  /** Released if the values are stored, and read again for a later update. */
  readonly merged: Merged
  readonly phase: Phase
}

/** @param before the phase before the last events; undefined for an observation that was not known */
export function phaseOf(merged: Merged, before: Phase | undefined): Phase {
  if (before === 'complete') return before
  if (!merged.isCreated) return 'updated'
  return endedAtOf(merged) === null ? 'open' : 'complete'
}

/** Ids of events from the future that are remembered for a run. */
const FUTURE_EVENTS_MAX = 1_000
const RUN_BYTES = 1_000
/** What an entry takes apart from its merged state: ids and map entries. */
const ENTRY_BYTES = 300

const MIB = 1024 * 1024
const BYTES_MAX = 64 * MIB
/** A larger run is forgotten, and read again when something of it is needed. */
const RUN_BYTES_MAX = 16 * MIB

/** What this process knows of the observations of a run. */
export class RunState {
  private readonly observations = new Map<string, ObservationState>()
  /** The tasks of those that are open. */
  private readonly openTasks = new Set<string>()
  /** Events with a timestamp in the future, which count as sent when they arrived; a repeat arrives later. */
  private readonly future = new Set<string>()
  trace: Merged | null = null
  hasEnded = false
  /** Whether the stores were told of a root observation, whose name and input the run may have. */
  isRootReported = false
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
    const isLarge = this.bytes + sizeOf(observed) - before > RUN_BYTES_MAX
    const state = isLarge ? { ...observed, merged: observed.merged.released() } : observed
    this.bytes += sizeOf(state) - before
    this.observations.set(taskId, state)
    if (state.phase === 'open') this.openTasks.add(taskId)
    else this.openTasks.delete(taskId)
  }

  setTrace(trace: Merged): void {
    this.bytes += trace.bytes - (this.trace?.bytes ?? 0)
    this.trace = trace
  }

  *open(): Generator<[string, ObservationState]> {
    for (const taskId of this.openTasks) {
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

export type RunStates = ReturnType<typeof createRunStates>

/** The states of the runs that were reported last, by run key: only a cache of what is stored. */
export function createRunStates() {
  const states = new LRUCache<string, RunState>({
    maxSize: BYTES_MAX,
    maxEntrySize: RUN_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes,
  })
  return {
    /** Takes the state of a run out: it is put back once what was merged into it is stored, and forgotten otherwise. */
    take(key: string): RunState | undefined {
      const state = states.get(key)
      states.delete(key)
      return state
    },

    put(key: string, state: RunState): void {
      states.set(key, state)
    },
  }
}
