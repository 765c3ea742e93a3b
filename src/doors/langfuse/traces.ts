import type { RunDirectory } from '../../activity/runs/directory.ts'
import type { Slice } from '../../base/http/shared-slice.ts'
import { type RunRef, runKey } from '../../base/ids.ts'
import type { KeyedMutex } from '../../base/keyed-mutex.ts'
import type { Limits } from '../../base/limits.ts'
import type { Batcher } from '../../stores/postgres/batcher.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { writerOf } from '../../tenants/partitions/partition.ts'
import { addTo } from '../traces/groups.ts'
import { partRunId, traceRunId } from '../traces/ids.ts'
import type { TraceRuns } from '../traces/runs.ts'
import type { BatchScan } from './batch-scan.ts'
import { ByteBudget } from './byte-budget.ts'
import { INPUT, NAME, OUTPUT, PARENT, START, TIMESTAMP } from './fields.ts'
import { observationTaskIds } from './ids.ts'
import { timeIn } from './json-objects.ts'
import { Merged } from './merged.ts'
import { endsRun, isModelCall, isRoot, textIn, timeOf } from './observation.ts'
import { type Portion, portionsOf, writtenBytes } from './portions.ts'
import { contentOf, detailsOf, endOf, type RunContext } from './run-details.ts'
import { createRunStates, type ObservationState, RunState, type RunStates } from './states.ts'
import type { StoredStates } from './stored-states.ts'
import type { TraceChange } from './trace-changes.ts'
import { TraceHeads } from './trace-heads.ts'
import { chargeBytes, TraceWriter, type TraceWriterDeps } from './trace-writer.ts'
import { eventIdOf, type ObservationEvent, type TraceItem } from './validate.ts'

interface LangfuseTracesDeps extends TraceWriterDeps {
  readonly directory: RunDirectory
  readonly runs: TraceRuns
  readonly changes: Batcher<TraceChange, boolean>
  readonly stored: StoredStates
  /** Held while something of a run is written, with the key of the run of its trace. Shared by all doors. */
  readonly withRunLock: KeyedMutex
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
}

/** The events of a batch about one trace, in order. */
interface TraceEvents {
  readonly traceId: string
  readonly items: readonly TraceItem[]
  readonly scan: BatchScan
  readonly slice: Slice
  /** Until when the beginning of a trace is waited for, on the clock of `performance.now()`. */
  readonly headBy: number
}

/** For states that are read again, of all runs together: for batches, and for runs that end. */
const LOADED_BYTES_MAX = 64 * 1024 * 1024
const FINISHED_BYTES_MAX = 32 * 1024 * 1024
/** What a byte that is stored takes while it is read: the answer, its text, the state and what is written again. */
const COPIES = 4

/** Where the events of a trace go. */
interface Target {
  /** Null for a run that is not stored yet. */
  readonly run: RunRef | null
  readonly runId: string
}

interface Storing {
  readonly target: Target
  readonly state: RunState
  readonly isKnown: boolean
}

interface Written {
  readonly run: RunRef
  readonly state: RunState
  readonly writer: TraceWriter
}

/** Stores the events of traces: merges them into the states of their observations, and writes what has changed. */
export class LangfuseTraces {
  /** By the writer of a partition: the states of one that was lost are not used again. */
  private readonly states = new WeakMap<object, RunStates>()
  private readonly heads = new TraceHeads()
  private readonly loading = new ByteBudget(LOADED_BYTES_MAX)
  /** Apart from {@link loading}, because a batch takes of it while it has some of that. */
  private readonly finishing = new ByteBudget(FINISHED_BYTES_MAX)

  constructor(private readonly deps: LangfuseTracesDeps) {}

  /** @throws ApiError; after UNAVAILABLE and RATE_LIMITED nothing is lost if the events are sent again */
  async store(caller: Caller, events: TraceEvents): Promise<void> {
    const { traceId, headBy } = events
    const key = runKey(caller.workspaceId, traceRunId(caller.workspaceId, traceId))
    if (hasHead(events)) return this.heads.arrive(key, () => this.storeInTurn(key, caller, events))
    const isUnknown = caller.agentId === null && (await this.target(caller, traceId)).run === null
    if (isUnknown) await this.heads.wait(key, headBy - performance.now())
    return this.storeInTurn(key, caller, events)
  }

