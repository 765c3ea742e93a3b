import { useMemo } from 'preact/hooks'
import { compact, counted, duration } from '../../../base/format.ts'
import { hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { Icon } from '../parts/controls.tsx'
import { Status } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import type { Bar } from '../run/bars.ts'
import { KINDS } from '../run/kinds.ts'
import type { RunModel } from '../run/run-model.ts'
import { alignSteps, STEPS_MAX, type StepPair } from './align.ts'
import { changeText } from './change.ts'

type Step = Bar & { readonly depth: number }

interface CompareStepsProps {
  readonly a: RunModel
  readonly b: RunModel
}

/** The steps of both runs in one list, the same ones beside each other. */
export function CompareSteps({ a, b }: CompareStepsProps) {
  const [rowsA, rowsB] = [a.rows.value, b.rows.value]
  const pairs = useMemo(() => alignSteps(rowsA, rowsB), [rowsA, rowsB])
  const isCut = Math.max(rowsA.length, rowsB.length) > STEPS_MAX
  if (pairs.length === 0) return null
  const onlyA = pairs.filter((pair) => pair.b === undefined).length
  const onlyB = pairs.filter((pair) => pair.a === undefined).length
  return (
    <section class="panel" aria-label="Steps">
      <div class="detail-head">
        <h2>Steps</h2>
        <span class="hint">
          {[
            `${pairs.length - onlyA - onlyB} in both`,
            onlyA > 0 && `${onlyA} only in A`,
            onlyB > 0 && `${onlyB} only in B`,
            isCut && `the first ${counted(STEPS_MAX, 'step')} of each`,
          ]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </div>
      <Table
        class="compare-steps"
        rows={pairs}
        keyOf={(pair) => `${pair.a?.id} ${pair.b?.id}`}
        attributes={(pair) => ({ class: onlyOf(pair) === null ? '' : `only-${onlyOf(pair)}` })}
        columns={[
          { title: 'Step', class: 'step-name', cell: (pair) => <StepName {...pair} /> },
          { title: 'A', isNumber: true, cell: (pair) => pair.a && <StepFigures step={pair.a} runId={a.runId} /> },
          { title: 'B', isNumber: true, cell: (pair) => pair.b && <StepFigures step={pair.b} runId={b.runId} /> },
          {
            title: 'Change',
            isNumber: true,
            class: 'change',
            cell: (pair) =>
              onlyOf(pair) === null
                ? changeText(tookOf(pair.a), tookOf(pair.b), duration)
                : `only in ${onlyOf(pair)?.toUpperCase()}`,
          },
        ]}
      />
    </section>
  )
}

/** The run that alone has the step; null: both have it. */
function onlyOf({ a, b }: StepPair<Step>): 'a' | 'b' | null {
  return b === undefined ? 'a' : a === undefined ? 'b' : null
}

/** Both names where they differ, as for calls of two models. */
function StepName({ a, b }: StepPair<Step>) {
  const { directory } = useSession()
  const nameOf = ({ run, name }: Step) => (run === undefined ? name : directory.nameOf(run.agent_id))
  const names = [...new Set([a, b].flatMap((step) => (step === undefined ? [] : [nameOf(step)])))]
  const step = (a ?? b) as Step
  return (
    <span style={{ paddingLeft: `${Math.min(step.depth, 8) * 14}px` }}>
      <Icon name={KINDS[step.kind].icon} />
      <span title={names.join(' → ')}>{names.join(' → ')}</span>
    </span>
  )
}

function StepFigures({ step, runId }: { readonly step: Step; readonly runId: string }) {
  const tokens = (step.usage?.inputTokens ?? 0) + (step.usage?.outputTokens ?? 0)
  return (
    <>
      <a href={hrefOfRun(runId, { step: step.id })}>{duration(tookOf(step))}</a>
      {tokens > 0 && <small>{compact(tokens)} tokens</small>}
      {step.status === 'failed' && <Status name={step.status} />}
    </>
  )
}

/** Null while it is under way. */
function tookOf(step: Step | undefined): number | null {
  return step === undefined || step.endMs === null ? null : step.endMs - step.startMs
}
