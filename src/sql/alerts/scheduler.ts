import type { Clock } from '../../base/clock.ts'
import { ApiError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { type Loop, Loops } from '../../base/loops.ts'
import { Wakeup } from '../../base/wakeup.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { OwnedPartition, Partitions } from '../../tenants/partitions/partition.ts'
import type { Analytics } from '../analytics/analytics.ts'
import { Barriers } from './barriers.ts'
import { evaluatedOf, ruleOf } from './definition.ts'
import { evaluate } from './evaluation.ts'
import { advance } from './machine.ts'
import { bringBack, type DueAlert, nextTick, readDue, type StoredAlert, storeTick } from './rows.ts'
import { fromStored } from './states.ts'
import type { AlertStore } from './store.ts'

interface AlertSchedulerDeps {
  readonly sql: Sql
  readonly store: Pick<AlertStore, 'load' | 'queryOf'>
  readonly analytics: Pick<Analytics, 'asOf'>
  readonly partitions: Pick<Partitions, 'owned'>
  readonly clock: Clock
  readonly log: Log
  /** Supervises the scheduler. */
  readonly loops?: Loops
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
  /** Milliseconds of a second; tests take fewer. */
  readonly secondMs: number
  /** How often due alerts are looked for. */
  readonly pollMs?: number
}

/** Evaluations at the same time. While half as many run, a workspace gets only one, so that slow queries leave room for others. */
const RUNNING_MAX = 16
const RUNNING_PER_WORKSPACE_MAX = 2
/** Ticks missed while no process was running that are evaluated later; earlier ones are skipped. */
const MISSED_TICKS_MAX = 1_440
/** An alert that could not be evaluated, for a reason other than its query, waits this long. */
const RETRY_MS = 500
/** How often alerts are looked for that a clock which was ahead has put off, in seconds. */
const AHEAD_CHECK_SECONDS = 60
/** Wakes up this long after a tick, which is past only once its millisecond is over. */
const PAST_MS = 5

/**
 * Evaluates the alerts of the partitions that this process owns, each once at each of its ticks
 * (docs/alerts.md). Missed ticks are evaluated later, in order: they see the rows of their time.
 *
 * @returns a function that stops it
 */
export function startAlertScheduler(deps: AlertSchedulerDeps): () => Promise<void> {
  const { log, loops = new Loops(log) } = deps
  const stopping = new AbortController()
  const scheduler = new AlertScheduler(deps, loops.add('evaluations of alerts'), stopping.signal)
  const finished = loops.run('alerts', stopping.signal, (loop) => scheduler.run(loop))
  return async () => {
    stopping.abort()
    await finished
    await scheduler.idle()
  }
}

class AlertScheduler {
  private readonly barriers: Barriers
  private readonly wakeup = new Wakeup()
  /** The evaluations by alert, with their workspace. */
  private readonly running = new Map<string, { readonly workspaceId: string; readonly ended: Promise<void> }>()

  /** Alerts that could not be evaluated, and until when they wait, on a monotonic clock. */
  private readonly resting = new Map<string, number>()
  /** When alerts of the future were last looked for, on a monotonic clock. */
  private checkedAheadMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly deps: AlertSchedulerDeps,
    /** Reports whether alerts can be evaluated. */
    private readonly evaluating: Loop,
    private readonly signal: AbortSignal,
  ) {
    this.barriers = new Barriers({ clock: deps.clock, loop: evaluating, signal, onChange: () => this.wakeup.wake() })
  }

  async run(loop: Loop): Promise<void> {
    const { clock, secondMs, pollMs = secondMs } = this.deps
    while (!this.signal.aborted) {
      await this.startDue()
      loop.succeeded()
      // Just after the next second, because ticks are whole seconds.
      await this.wakeup.next(pollMs - (clock.now() % pollMs) + PAST_MS, this.signal)
    }
  }

  /** Resolves once no evaluation is running. */
  async idle(): Promise<void> {
    await Promise.all([...this.running.values()].map(({ ended }) => ended))
  }

  /** Starts as many evaluations as there is room for. */
  private async startDue(): Promise<void> {
    const { sql, partitions } = this.deps
    const owned = new Map(partitions.owned().map((partition) => [partition.id, partition]))
    this.barriers.keep([...owned.values()])
    if (owned.size === 0 || this.running.size >= RUNNING_MAX) return
    await this.checkAhead([...owned.keys()])
    for (const [id, untilMs] of this.resting) if (untilMs < performance.now()) this.resting.delete(id)
    const except = [...this.running.keys(), ...this.resting.keys()]
    const from = [...owned.values()].map((each) => ({ id: each.id, before: this.barriers.limitOf(each) }))
    for (const alert of await readDue(sql, { partitions: from, except })) {
      const partition = owned.get(alert.partition)
      if (partition === undefined || !this.barriers.hasPassed(partition, alert.next_at.getTime())) continue
      if (!this.hasRoomFor(alert)) continue
      const ended = this.evaluateDue(alert, partition)
      this.running.set(alert.alert_id, { workspaceId: alert.workspace_id, ended })
    }
  }

  /** A clock that was ahead, here or in another process, has put alerts off. */
  private async checkAhead(partitions: readonly number[]): Promise<void> {
    const { sql, clock, secondMs, log } = this.deps
    if (performance.now() - this.checkedAheadMs < AHEAD_CHECK_SECONDS * secondMs) return
    this.checkedAheadMs = performance.now()
    const alerts = await bringBack(sql, { now: clock.now(), partitions, secondMs })
    if (alerts > 0) log.warn('alerts: were put off by a clock that was ahead; due at their next tick', { alerts })
  }

  private hasRoomFor({ workspace_id }: DueAlert): boolean {
    if (this.running.size >= RUNNING_MAX) return false
    const own = [...this.running.values()].filter(({ workspaceId }) => workspaceId === workspace_id).length
    return own < (this.running.size < RUNNING_MAX / 2 ? RUNNING_PER_WORKSPACE_MAX : 1)
  }

  private async evaluateDue(due: DueAlert, partition: OwnedPartition): Promise<void> {
    try {
      await this.evaluateTick(due, partition)
      this.barriers.report()
    } catch (error) {
      if (!this.signal.aborted) this.retryLater(error, due)
    }
    this.running.delete(due.alert_id)
    this.wakeup.wake()
  }

  private retryLater(error: unknown, { alert_id, workspace_id }: DueAlert): void {
    this.resting.set(alert_id, performance.now() + RETRY_MS)
    // Otherwise its workspace's own queries take all slots, or it has been deleted.
    if (!(error instanceof ApiError) || error.code === 'UNAVAILABLE') this.evaluating.failed(error)
    if (error instanceof ApiError) return
    this.deps.log.warn('alerts: an evaluation failed; retrying', { alert_id, workspace_id, error })
  }

  private async evaluateTick(
    { alert_id, workspace_id: workspaceId, partition }: DueAlert,
    owner: OwnedPartition,
  ): Promise<void> {
    const { sql, store, analytics, clock, onChange, secondMs } = this.deps
    const tenant = { workspaceId, partition }
    const alert = await store.load(tenant, alert_id)
    if (alert.next_at === null || alert.next_at.getTime() >= clock.now()) return
    const everyMs = alert.every_seconds * secondMs
    const { tick, skipped } = tickOf(alert.next_at.getTime(), clock.now(), everyMs)
    // The barrier was passed for the tick that was due: this one may be a later one.
    if (!this.barriers.hasPassed(owner, tick)) return void this.resting.set(alert_id, performance.now() + RETRY_MS)
    using session = analytics.asOf(tenant)
    const evaluated = evaluatedOf(alert, await store.queryOf(tenant, alert), secondMs)
    const { result, rowsOf } = await evaluate(session, evaluated, tick, this.signal)
    const advanced = advance(ruleOf(alert, secondMs), fromStored(alert.states, tick), tick, result)
    const nextAt = nextTick(tick, everyMs)
    const error = advanced.error ?? skipped ?? keptNote(alert, nextAt, clock.now())
    const now = clock.now()
    const isStored = await storeTick(sql, { alert, owner, tick, nextAt, advanced, rowsOf, now, error })
    if (isStored && advanced.transitions.length > 0) onChange()
  }
}

const SKIPPED = 'skipped the evaluations from'

/** The tick to evaluate now: the missed one, unless it is too long ago. */
function tickOf(nextAt: number, now: number, everyMs: number): { tick: number; skipped: string | null } {
  const earliest = nextTick(now, everyMs) - MISSED_TICKS_MAX * everyMs
  if (nextAt >= earliest) return { tick: nextAt, skipped: null }
  const [from, to] = [nextAt, earliest].map((ms) => new Date(ms).toISOString())
  return {
    tick: earliest,
    skipped: `${SKIPPED} ${from} to ${to}, because no process was running and too many were missed`,
  }
}

/** What was skipped is shown until the alert has caught up. */
function keptNote({ error }: StoredAlert, nextAt: number, now: number): string | null {
  return error?.startsWith(SKIPPED) && nextAt < now ? error : null
}