  private storeInTurn(turn: string, caller: Caller, events: TraceEvents): Promise<void> {
    return this.deps.withRunLock(turn, async () => {
      if (events.slice.isOver) await events.slice.yield()
      const target = await this.target(caller, events.traceId)
      const writer = writerOf(this.deps.partitions, caller)
      let states = this.states.get(writer)
      if (states === undefined) {
        states = createRunStates()
        this.states.set(writer, states)
      }
      const key = runKey(caller.workspaceId, target.runId)
      // Taken out: after a failure it is not known what was stored.
      const known = states.take(key)
      const state = known ?? new RunState(target.run === null)
      const run = await this.storeIn(caller, { target, state, isKnown: known !== undefined }, events)
      if (run.runId === target.runId) return states.put(key, state)
      // Another agent has begun the trace meanwhile: this is a run of its own, of which nothing is known yet.
      const own = { target: { run, runId: run.runId }, state: new RunState(false), isKnown: false }
      await this.storeIn(caller, own, events)
    })
  }

  /** The run of a trace, which is begun if it is not known yet: its score may arrive first. */
  async runOf(caller: Caller, traceId: string): Promise<RunRef> {
    const { run } = await this.target(caller, traceId)
    if (run !== null) return run
    const { limits, clock, runs } = this.deps
    const context = { limits, startedAt: clock.now(), rootName: null, rootInput: null }
    const named = { runId: traceRunId(caller.workspaceId, traceId), externalRunId: traceId, parentRunId: null }
    return runs.report(caller, named, detailsOf(null, context))
  }

  private async target(caller: Caller, traceId: string): Promise<Target> {
    const { directory } = this.deps
    const { workspaceId } = caller
    const runId = traceRunId(workspaceId, traceId)
    const run = await directory.find(workspaceId, runId)
    if (run === null || caller.agentId === null || caller.agentId === run.agentId) return { run, runId }
    const partId = partRunId(workspaceId, traceId, caller.agentId)
    return { run: await directory.find(workspaceId, partId), runId: partId }
  }

  private async storeIn(caller: Caller, storing: Storing, events: TraceEvents): Promise<RunRef> {
    const { state } = storing
    const { traceId, items, scan, slice } = events
    const taskIdOf = observationTaskIds(caller.workspaceId, traceId)
    const future = items.filter(({ isInFuture, index }) => isInFuture && state.isKnownFuture(eventIdOf(scan, index)))
    const repeats = new Set(future)
    const byTask = new Map<string, ObservationEvent[]>()
    for (const item of items) {
      if (item.of === 'observation' && !repeats.has(item)) addTo(byTask, taskIdOf(item.observationId), item)
      if (slice.isOver) await slice.yield()
    }
    const { traceBytes, sizes } = await this.find(caller, storing, byTask, scan)
    const portions = [...portionsOf([...byTask.keys()], sizes)]
    const bytes = traceBytes + portions.reduce((most, portion) => Math.max(most, portion.bytes), 0)
    const release = bytes === 0 ? () => {} : await this.loading.take(caller.workspaceId, bytes * COPIES)
    try {
      if (traceBytes > 0) await this.loadTrace(caller, storing, traceBytes)
      const trace = await this.mergeTrace(state, events, repeats)
      const run = await this.report(caller, { ...storing, trace }, events)
      if (run.runId !== storing.target.runId) return run
      const context = { caller, run, state, traceId, taskIdOf, scan, slice }
      const writer = new TraceWriter(this.deps, context, writtenBytes(scan, items))
      const written = { run, state, writer }
      if (trace !== null) writer.addTrace(trace)
      let root: Merged | null = null
      for (const portion of portions) {
        const later = await this.storePortion(caller, written, { portion, byTask, sizes, slice })
        root = later ?? root
      }
      await writer.flush()
      if (trace !== null) state.setTrace(trace.owned())
      for (const { isInFuture, index } of items) if (isInFuture) state.addFuture(eventIdOf(scan, index))
      await this.end(caller, written, { root, hasOutput: trace?.has(OUTPUT) === true, slice })
      return run
    } finally {
      release()
    }
  }

