import { setImmediate as nextIteration } from 'node:timers/promises'
import { withTimeout } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { parseDuration } from '../../base/duration.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import { dateOf, isoOrNull } from '../../base/timestamp.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Partition, Partitions } from '../../tenants/partitions/partition.ts'
import type { Analytics } from '../analytics/analytics.ts'
import { committed } from './barriers.ts'
import { evaluatedOf, newSettings, ruleOf, type Settings } from './definition.ts'
import { evaluate } from './evaluation.ts'
import { namedSeries } from './events.ts'
import { readStates } from './history.ts'
import { advance, type States, type Transition } from './machine.ts'
import type { AlertTest, TestAlert, TestDefinition } from './schema.ts'
import { NO_STATES } from './states.ts'
import type { AlertStore } from './store.ts'

interface DryRunDeps {
  readonly store: AlertStore
  readonly analytics: Analytics
  readonly columnar: ColumnarClient
  readonly partitions: Pick<Partitions, 'of'>
  readonly clock: Clock
  /** Milliseconds of a second; tests take fewer. */
  readonly secondMs: number
}

const TEST_TICKS_MAX = 1_500
const TEST_MS_MAX = 30_000
/** How long a client may wait for the answer: the last query may begin just before the end. */
export const TEST_SECONDS_MAX = 90
/** An answer with more would hold the loop for too long: the last evaluation may add a thousand. */
const TRANSITIONS_MAX = 4_000
const LOADED_TIMEOUT_MS = 10_000
/** Rows accepted this long ago have been acknowledged, so they are readable once everything acknowledged is loaded. */
const SETTLED_SECONDS = 2

/** What an alert would have done (docs/alerts.md): the same evaluations and the same machine as live. */
export class DryRuns {
  constructor(private readonly deps: DryRunDeps) {}

  /** A definition that need not be saved; all its series are ok at first. @throws ApiError as `AlertStore.create` */
  async ofDefinition(
    caller: Caller,
    { from, to, step, ...body }: TestDefinition,
    signal: AbortSignal,
  ): Promise<AlertTest> {
    const settings = newSettings(body)
    await this.deps.store.check(caller, settings, signal)
    return this.run(caller, settings, { from, to, ...(step !== undefined && { step }) }, signal)
  }

  /** A saved alert, beginning with the states that it had at `from`. @throws ApiError NOT_FOUND; as {@link ofDefinition} */
  async ofAlert(caller: Caller, alertId: string, range: TestAlert, signal: AbortSignal): Promise<AlertTest> {
    const alert = await this.deps.store.load(caller, alertId)
    return this.run(caller, alert, range, signal, alert)
  }

  private async run(
    caller: Caller,
    settings: Settings,
    range: TestAlert,
    signal: AbortSignal,
    saved?: { readonly alert_id: string; readonly created_at: Date },
  ): Promise<AlertTest> {
    const { store, analytics, partitions, secondMs } = this.deps
    const deadline = performance.now() + TEST_MS_MAX
    const { first, last, stepMs } = this.ticksOf(settings, range)
    const rule = ruleOf(settings, secondMs)
    const evaluated = evaluatedOf(settings, await store.queryOf(caller, settings), secondMs)
    await this.loaded(partitions.of(caller))
    using session = analytics.asOf(caller)
    const resultAt = async (tick: number) => (await evaluate(session, evaluated, tick, signal)).result
    const result = new TestResult(settings)
    let states: States = NO_STATES
    if (saved !== undefined) {
      const before = first - settings.every_seconds * secondMs
      // Series that were ok have no transition, but their absence may lead to one.
      const isAbsenceSeen = rule.by.length > 0 && (rule.noData === 'alert' || rule.noData === 'zero')
      if (isAbsenceSeen && before > saved.created_at.getTime())
        states = advance(rule, NO_STATES, before, await resultAt(before)).states
      states = await readStates(this.deps.columnar, {
        ...saved,
        ...caller,
        by: settings.by_columns,
        before: first,
        states,
      })
    }
    for (let tick = first; tick <= last; tick += stepMs) {
      if (result.ticks >= TEST_TICKS_MAX || performance.now() > deadline) return result.answer(false)
      const advanced = advance(rule, states, tick, await resultAt(tick))
      states = advanced.states
      if (!result.add(tick, advanced.transitions, advanced.error)) return result.answer(false)
      await nextIteration()
    }
    return result.answer(true)
  }

  /** Waits until everything that was accepted before the ticks is readable. @throws ApiError UNAVAILABLE */
  private async loaded({ owned, loading }: Partition): Promise<void> {
    const late = (cause?: unknown) =>
      new ApiError('UNAVAILABLE', 'recent rows are not readable yet; try again', { reason: 'not_loaded', cause })
    // A commit may take longer than a tick takes to settle. Of the log of another process only its end is known.
    if (owned !== undefined)
      await withTimeout(committed(owned), LOADED_TIMEOUT_MS).catch((error) => {
        throw late(error)
      })
    if (!(await loading.waitForAll(LOADED_TIMEOUT_MS))) throw late()
  }

  /** The ticks of a range; those that are not settled yet are left out. @throws ApiError VALIDATION_ERROR */
  private ticksOf({ every_seconds }: Settings, { from, to, step }: TestAlert) {
    const { clock, secondMs } = this.deps
    const [fromMs, toMs] = [dateOf(from).getTime(), dateOf(to).getTime()]
    if (toMs < fromMs) throw invalid('to', 'expected a time after from')
    if (toMs > clock.now()) throw invalid('to', 'expected a time in the past')
    const stepMs = (step === undefined ? every_seconds : (parseDuration(step) ?? 0)) * secondMs
    const last = Math.min(toMs, clock.now() - SETTLED_SECONDS * secondMs)
    return { first: Math.ceil(fromMs / stepMs) * stepMs, last, stepMs }
  }
}

/** Collects the transitions of a test. */
class TestResult {
  ticks = 0
  private readonly transitions: Transition[] = []
  private through: number | null = null
  private error: string | null = null

  constructor(private readonly settings: Settings) {}

  /** @returns false if there is room for no more */
  add(tick: number, transitions: readonly Transition[], error: string | null): boolean {
    this.ticks++
    this.through = tick
    this.error = error ?? this.error
    this.transitions.push(...transitions)
    return this.transitions.length < TRANSITIONS_MAX
  }

  answer(complete: boolean): AlertTest {
    const { ticks, error, through } = this
    const transitions = this.transitions.map(({ type, series, from, to, at, value, renotified }) => ({
      type,
      series: namedSeries(this.settings.by_columns, series),
      from,
      to,
      at: new Date(at).toISOString(),
      value,
      renotified,
    }))
    return { transitions, ticks, complete, through: isoOrNull(through), error }
  }
}
