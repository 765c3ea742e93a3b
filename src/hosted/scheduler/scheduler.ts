import { orAborted } from '../../abort.ts'
import { ApiError } from '../../http/errors.ts'
import { type RunIdentity, runKey } from '../../ids.ts'
import type { Log } from '../../log.ts'
import { Loops } from '../../ops/supervise.ts'
import type { Sql } from '../../postgres/connect.ts'
import type { Children } from '../executor/call-maker.ts'
import { Executor, type ExecutorDeps } from '../executor/executor.ts'
import type { OutputLog } from '../output/output-log.ts'
import { loadProgress } from '../store/load.ts'
import { readOutcome } from '../store/outcome.ts'
import type { HostedRun, RunOutcome, RunProgress } from '../store/rows.ts'
import { systemEvent } from '../store/system-event.ts'
import { ChangeSignals } from './changes.ts'
import { type Claimed, claimOrphans, claimQueued, ownedRuns, releaseAll, workspacesWithQueuedRuns } from './claims.ts'
import { Slots } from './slots.ts'

export interface SchedulerDeps extends Omit<ExecutorDeps, 'children'> {
  readonly children: Pick<Children, 'begin'>
  /** One connection for what is looked for every second. */
  readonly patrol: Sql
  /** Runs that this process drives at once; children ride along. */
  readonly runsAtOnce: number
  readonly runsAtOncePerWorkspace: number
  /** Where the scheduler is supervised together with others. */
  readonly loops?: Loops | undefined
}

/** How often what no signal tells is looked for: runs queued by other processes, runs of processes that are gone. */
const POLL_MS = 1_000
/** After rows were passed over because somebody held them. */
const HELD_RETRY_MS = 10
const ORPHANS_EVERY = 3
const ORPHANS_MAX = 1_000
const STOP_MS = 2_000
const STRAYS_MAX = 5

interface Driven {
  readonly executor: Executor
  readonly run: RunIdentity
  readonly isChild: boolean
  readonly done: Promise<RunOutcome>
}

/**
 * The hosted runs that this process drives. It takes as many as it has slots, from each workspace in turn; the others
 * wait as rows. What a process drives is noted in the rows, so that another one takes over when it is gone.
 */
export class Scheduler {
  /** By {@link runKey}, like `changes` and `strays`. */
  private readonly driven = new Map<string, Driven>()
  private readonly changes = new ChangeSignals()
  private readonly slots: Slots
  private readonly sql: Sql
  private readonly log: Log
  private stopPolling: () => Promise<void> = () => Promise.resolve()
  private polls = 0
  /** Runs of ours that nobody drives, and how often they were seen so. */
  private strays = new Map<string, number>()
  private dispatching: Promise<void> | undefined
  private isPoked = false
  private isStopping = false

  constructor(private readonly deps: SchedulerDeps) {
    this.sql = deps.sql
    this.log = deps.log
    this.slots = new Slots(deps.runsAtOnce, deps.runsAtOncePerWorkspace)
  }

  /** Takes up what earlier processes have left, and goes on looking. */
  start(): void {
    const { loops = new Loops(this.log) } = this.deps
    this.stopPolling = loops.repeat('hosted runs', POLL_MS, () => this.poll(), { atOnce: true })
  }

  /** Lets go of all runs: the next process goes on with them. */
  async stop(): Promise<void> {
    this.isStopping = true
    await this.stopPolling()
    await this.dispatching
    const driven = [...this.driven.values()]
    for (const { executor } of driven) executor.drop()
    await Promise.race([Promise.all(driven.map(({ done }) => done)), Bun.sleep(STOP_MS)])
    await releaseAll(this.sql, this.deps.owner).catch((error) =>
      this.log.warn('hosted runs are taken up after the next start only', { error }),
    )
  }

  /** Runs driven at the moment, for the metrics. */
  get count(): number {
    return this.driven.size
  }

  /** A place for a run that is about to begin; false when it has to wait in line. */
  takeSlot(workspaceId: string): boolean {
    return !this.isStopping && this.slots.take(workspaceId)
  }

  releaseSlot(workspaceId: string): void {
    this.slots.give(workspaceId)
  }

  /** A run was put in line. */
  queued(workspaceId: string): void {
    this.slots.inLine(workspaceId)
    this.poke()
  }

  /** Drives a run that names this process as its owner, and has a place unless it is a child. */
  adopt(progress: RunProgress): Promise<RunOutcome> {
    const { run } = progress
    const { runId, workspaceId, parentCallId } = run
    const executor = new Executor({ ...this.deps, children: this.children }, progress)
    const done = this.drive(executor, run)
    this.driven.set(runKey(workspaceId, runId), { executor, run, isChild: parentCallId !== null, done })
    // A child that its parent has result while that was let go of.
    if (this.isStopping) executor.drop()
    this.tell(run)
    return done
  }

  /** What a run puts out, if this process drives it. */
  outputOf(run: RunIdentity): OutputLog | undefined {
    const output = this.drivenRun(run)?.executor.output
    return output?.isClosed === true ? undefined : output
  }

  /** Lets go of a run that somebody else has ended. */
  drop(run: RunIdentity): void {
    this.drivenRun(run)?.executor.drop()
    this.tell(run)
  }

  /**
   * Resolves once the run is over or paused.
   * @throws the signal's reason when it aborts before; ApiError NOT_FOUND when its workspace has been erased
   */
  async settled(run: RunIdentity, signal: AbortSignal): Promise<RunOutcome> {
    for (;;) {
      signal.throwIfAborted()
      const driven = this.drivenRun(run)
      if (driven !== undefined) {
        const done = await orAborted(driven.done, signal)
        if (done.kind !== 'left') return done
      }
      const change = this.change(run, signal)
      const outcome = await readOutcome(this.sql, run)
      if (outcome === null) throw new ApiError('NOT_FOUND', 'run does not exist')
      if (outcome.kind !== 'left') return outcome
      await change
    }
  }

