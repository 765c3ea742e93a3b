import { useEffect, useState } from 'preact/hooks'
import { isTyping, useKeys } from '../context/browser.ts'
import { hrefOf, navigate, runsHref } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { pretty } from '../data/json.ts'
import { isUuid, type Run } from '../data/records.ts'
import { TextBlock } from '../parts/code.tsx'
import { BackLink } from '../parts/controls.tsx'
import { Diff } from '../parts/diff.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { RunModel } from '../run/run-model.ts'
import { withLines } from './change.ts'
import { CompareFigures } from './figures.tsx'
import { CompareSteps } from './steps.tsx'

interface CompareViewProps {
  readonly a: string
  readonly b: string
}

/** Two runs side by side: their figures, what they got and gave, and their steps. */
export function CompareView({ a, b }: CompareViewProps) {
  const session = useSession()
  const [models] = useState(() => [new RunModel(session, a), new RunModel(session, b)] as const)
  useEffect(() => () => models.forEach((model) => void model.close()), [models])
  useBackKey()
  const [modelA, modelB] = models
  const [runA, runB] = [modelA.run.value, modelB.run.value]
  const both = runA === null || runB === null ? undefined : ([runA, runB] as const)
  const problem = modelA.problem.value ?? modelB.problem.value
  const missing = !isUuid(a) || modelA.isMissing.value ? 'A' : !isUuid(b) || modelB.isMissing.value ? 'B' : null
  return (
    <section class="view compare" aria-label="Compare runs">
      <div class="view-head">
        <BackLink href={runsHref.value} label="All runs" title="All runs (Esc)" />
        <h1>Compare runs</h1>
        <a class="button small compare-swap" href={hrefOf('runs', ['compare', b, a])}>
          Swap A and B
        </a>
      </div>
      {missing !== null ? (
        <NoSuchRun which={missing} />
      ) : (
        <Loaded read={{ data: both, problem }} lines={8}>
          {([one, other]) => (
            <>
              <CompareFigures a={one} b={other} rows={[modelA.rows.value, modelB.rows.value]} />
              <Texts a={one} b={other} />
              <CompareSteps a={modelA} b={modelB} />
            </>
          )}
        </Loaded>
      )}
    </section>
  )
}

function NoSuchRun({ which }: { readonly which: string }) {
  return (
    <Empty title="Nothing to compare" icon="runs">
      <p>This workspace has no run with the id of {which}. Choose two runs in the list.</p>
      <a class="button" href={runsHref.value}>
        All runs
      </a>
    </Empty>
  )
}

function Texts({ a, b }: { readonly a: Run; readonly b: Run }) {
  const textOf = (value: unknown) => (value === null || pretty(value) === '{}' ? null : withLines(pretty(value)))
  return (
    <div class="compare-texts">
      {(a.error_message !== null || b.error_message !== null) && (
        <Text title="Error" a={a.error_message} b={b.error_message} />
      )}
      <Text title="Input" a={textOf(a.input)} b={textOf(b.input)} />
      <Text title="Output" a={textOf(a.output)} b={textOf(b.output)} />
    </div>
  )
}

interface TextProps {
  readonly title: string
  readonly a: string | null
  readonly b: string | null
}

/** The difference between two texts; a text that only one run has, or that both have, is shown as it is. */
function Text({ title, a, b }: TextProps) {
  const isChanged = a !== null && b !== null && a !== b
  const whose = a === b ? 'the same' : `only ${a === null ? 'B' : 'A'}`
  const text = a ?? b
  return (
    <section class={`panel compare-text ${title === 'Error' ? 'is-error' : ''}`} aria-label={title}>
      {!isChanged && text !== null && (
        <TextBlock title={`${title} (${whose})`} text={text} isJson={title !== 'Error'} level="h2" />
      )}
      {(isChanged || text === null) && (
        <div class="detail-head">
          <h2>{title}</h2>
          <span class="hint">
            {isChanged ? (
              <>
                <span class="diff-removed">− A</span> <span class="diff-added">+ B</span>
              </>
            ) : (
              'none'
            )}
          </span>
        </div>
      )}
      {isChanged && <Diff before={a} after={b} />}
    </section>
  )
}

/** Escape leads back to the list. */
function useBackKey(): void {
  useKeys((event) => {
    if (event.key !== 'Escape' || isTyping(event)) return false
    navigate(runsHref.value)
    return true
  })
}
