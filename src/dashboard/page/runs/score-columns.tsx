import { signal, useComputed } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import type { Queries } from '../data/api.ts'
import { numOrNull } from '../data/json.ts'
import { useLoad } from '../data/loading.ts'
import type { RunSummary } from '../data/records.ts'
import { Select } from '../parts/fields.tsx'
import { numberText, valueText } from '../scores/score.ts'
import type { Column } from './run-table.tsx'

/** Columns with scores: the average or the latest one of a name in each run. Their names contain that of the scores. */

const HOW = { mean: 'Average', latest: 'Latest' } as const
type How = keyof typeof HOW

interface ScoreColumn {
  readonly how: How
  /** Of the scores. */
  readonly name: string
}

/** What the scores of one name say in a run. */
interface ScoreFigures {
  /** Null if none has a value. */
  readonly mean: number | null
  readonly latestValue: number | null
  readonly latestLabel: string | null
}

/** By run, and then by the name of the scores. */
type ScoresByRun = ReadonlyMap<string, ReadonlyMap<string, ScoreFigures>>

/** More columns with scores are not read. */
const COLUMNS_MAX = 8
/** Only the scores of so many runs at the top of the list are read. */
const RUNS_MAX = 1_000
const REFRESH_MS = 10_000
const NAMES_MAX = 50
const COLUMN = /^score:(mean|latest):(.+)$/

/** The name of a column, without commas, which separate the columns of an address. */
export function columnOf({ how, name }: ScoreColumn): string {
  return `score:${how}:${encodeURIComponent(name)}`
}

/** Undefined for other columns. */
export function scoreColumnOf(column: string): ScoreColumn | undefined {
  const [, how, encoded] = COLUMN.exec(column) ?? []
  if (how === undefined || encoded === undefined) return undefined
  try {
    return { how: how as How, name: decodeURIComponent(encoded) }
  } catch {
    return undefined
  }
}

/** Those of the names that are columns with scores, each once. */
export function scoreColumnNames(names: readonly string[]): readonly string[] {
  return [...new Set(names.filter((name) => scoreColumnOf(name) !== undefined))].slice(0, COLUMNS_MAX)
}

/** The columns with scores that these names stand for. */
export function scoreColumns(names: readonly string[]): readonly Column[] {
  return names.flatMap((column) => {
    const wanted = scoreColumnOf(column)
    if (wanted === undefined) return []
    const title = wanted.how === 'mean' ? wanted.name : `${wanted.name} (latest)`
    return [{ name: column, title, isNumber: true, cell: ({ run_id }) => <Cell runId={run_id} wanted={wanted} /> }]
  })
}

/** What is shown in a cell. */
export function figureText(figures: ScoreFigures | undefined, how: How): string {
  if (figures === undefined) return ''
  const { mean, latestValue, latestLabel } = figures
  // Labels have no average.
  if (how === 'mean') return mean === null ? (latestLabel ?? '') : numberText(mean)
  return valueText({ value: latestValue, label: latestLabel })
}

/** Of the runs that are listed. One list is shown at a time. */
const shown = signal<ScoresByRun>(new Map())

function Cell({ runId, wanted: { how, name } }: { readonly runId: string; readonly wanted: ScoreColumn }) {
  const text = useComputed(() => figureText(shown.value.get(runId)?.get(name), how))
  return <>{text}</>
}

// A thumb that was taken back has a label in the place of a value.
const FIGURES_QUERY = `SELECT run_id, name, avgOrNull(value) AS mean,
  tupleElement(argMax(tuple(value, label), seq), 1) AS latest_value, tupleElement(argMax(tuple(value, label), seq), 2) AS latest_label
FROM scores
WHERE run_id IN {ids:Array(UUID)} AND name IN {names:Array(String)} AND NOT (value IS NULL AND ifNull(label, '') = 'withdrawn')
GROUP BY run_id, name`

/** @throws ApiFailure */
async function readFigures(
  queries: Queries,
  ids: readonly string[],
  names: readonly string[],
  aborted: AbortSignal,
): Promise<ScoresByRun> {
  const { rows } = await queries.run(FIGURES_QUERY, { ids, names }, aborted)
  const byRun = new Map<string, Map<string, ScoreFigures>>()
  for (const { run_id, name, mean, latest_value, latest_label } of rows) {
    const ofRun = byRun.get(String(run_id)) ?? new Map<string, ScoreFigures>()
    byRun.set(String(run_id), ofRun)
    ofRun.set(String(name), {
      mean: numOrNull(mean),
      latestValue: numOrNull(latest_value),
      latestLabel: latest_label === null ? null : String(latest_label),
    })
  }
  return byRun
}

/** Reads the scores that the shown columns need, again and again: scores come at any time. */
export function useRunScores(runs: readonly RunSummary[], columns: readonly Column[]): void {
  const { queries } = useSession()
  const names = [...new Set(columns.flatMap(({ name }) => scoreColumnOf(name)?.name ?? []))]
  const ids = names.length === 0 ? [] : runs.slice(0, RUNS_MAX).map(({ run_id }) => run_id)
  const { data } = useLoad<ScoresByRun>(
    async (aborted) => (ids.length === 0 ? new Map() : readFigures(queries, ids, names, aborted)),
    [names, ids],
    { everyMs: names.length === 0 ? 0 : REFRESH_MS, subject: 'scores' },
  )
  useEffect(() => {
    shown.value = data ?? new Map()
  }, [data])
}

// The names that were used last, because a workspace may have very many.
const NAMES_QUERY = `SELECT name, max(received_at) AS last FROM scores GROUP BY name ORDER BY last DESC, name LIMIT ${NAMES_MAX}`

interface ScoreMenuProps {
  readonly chosen: readonly string[]
  /** Replaces one column by another; null: none. */
  readonly replace: (from: string | null, to: string | null) => void
}

/** The names of the workspace's scores; each can be a column. */
export function ScoreMenu({ chosen, replace }: ScoreMenuProps) {
  const { queries } = useSession()
  const element = useRef<HTMLDivElement>(null)
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const menu = element.current?.closest('details')
    const follow = () => setOpen(menu?.open === true)
    menu?.addEventListener('toggle', follow)
    // It may have been opened before this ran.
    follow()
    return () => menu?.removeEventListener('toggle', follow)
  }, [])
  // Read when the menu opens.
  const { data } = useLoad(
    async (aborted) => {
      if (!isOpen) return undefined
      const { rows } = await queries.run(NAMES_QUERY, {}, aborted)
      return rows.map(({ name }) => String(name))
    },
    [isOpen],
    { subject: 'names of scores' },
  )
  const used = chosen.flatMap((column) => scoreColumnOf(column)?.name ?? [])
  const names = [...new Set([...used, ...(data ?? [])])]
  return (
    <div ref={element} class="score-menu">
      {names.length > 0 && <p class="hint">Scores</p>}
      {names.map((name) => {
        const column = chosen.find((each) => scoreColumnOf(each)?.name === name) ?? null
        const how: string = column === null ? '' : (scoreColumnOf(column)?.how ?? '')
        return (
          <label key={name} class="check">
            <Select
              label={`Column with the score ${name}`}
              value={how}
              options={[['', 'No'], ...Object.entries(HOW)]}
              set={(to) => replace(column, to === '' ? null : columnOf({ how: to as How, name }))}
            />
            <span class="line" title={name}>
              {name}
            </span>
          </label>
        )
      })}
    </div>
  )
}