  /** Resolves when something may have changed about a run: it is taken up, let go of, or nobody has said so for a while. */
  change({ workspaceId, runId }: RunIdentity, signal: AbortSignal): Promise<void> {
    return this.changes.next(runKey(workspaceId, runId), signal)
  }

  /** Looks for runs to drive. */
  poke(): void {
    this.isPoked = true
    if (this.isStopping) return
    this.dispatching ??= this.dispatch().finally(() => {
      this.dispatching = undefined
      if (this.isPoked) this.poke()
    })
  }

  private readonly children: Children = {
    begin: (...call) => this.deps.children.begin(...call),
    drop: (runs) => {
      for (const run of runs) this.drop(run)
    },
    settled: (run, signal) => this.settled(run, signal),
  }

  private drivenRun({ workspaceId, runId }: RunIdentity): Driven | undefined {
    return this.driven.get(runKey(workspaceId, runId))
  }

  private tell({ workspaceId, runId }: RunIdentity): void {
    this.changes.tell(runKey(workspaceId, runId))
  }

  private async drive(executor: Executor, run: HostedRun): Promise<RunOutcome> {
    const outcome = await executor.drive()
    this.driven.delete(runKey(run.workspaceId, run.runId))
    if (run.parentCallId === null) this.slots.give(run.workspaceId)
    this.tell(run)
    // Whoever has waited for its place or its turn.
    if (this.slots.isAnyInLine || run.sessionId !== null) this.poke()
    return outcome
  }

  private async dispatch(): Promise<void> {
    while (this.isPoked && !this.isStopping) {
      this.isPoked = false
      try {
        const line = await workspacesWithQueuedRuns(this.deps.patrol)
        if (line.length === 0) {
          this.slots.line([])
          continue
        }
        const shares = this.slots.share(line)
        const claimed = await this.claim(shares)
        this.slots.line(line)
        if (claimed.length > 0) this.deps.onChange()
        await this.takeUp(claimed)
        // There are slots and there are runs: somebody holds the rows for a moment, to decide or to cancel.
        if (claimed.length === 0 && shares.size > 0) await Bun.sleep(HELD_RETRY_MS)
        if (claimed.length > 0 || shares.size > 0) this.isPoked = true
      } catch (error) {
        this.log.warn('hosted runs in line could not be taken up; they are tried again', { error })
      }
    }
  }

  /** Takes runs in line for the slots that have been taken for them, and gives back those that are left. */
  private async claim(shares: ReadonlyMap<string, number>): Promise<Claimed[]> {
    const { owner, clock } = this.deps
    const at = clock.now()
    const left = new Map(shares)
    try {
      const claimed = await claimQueued(this.sql, owner, shares, at, (run) => [systemEvent(run, at, 'run.started', {})])
      for (const { workspaceId, isChild } of claimed)
        if (!isChild) left.set(workspaceId, (left.get(workspaceId) ?? 0) - 1)
      return claimed
    } finally {
      for (const [workspaceId, count] of left) for (let n = 0; n < count; n++) this.slots.give(workspaceId)
    }
  }

  /** Drives runs that name this process as their owner, in any case: they need not wait for a place. */
  private takeUpStrays(runs: readonly Claimed[]): Promise<void> {
    for (const { workspaceId, isChild } of runs) if (!isChild) this.slots.force(workspaceId)
    return this.takeUp(runs)
  }

  /** @param claimed have their slots */
  private async takeUp(claimed: readonly Claimed[]): Promise<void> {
    await Promise.all(
      claimed.map(async (run) => {
        const { runId, workspaceId, isChild } = run
        const progress = await loadProgress(this.sql, run).catch((error) => {
          this.log.warn('a hosted run could not be read; it is taken up later', { workspaceId, runId, error })
          return null
        })
        if (progress !== null) void this.adopt(progress)
        else if (!isChild) this.slots.give(workspaceId)
      }),
    )
  }

  private async poll(): Promise<void> {
    this.poke()
    if (this.isStopping) return
    await this.compare()
    if (this.polls++ % ORPHANS_EVERY !== 0) return
    const orphans = await claimOrphans(this.deps.patrol, this.deps.owner, ORPHANS_MAX)
    if (orphans.length > 0) this.log.info('taking up hosted runs of a process that is gone', { runs: orphans.length })
    await this.takeUpStrays(orphans)
  }

  /** Our runs by the rows: drops those that are not ours any more, takes up those that nobody drives after all. */
  private async compare(): Promise<void> {
    const before = [...this.driven]
    const ours = await ownedRuns(this.deps.patrol, this.deps.owner)
    const strays = new Map(ours.map((run) => [runKey(run.workspaceId, run.runId), run]))
    // One that was let go of meanwhile may have been taken up anew.
    for (const [key, driven] of before) if (!strays.has(key) && this.driven.get(key) === driven) this.drop(driven.run)
    for (const key of strays.keys()) if (this.driven.has(key)) strays.delete(key)
    // At the first sight it may just be beginning; a run that strays again and again is left to the next process.
    const seen = new Map([...strays.keys()].map((key) => [key, (this.strays.get(key) ?? 0) + 1]))
    for (const [key, times] of this.strays) if (!seen.has(key) && this.driven.has(key)) seen.set(key, times)
    this.strays = seen
    const due = [...strays].filter(([key]) => (seen.get(key) ?? 0) > 1 && (seen.get(key) ?? 0) <= STRAYS_MAX)
    await this.takeUpStrays(due.map(([, run]) => run))
  }
}
