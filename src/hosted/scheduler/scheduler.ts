import { orAborted } from '../../base/abort.ts'
import { notFound } from '../../base/errors.ts'
import { type RunIdentity, runKey } from '../../base/ids.ts'
import { Executor, type ExecutorContext } from '../executor/executor.ts'
import type { LiveOutputs, OutputLog } from '../output/output-log.ts'
import { ChangeSignals } from '../run/change-signals.ts'
import type { HostedContext } from '../run/context.ts'
import type { Children, HostedRun, RunOutcome, RunProgress } from '../run/run.ts'
import { loadProgress, readOutcome } from '../store/load.ts'
import { McpLists } from '../tools/mcp-lists.ts'
import { type Claimed, claimOrphans, claimQueued, ownedRuns, releaseAll, workspacesWithQueuedRuns } from './claims.ts'
import { Slots } from './slots.ts'

/** How often to look for what sends no signal: runs queued by other processes, runs of processes that are gone. */
const POLL_MS = 1_000
/** Pause before the next try when the rows were locked by others. */
const HELD_RETRY_MS = 10
const ORPHANS_EVERY = 3
const ORPHANS_MAX = 1_000
const STOP_MS = 2_000
const UNATTENDED_CHECKS_MAX = 5

interface Execution {
  readonly executor: Executor
  readonly run: RunIdentity
  readonly isChild: boolean
  readonly done: Promise<RunOutcome>
}

/**
 * Executes hosted runs in this process: as many as it has slots, from each workspace in turn; the others stay queued as
 * rows. A row names the process that executes its run, so that another process takes over when that one is gone.
 */
export class Scheduler implements LiveOutputs {
  /** By {@link runKey}, like `changes` and `unattended`. */
  private readonly executions = new Map<string, Execution>()
  private readonly changes = new ChangeSignals()
  private readonly slots: Slots
  private readonly context: ExecutorContext
  private stopPolling: () => Promise<void> = () => Promise.resolve()
  private polls = 0
  /** Runs that this process owns but does not execute, and how often they were seen so. */
  private unattended = new Map<string, number>()
  private dispatching: Promise<void> | undefined
  private isDispatchDue = false
  private isStopping = false

  constructor(context: HostedContext, beginChild: Children['begin']) {
    const children: Children = {
      begin: beginChild,
      stop: (runs) => {
        for (const run of runs) this.stopRun(run)
      },
      settled: (run, signal) => this.settled(run, signal),
    }
    this.context = { ...context, lists: new McpLists(context.clock), children }
    this.slots = new Slots(context.config.runsAtOnce, context.config.runsAtOncePerWorkspace)
  }

  /** Takes over the runs that earlier processes have left, and keeps polling. */
  start(): void {
    this.stopPolling = this.context.loops.repeat('hosted runs', POLL_MS, () => this.poll(), { atOnce: true })
  }

  /** Releases all runs: the next process continues them. */
  async stop(): Promise<void> {
    this.isStopping = true
    await this.stopPolling()
    await this.dispatching
    const executions = [...this.executions.values()]
    for (const { executor } of executions) executor.stop()
    await Promise.race([Promise.all(executions.map(({ done }) => done)), Bun.sleep(STOP_MS)])
    await releaseAll(this.context.sql, this.context.owner).catch((error) =>
      this.context.log.warn('hosted runs of this process could not be released; they continue after its next start', {
        error,
      }),
    )
  }

  /** Runs executed at the moment, for the metrics. */
  get count(): number {
    return this.executions.size
  }

  /** Takes a slot for a run that is about to start; false when it has to be queued. */
  takeSlot(workspaceId: string): boolean {
    return !this.isStopping && this.slots.take(workspaceId)
  }

  releaseSlot(workspaceId: string): void {
    this.slots.release(workspaceId)
  }

  /** A run has been queued. */
  queued(workspaceId: string): void {
    this.slots.enqueued(workspaceId)
    this.dispatchSoon()
  }