  /** What is stored of the observations that have to be read again, and of a trace that is not known. */
  private async find(
    caller: Caller,
    { target, state, isKnown }: Storing,
    byTask: ReadonlyMap<string, readonly ObservationEvent[]>,
    scan: BatchScan,
  ): Promise<{ readonly traceBytes: number; readonly sizes: ReadonlyMap<string, number> }> {
    const nothing = { traceBytes: 0, sizes: new Map<string, number>() }
    if (target.run === null) return nothing
    const wanted = [...byTask].flatMap(([taskId, events]) => {
      const known = state.get(taskId)
      // Of a run that began here, what is not known is not stored.
      return (known !== undefined || !state.isWhole) && needsLoad(known, events, scan) ? [taskId] : []
    })
    if (wanted.length === 0 && isKnown) return nothing
    const { trace, traceBytes, sizes } = await this.deps.stored.find(caller, target.run, wanted)
    if (isKnown) return { traceBytes: 0, sizes }
    if (trace !== null) state.setTrace(trace)
    return { traceBytes, sizes }
  }

  /** The state of a large trace. @throws ApiError RATE_LIMITED */
  private async loadTrace(caller: Caller, { target, state }: Storing, bytes: number): Promise<void> {
    if (target.run === null) return
    chargeBytes(this.deps, caller, bytes)
    const trace = await this.deps.stored.trace(caller, target.run)
    if (trace !== null) state.setTrace(trace)
  }

  /** @returns the last root observation that has ended */
  private async storePortion(
    caller: Caller,
    { run, state, writer }: Written,
    {
      portion,
      byTask,
      sizes,
      slice,
    }: {
      portion: Portion
      byTask: ReadonlyMap<string, readonly ObservationEvent[]>
      sizes: ReadonlyMap<string, number>
      slice: Slice
    },
  ): Promise<Merged | null> {
    const toLoad = portion.taskIds.filter((taskId) => sizes.has(taskId))
    chargeBytes(this.deps, caller, portion.bytes)
    const loaded =
      toLoad.length === 0 ? undefined : await this.deps.stored.load(caller, { run, taskIds: toLoad }, slice)
    let root: Merged | null = null
    for (const taskId of portion.taskIds) {
      const known = state.get(taskId)
      const before = loaded?.get(taskId) ?? known
      if (before === known && known !== undefined) chargeBytes(this.deps, caller, known.merged.bytes)
      const later = await writer.merge(taskId, before, byTask.get(taskId) ?? [])
      if (later !== null && endsRun(later)) root = later
    }
    // Before the memory for them is used again.
    if (loaded !== undefined) await writer.flush()
    return root
  }

  private async mergeTrace(
    state: RunState,
    { items, scan, slice }: TraceEvents,
    repeats: ReadonlySet<TraceItem>,
  ): Promise<Merged | null> {
    let draft: Merged | null = null
    for (const item of items) {
      if (slice.isOver) await slice.yield()
      if (item.of !== 'trace' || repeats.has(item)) continue
      draft ??= state.trace === null ? new Merged(null, scan.text) : state.trace.draft(scan.text)
      draft.isCreated = true
      draft.merge(scan, item.index, item.sentAt)
    }
    draft?.settle()
    return draft?.isChanged === true || (draft !== null && state.trace === null) ? draft : null
  }

  /** Says to the stores what is new about the run. */
  private async report(
    caller: Caller,
    { target, state, trace, isKnown }: Storing & { readonly trace: Merged | null },
    { traceId, items, scan }: TraceEvents,
  ): Promise<RunRef> {
    const { runs, limits, clock, changes, onChange } = this.deps
    const context = contextOf(scan, items, trace, limits, clock.now())
    const isNews = trace !== null || context.startedAt < state.startedAt || (context.hasRoot && !state.isRootReported)
    if (target.run !== null && isKnown && !isNews) return target.run
    const details = detailsOf(trace ?? state.trace, context)
    const named = { runId: traceRunId(caller.workspaceId, traceId), externalRunId: traceId, parentRunId: null }
    const run = await runs.report(caller, named, details)
    if (run.runId !== target.runId) return run
    state.startedAt = Math.min(state.startedAt, context.startedAt)
    state.isRootReported ||= context.hasRoot
    if (trace !== null && target.run !== null) {
      const { externalUserId, sessionId, tags, metadata } = details
      const change = { externalUserId, sessionId, tags, metadata, runId: run.runId, workspaceId: run.workspaceId }
      const input = contentOf(trace, INPUT, limits.run_input_bytes)
      const output = contentOf(trace, OUTPUT, limits.run_output_bytes)
      if (await changes.submit({ ...change, input, output })) onChange()
    }
    return run
  }

