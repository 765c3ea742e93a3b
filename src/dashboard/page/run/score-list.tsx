import { useContext } from 'preact/hooks'
import { words } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import type { Score } from '../data/records.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Empty, Skeleton } from '../parts/states.tsx'
import { ACTIONS, Table } from '../parts/table.tsx'
import { Ago } from '../parts/time.tsx'
import { isTakenBack, scorerOf, sorted, stepOfScore, valueText } from '../scores/score.ts'
import { ScoredRun } from '../scores/thumbs.tsx'
import type { TreeBar } from './bars.ts'
import { LongText } from './long-text.tsx'
import { type RunModel, SCORES_LISTED_MAX } from './run-model.ts'
import { stepHref } from './step-address.ts'

const COMMENT_LENGTH_MAX = 300
const COMMENT_LINES_MAX = 4

/** All scores of a run and of its parts, the latest first. */
export function ScoresPanel({ model }: { readonly model: RunModel }) {
  const scores = sorted(model.scores.value.values())
  return (
    <section class="scores" aria-label="Scores">
      {!model.scores.isLoaded.value && scores.length === 0 && <Skeleton />}
      {model.scores.isLoaded.value && scores.length === 0 && (
        <Empty title="No scores yet." icon="scores">
          <p>
            Evaluations and feedback of users appear here: <code>run.score('correct', true)</code>
          </p>
        </Empty>
      )}
      {scores.length > 0 && <ScoreTable scores={scores} bars={model.rows.value} />}
      {scores.length >= SCORES_LISTED_MAX && (
        <p class="hint">Not all scores of this run are shown. The SQL table scores has all.</p>
      )}
    </section>
  )
}

/** The scores of one step. */
export function StepScores({ bar }: { readonly bar: TreeBar }) {
  const run = useContext(ScoredRun)
  const all = run === null ? [] : [...run.scores.value.values()]
  const own = sorted(all.filter((score) => stepOfScore(score, [bar]) !== undefined))
  if (own.length === 0) return null
  return (
    <section class="step-scores" aria-label="Scores of the step">
      <h3>Scores</h3>
      <ScoreTable scores={own} />
    </section>
  )
}

interface ScoreTableProps {
  readonly scores: readonly Score[]
  /** The steps of the run, to name those that are scored; undefined: all scores are of one step. */
  readonly bars?: readonly TreeBar[]
}

function ScoreTable({ scores, bars }: ScoreTableProps) {
  return (
    <Table
      box="table-scroll"
      class="score-table"
      rows={scores}
      keyOf={({ id }) => id}
      attributes={({ id }) => ({ 'data-score': id })}
      columns={[
        { title: 'Name', cell: ({ name }) => name },
        {
          title: 'Score',
          class: 'score-value',
          cell: (score) => (isTakenBack(score) ? <span class="hint">taken back</span> : valueText(score)),
        },
        bars !== undefined && { title: 'Of', cell: (score) => <ScoredPart score={score} bars={bars} /> },
        {
          title: 'By',
          cell: (score) => (
            <>
              {scorerOf(score)} <span class="hint">{words(score.source)}</span>
            </>
          ),
        },
        { title: 'Given', cell: ({ created_at }) => <Ago at={created_at} /> },
        { title: 'Comment', class: 'score-words', cell: ({ text, comment }) => [text, comment].map(saidText) },
        { ...ACTIONS, cell: (score) => <DeleteScore score={score} /> },
      ]}
    />
  )
}

function DeleteScore({ score: { id, name } }: { readonly score: Score }) {
  const { api } = useSession()
  const run = useContext(ScoredRun)
  if (run === null) return null
  const remove = async () => {
    await api.delete(`/api/v1/runs/${run.runId}/scores/${encodeURIComponent(id)}`)
    await run.reloadScores()
  }
  return (
    <ConfirmButton text="Delete" title={`Delete the score ${name}?`} action="Delete the score" act={remove}>
      <p>It is deleted from every store, for good, and its id cannot be used again.</p>
    </ConfirmButton>
  )
}

function saidText(said: string | null, index: number) {
  return (
    said && <LongText key={index} text={said} lengthMax={COMMENT_LENGTH_MAX} linesMax={COMMENT_LINES_MAX} isPlain />
  )
}

/** The part of the run that is scored, as a link if the page shows it. */
function ScoredPart({ score, bars }: { readonly score: Score; readonly bars: readonly TreeBar[] }) {
  const bar = stepOfScore(score, bars)
  if (bar !== undefined) return <a href={stepHref(bar.id)}>{bar.name}</a>
  if (score.session_id !== null) return <>session {score.session_id}</>
  if (score.task_id !== null) return <>task …{score.task_id.slice(-8)}</>
  return score.event_id === null ? <>the run</> : <>event …{score.event_id.slice(-8)}</>
}
