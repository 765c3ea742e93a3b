import { type RunIdentity, runKey } from '../../base/ids.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Peers } from '../../tenants/partitions/shared/peers.ts'
import type { HostedContext } from '../run/context.ts'
import { applyChange, copyPath, linesOf } from './output-copy.ts'
import { OutputLog } from './output-log.ts'

export interface FollowedOutputsDeps extends Pick<HostedContext, 'owner' | 'connections' | 'log' | 'loops'> {
  readonly peers: Pick<Peers, 'get'>
  /** The processes that execute these runs at present, by {@link runKey}; called every second. */
  readonly executorsOf: (runs: readonly RunIdentity[]) => Promise<ReadonlyMap<string, string>>
  /** Runs followed at once. The clients of any others get the text when the run ends or pauses. */
  readonly runsMax: number
  /** Called when the output of a run can be read here. */
  readonly onAvailable: (run: RunIdentity) => void
  readonly times?: Partial<FollowTimes>
}

/** Milliseconds. */
interface FollowTimes {
  /** An executor that sends nothing for this long, not even heartbeats, cannot be reached. */
  readonly silenceMs: number
  /** How long a copy without readers is kept. */
  readonly idleMs: number
  /** How long a process that could not be reached is left alone. */
  readonly avoidMs: number
}

const TIMES: FollowTimes = { silenceMs: 10_000, idleMs: 3_000, avoidMs: 3_000 }
const CHECK_MS = 1_000

/** The output of a run that another process executes, as far as it has arrived. */
class Copy {
  readonly output: OutputLog
  readonly gone = new AbortController()
  isAvailable = false
  /** On the monotonic clock, like `readMs`. */
  heardMs = performance.now()
  readMs = performance.now()

  constructor(
    readonly run: RunIdentity,
    readonly executor: string,
  ) {
    this.output = new OutputLog(run.runId)
  }
}

/**
 * Copies of the outputs of runs that other processes execute, for the streams of this process's clients: one connection to
 * the executor for each run, however many clients read it (docs/architecture.md#several-nodes).
 *
 * A copy ends with its connection, or when the row of the run names another executor. Its readers then look at the rows,
 * which say how the run has ended or who continues it, and resume at their positions. While an executor cannot be
 * reached they only look at the rows: they get the text when the run ends or pauses.
 */
export class FollowedOutputs {
  /** By {@link runKey}. */
  private readonly copies = new Map<string, Copy>()
  /** Processes that could not be reached, and until when they are left alone, on the monotonic clock. */
  private readonly avoided = new Map<string, number>()
  private readonly times: FollowTimes
  private readonly endChecks: () => Promise<void>

  constructor(private readonly deps: FollowedOutputsDeps) {
    this.times = { ...TIMES, ...deps.times }
    this.endChecks = deps.loops.repeat('outputs of other processes', CHECK_MS, () => this.check())
  }

  /** The output of a run that is being followed. */
  outputOf({ workspaceId, runId }: RunIdentity): OutputLog | undefined {
    const copy = this.copies.get(runKey(workspaceId, runId))
    return copy?.isAvailable === true && !copy.output.isClosed ? copy.output : undefined
  }

  /**
   * Begins to follow a run, unless that is impossible at the moment. Never throws or waits: `onAvailable` is called once it has
   * succeeded, and this may be called again at any time.
   *
   * @param executor the process that executes it
   * @param caller who reads it
   */
  follow(run: RunIdentity, executor: string, caller: Caller): void {
    const { owner, runsMax, connections } = this.deps
    const key = runKey(run.workspaceId, run.runId)
    if (executor === owner || this.copies.has(key) || this.copies.size >= runsMax || this.isAvoided(executor)) return
    const room = connections.reserveForPeer()
    if (room === null) return
    const copy = new Copy(run, executor)
    this.copies.set(key, copy)
    void this.receive(copy, caller).finally(() => {
      room.release()
      this.copies.delete(key)
      copy.output.close({ kind: 'released', status: 'running' }, null)
    })
  }

  async stop(): Promise<void> {
    await this.endChecks()
    for (const { gone } of this.copies.values()) gone.abort()
  }

  private async receive(copy: Copy, caller: Caller): Promise<void> {
    const { peers, onAvailable, log } = this.deps
    const { run, executor, gone, output } = copy
    try {
      const response = await peers.get(executor, copyPath(run.runId), caller, gone.signal)
      // It has just ended or moved: the rows have its state.
      if (response?.ok !== true) return void (await response?.body?.cancel())
      if (response.body === null) return
      copy.isAvailable = true
      onAvailable(run)
      const onData = () => {
        copy.heardMs = performance.now()
      }
      for await (const line of linesOf(response.body, onData)) applyChange(output, line)
    } catch (error) {
      if (gone.signal.aborted) return
      log.info('the output of a hosted run cannot be followed; trying again', { ...run, executor, error })
      this.avoid(executor)
    }
  }

  /** Ends the copies without readers, and those whose executor is silent, or whose run has moved on. */
  private async check(): Promise<void> {
    const copies = [...this.copies.values()]
    if (copies.length === 0) return
    const now = performance.now()
    const { idleMs, silenceMs } = this.times
    for (const copy of copies) {
      const { output, executor, gone, heardMs, readMs, isAvailable } = copy
      if (output.isFollowed || !isAvailable) copy.readMs = now
      else if (now - readMs > idleMs) gone.abort()
      if (now - heardMs > silenceMs) {
        this.avoid(executor)
        gone.abort()
      }
    }
    const executors = await this.deps.executorsOf(copies.map(({ run }) => run))
    for (const { run, executor, gone } of copies)
      if (executors.get(runKey(run.workspaceId, run.runId)) !== executor) gone.abort()
  }

  private avoid(executor: string): void {
    this.avoided.set(executor, performance.now() + this.times.avoidMs)
  }

  private isAvoided(executor: string): boolean {
    const untilMs = this.avoided.get(executor)
    if (untilMs === undefined) return false
    if (performance.now() < untilMs) return true
    this.avoided.delete(executor)
    return false
  }
}
