import { useState } from 'preact/hooks'
import { parseDuration } from '../../../base/duration.ts'
import { count, counted } from '../../../base/format.ts'
import type { AlertTest } from '../data/alerts.ts'
import { useAttempt } from '../data/loading.ts'
import { Button } from '../parts/controls.tsx'
import { ProblemText, Skeleton } from '../parts/states.tsx'
import { Moment } from '../parts/time.tsx'
import { StateStrip } from './state-strip.tsx'
import { TransitionTable } from './transition-table.tsx'

const RANGES = [
  ['1d', 'the last day'],
  ['7d', 'the last week'],
] as const
const STEPS = ['1m', '2m', '5m', '10m', '15m', '30m', '1h', '2h', '6h', '12h', '1d']
/** The service ends a test after this many evaluations, and after 30 seconds. */
const TICKS_MAX = 1_500
/** A test of this many evaluations takes a few seconds. */
const TICKS_USUAL = 300

/** A part of the past, as the API takes it. */
export interface TestRange {
  readonly from: string
  readonly to: string
  readonly step: string
}

interface DryRunProps {
  /** Time between two evaluations of the alert. */
  readonly every: string
  readonly test: (range: TestRange) => Promise<AlertTest>
}

interface Outcome extends TestRange {
  readonly answer: AlertTest
}

/** When an alert would have fired: its states over a part of the past, and each transition. */
export function DryRun({ every, test }: DryRunProps) {
  const [range, setRange] = useState<string>(RANGES[0][0])
  const [chosen, setStep] = useState('')
  const [isRunning, setRunning] = useState(false)
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const { problem, attempt } = useAttempt()
  const steps = stepsOf(every, range)
  const step = steps.includes(chosen) ? chosen : (steps.find((each) => ticksOf(each, range) <= TICKS_USUAL) ?? every)
  const run = async () => {
    const toMs = Date.now()
    const fromMs = toMs - secondsOf(range) * 1_000
    const asked = { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString(), step }
    setRunning(true)
    await attempt(async () => setOutcome({ ...asked, answer: await test(asked) }))
    setRunning(false)
  }
  return (
    <section class="dry-run" aria-label="Dry run">
      <h3>When it would have fired</h3>
      <div class="filters">
        <Button
          class="small"
          icon="play"
          disabled={isRunning}
          text={isRunning ? 'Running…' : 'Dry run'}
          onClick={() => void run()}
        />
        <select
          aria-label="Range"
          name="range"
          value={range}
          onChange={({ currentTarget }) => setRange(currentTarget.value)}
        >
          {RANGES.map(([each, title]) => (
            <option key={each} value={each}>
              over {title}
            </option>
          ))}
        </select>
        <select
          aria-label="Step"
          name="step"
          value={step}
          onChange={({ currentTarget }) => setStep(currentTarget.value)}
        >
          {steps.map((each) => (
            <option key={each} value={each}>
              every {each}
              {each === every && ', as it is evaluated'}
            </option>
          ))}
        </select>
      </div>
      <ProblemText text={problem} />
      {isRunning && outcome === null && <Skeleton />}
      {outcome !== null && <Result outcome={outcome} />}
    </section>
  )
}

/** The interval of the alert, and longer ones; those that fit into one test. */
function stepsOf(every: string, range: string): readonly string[] {
  const least = secondsOf(every)
  const all = [every, ...STEPS.filter((step) => secondsOf(step) > least)]
  return all.filter((step) => ticksOf(step, range) <= TICKS_MAX)
}

function ticksOf(step: string, range: string): number {
  return secondsOf(range) / secondsOf(step)
}

function secondsOf(text: string): number {
  return parseDuration(text) ?? 1
}

function Result({ outcome: { answer, from, to, step } }: { readonly outcome: Outcome }) {
  const { transitions, ticks, complete, through, error } = answer
  const fired = transitions.filter(({ type, renotified }) => type === 'alert.fired' && !renotified).length
  return (
    <>
      <p role="status" class="strong">
        {fired === 0
          ? 'It would not have fired'
          : `It would have fired ${fired === 1 ? 'once' : `${count(fired)} times`}`}{' '}
        <span class="hint dry-run-note">
          in {counted(ticks, 'evaluation')}, one every {step}
        </span>
      </p>
      {!complete && (
        <p class="hint">
          The test ended early
          {through === null ? (
            ''
          ) : (
            <>
              {' '}
              at <Moment at={through} />
            </>
          )}
          : choose a shorter range or a longer step.
        </p>
      )}
      {error !== null && <p class="problem">{error}</p>}
      {transitions.length > 0 && (
        <>
          <StateStrip changes={transitions} fromMs={Date.parse(from)} toMs={Date.parse(through ?? to)} />
          <TransitionTable changes={transitions} />
        </>
      )}
    </>
  )
}