  /**
   * Executes a run that names this process as its owner, and has a slot unless it is a child. A run that is executed
   * already keeps its executor: the statement that began it may have returned so late that the run was taken for
   * unattended in the meantime.
   */
  execute(progress: RunProgress): Promise<RunOutcome> {
    const { run } = progress
    const { runId, workspaceId, parentCallId } = run
    const current = this.executionOf(run)
    if (current?.executor.isActive === true) {
      if (parentCallId === null) this.slots.release(workspaceId)
      return current.done
    }
    const executor = new Executor(this.context, progress)
    const done = this.supervise(executor, run)
    this.executions.set(runKey(workspaceId, runId), { executor, run, isChild: parentCallId !== null, done })
    // A child that its parent started while the parent was being stopped.
    if (this.isStopping) executor.stop()
    this.notify(run)
    return done
  }

  /**
   * Continues a run that waits for a decision: here and at once if there is a slot for it, otherwise it is queued.
   * @param decide stores the decision; resolves with whether it made `owner` the executor
   * @returns the outcome, if this process executes it; in an object, so that awaiting this does not wait for the end
   */
  async resume(
    run: RunIdentity,
    decide: (owner: string | null) => Promise<boolean>,
  ): Promise<{ readonly outcome: Promise<RunOutcome> | null }> {
    const { workspaceId } = run
    const hasSlot = this.takeSlot(workspaceId)
    let isOurs = false
    try {
      isOurs = await decide(hasSlot ? this.context.owner : null)
    } finally {
      if (hasSlot && !isOurs) this.slots.release(workspaceId)
    }
    if (!isOurs) {
      this.dispatchSoon()
      return { outcome: null }
    }
    // The executor that paused the run may still be ending.
    this.stopRun(run)
    await this.executeAll([{ ...run, isChild: false }])
    return { outcome: this.executionOf(run)?.done ?? null }
  }

  /** The output of a run, if this process executes it. */
  outputOf(run: RunIdentity): OutputLog | undefined {
    const output = this.executionOf(run)?.executor.output
    return output?.isClosed === true ? undefined : output
  }

  /** Stops executing a run that was ended elsewhere. */
  stopRun(run: RunIdentity): void {
    this.executionOf(run)?.executor.stop()
    this.notify(run)
  }

  /**
   * Resolves once the run has ended or paused.
   * @throws the signal's reason when it aborts first; ApiError NOT_FOUND when its workspace has been erased
   */
  async settled(run: RunIdentity, signal: AbortSignal): Promise<RunOutcome> {
    for (;;) {
      signal.throwIfAborted()
      const execution = this.executionOf(run)
      if (execution !== undefined) {
        const done = await orAborted(execution.done, signal)
        if (done.kind !== 'released') return done
      }
      const change = this.change(run, signal)
      const outcome = await readOutcome(this.context.sql, run)
      if (outcome === null) throw notFound('run')
      if (outcome.kind !== 'released') return outcome
      await change
    }
  }

  /** Resolves when the state of a run may have changed, or when no one has reported a change for a while. */
  change({ workspaceId, runId }: RunIdentity, signal: AbortSignal): Promise<void> {
    return this.changes.next(runKey(workspaceId, runId), signal)
  }

  /** Wakes those who wait for a {@link change} of the run. */
  notify({ workspaceId, runId }: RunIdentity): void {
    this.changes.notify(runKey(workspaceId, runId))
  }

  /** Looks for queued runs to execute. */
  dispatchSoon(): void {
    this.isDispatchDue = true
    if (this.isStopping) return
    this.dispatching ??= this.dispatch().finally(() => {
      this.dispatching = undefined
      if (this.isDispatchDue) this.dispatchSoon()
    })
  }

  private executionOf({ workspaceId, runId }: RunIdentity): Execution | undefined {
    return this.executions.get(runKey(workspaceId, runId))
  }

  private async supervise(executor: Executor, run: HostedRun): Promise<RunOutcome> {
    const outcome = await executor.run()
    // A run that was stopped may be executed again, by another executor.
    if (this.executionOf(run)?.executor === executor) this.executions.delete(runKey(run.workspaceId, run.runId))
    if (run.parentCallId === null) this.slots.release(run.workspaceId)
    this.notify(run)
    // Others may have waited for its slot or its session.
    if (this.slots.isAnyQueued || run.sessionId !== null) this.dispatchSoon()
    return outcome
  }