  /** Ends the run once a root observation has ended and none that is known is open, or the trace has an output. */
  private async end(
    caller: Caller,
    written: Written,
    { root, hasOutput, slice }: { root: Merged | null; hasOutput: boolean; slice: Slice },
  ): Promise<void> {
    const { runs, clock, limits, stored } = this.deps
    const { run, state } = written
    // Usage that arrives after the end is counted at once; whether a run that is read again has ended is asked only then.
    if (!state.hasEnded && !state.isWhole && root === null && [...counted(state)].length > 0)
      state.hasEnded = await stored.hasEnded(run)
    if (state.hasEnded) return this.finishCounted(caller, written, clock.now(), slice)
    if (root === null && !hasOutput) return
    if (!state.isWhole) {
      const open = (await stored.unfinished(caller, run)).filter((taskId) => state.get(taskId) === undefined)
      for await (const loaded of this.loaded(caller, run, open, slice)) {
        for (const [taskId, observation] of loaded) state.set(taskId, observation)
      }
    }
    for (const [, { merged }] of state.open()) if (root === null || isRoot(merged)) return
    const how = endOf(state.trace, root, clock.now(), limits)
    await this.finishCounted(caller, written, how.at, slice)
    await runs.end(run, how)
    state.hasEnded = true
  }

  /** Completes generations that have usage but no end, because their run has ended. */
  private async finishCounted(
    caller: Caller,
    { run, state, writer }: Written,
    endedAt: number,
    slice: Slice,
  ): Promise<void> {
    const toLoad: string[] = []
    for (const [taskId, observation] of [...counted(state)]) {
      if (observation.merged.isReleased) toLoad.push(taskId)
      else await writer.finish(taskId, observation, endedAt)
    }
    for await (const loaded of this.loaded(caller, run, toLoad, slice)) {
      for (const [taskId, observation] of loaded) await writer.finish(taskId, observation, endedAt)
      await writer.flush()
    }
    await writer.flush()
  }

  /** Reads observations again, some at a time. */
  private async *loaded(caller: Caller, run: RunRef, taskIds: readonly string[], slice: Slice) {
    if (taskIds.length === 0) return
    const { sizes } = await this.deps.stored.find(caller, run, taskIds)
    for (const portion of portionsOf(taskIds, sizes)) {
      const release = await this.finishing.take(caller.workspaceId, portion.bytes * COPIES)
      try {
        yield await this.deps.stored.load(caller, { run, taskIds: portion.taskIds }, slice)
      } finally {
        release()
      }
    }
  }
}

/** The generations that have usage, and are counted when they or their run end. */
function* counted(state: RunState): Generator<[string, ObservationState]> {
  for (const each of state.open()) {
    const [, { merged }] = each
    if (isModelCall(merged) && merged.hasUsage) yield each
  }
}

/** Whether the events say how their trace begins: what names its agent. */
function hasHead({ items, scan }: TraceEvents): boolean {
  return items.some((item) => item.of === 'trace' || (item.isCreate && hasNoParent(scan, item)))
}

function hasNoParent(scan: BatchScan, { index }: ObservationEvent): boolean {
  return scan.start(scan.member(index, PARENT)) === 0
}

/** Whether an observation has to be read again before the events can be merged into it. */
function needsLoad(known: ObservationState | undefined, events: readonly ObservationEvent[], scan: BatchScan): boolean {
  if (known === undefined) return true
  return known.merged.isReleased && events.some(({ index, sentAt }) => !known.merged.isOutdated(scan, index, sentAt))
}

/** What the events of a batch say about their run. */
function contextOf(
  scan: BatchScan,
  items: readonly TraceItem[],
  trace: Merged | null,
  limits: Limits,
  now: number,
): RunContext & { readonly hasRoot: boolean } {
  let startedAt = (trace === null ? null : timeOf(trace, TIMESTAMP)) ?? Number.POSITIVE_INFINITY
  let root: Merged | null = null
  for (const item of items) {
    if (item.of !== 'observation') continue
    const start = scan.range(scan.member(item.index, START))
    const started = start && timeIn(start)
    if (started !== null && started < startedAt) startedAt = started
    if (root === null && item.isCreate && hasNoParent(scan, item)) {
      root = new Merged(null, scan.text)
      root.merge(scan, item.index, item.sentAt)
    }
  }
  return {
    limits,
    startedAt: startedAt === Number.POSITIVE_INFINITY ? now : startedAt,
    rootName: root === null ? null : textIn(root, NAME, limits.task_name_length),
    rootInput: root === null ? null : contentOf(root, INPUT, limits.run_input_bytes),
    hasRoot: root !== null,
  }
}