  private async dispatch(): Promise<void> {
    while (this.isDispatchDue && !this.isStopping) {
      this.isDispatchDue = false
      try {
        this.slots.readingQueue()
        const queue = await workspacesWithQueuedRuns(this.context.patrol)
        if (queue.length === 0) {
          this.slots.setQueue([])
          continue
        }
        const shares = this.slots.share(queue)
        const claimed = await this.claim(shares)
        this.slots.setQueue(queue)
        if (claimed.length > 0) this.context.onChange()
        await this.executeAll(claimed)
        // There are slots and queued runs, but the rows are locked for a moment, by a decision or a cancellation.
        if (claimed.length === 0 && shares.size > 0) await Bun.sleep(HELD_RETRY_MS)
        if (claimed.length > 0 || shares.size > 0) this.isDispatchDue = true
      } catch (error) {
        this.context.log.warn('queued hosted runs could not be claimed; retrying', { error })
      }
    }
  }

  /** Claims queued runs for the slots that were taken for them, and releases the slots that are left. */
  private async claim(shares: ReadonlyMap<string, number>): Promise<Claimed[]> {
    const { owner, clock } = this.context
    const left = new Map(shares)
    try {
      const claimed = await claimQueued(this.context.sql, owner, shares, clock.now())
      for (const { workspaceId, isChild } of claimed)
        if (!isChild) left.set(workspaceId, (left.get(workspaceId) ?? 0) - 1)
      return claimed
    } finally {
      for (const [workspaceId, count] of left) for (let n = 0; n < count; n++) this.slots.release(workspaceId)
    }
  }

  /** Executes runs that already name this process as their owner, whether or not there is a free slot. */
  private executeUnattended(runs: readonly Claimed[]): Promise<void> {
    for (const { workspaceId, isChild } of runs) if (!isChild) this.slots.force(workspaceId)
    return this.executeAll(runs)
  }

  /** @param claimed have their slots */
  private async executeAll(claimed: readonly Pick<Claimed, keyof RunIdentity | 'isChild'>[]): Promise<void> {
    await Promise.all(
      claimed.map(async (run) => {
        const { runId, workspaceId, isChild } = run
        const slice = this.context.slice.of(workspaceId)
        if (slice.isOver) await slice.yield()
        const progress = await loadProgress(this.context.sql, run, this.context.owner).catch((error) => {
          this.context.log.warn('a hosted run could not be read; retrying later', { workspaceId, runId, error })
          return null
        })
        if (progress !== null) void this.execute(progress)
        else if (!isChild) this.slots.release(workspaceId)
      }),
    )
  }

  private async poll(): Promise<void> {
    this.dispatchSoon()
    if (this.isStopping) return
    await this.compare()
    if (this.polls++ % ORPHANS_EVERY !== 0) return
    const { patrol, owner, ring } = this.context
    const orphans = await claimOrphans(patrol, owner, ring.gone(), ORPHANS_MAX)
    if (orphans.length > 0)
      this.context.log.info('taking over hosted runs of a process that is gone', { runs: orphans.length })
    await this.executeUnattended(orphans)
  }

  /**
   * Compares the rows with what is executed here: stops runs that belong to others, executes runs that were left
   * unattended.
   */
  private async compare(): Promise<void> {
    const before = [...this.executions]
    const ours = await ownedRuns(this.context.patrol, this.context.owner)
    const unattended = new Map(ours.map((run) => [runKey(run.workspaceId, run.runId), run]))
    // A run that was stopped in the meantime may have been claimed again.
    for (const [key, execution] of before)
      if (!unattended.has(key) && this.executions.get(key) === execution) this.stopRun(execution.run)
    for (const key of unattended.keys()) if (this.executions.has(key)) unattended.delete(key)
    // A run seen here for the first time may just be starting; one that is seen repeatedly is left to the next process.
    const seen = new Map([...unattended.keys()].map((key) => [key, (this.unattended.get(key) ?? 0) + 1]))
    for (const [key, times] of this.unattended) if (!seen.has(key) && this.executions.has(key)) seen.set(key, times)
    this.unattended = seen
    const due = [...unattended].filter(
      ([key]) => (seen.get(key) ?? 0) > 1 && (seen.get(key) ?? 0) <= UNATTENDED_CHECKS_MAX,
    )
    await this.executeUnattended(due.map(([, run]) => run))
  }
}
