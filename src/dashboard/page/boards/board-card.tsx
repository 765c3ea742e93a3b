import { useEffect, useRef, useState } from 'preact/hooks'
import { hrefOf, pushQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Params } from '../data/api.ts'
import type { SavedQuery } from '../data/boards.ts'
import { useLoad } from '../data/loading.ts'
import { Button } from '../parts/controls.tsx'
import { linkedRange, type TimeRange, zoomOf } from '../parts/range.tsx'
import { Loaded } from '../parts/states.tsx'
import { canDraw, lookOf } from '../sql/chart-plan.ts'
import { addressOf, textsOf } from '../sql/placeholders.ts'
import { ResultChart } from '../sql/result-chart.tsx'
import { ResultTable } from '../sql/result-table.tsx'
import { SQL } from '../sql/sql-address.ts'
import { timeParams, usesRange } from '../sql/time-params.ts'

const CHART_HEIGHT = 220
const TABLE_ROWS_MAX = 8
/** Charts are read a little before they are scrolled into view. */
const MARGIN = '200px'

interface BoardCardProps {
  /** Undefined if the saved query was deleted. */
  readonly query: SavedQuery | undefined
  readonly range: TimeRange
  /** The range as members of the address. */
  readonly shownRange: Readonly<Record<string, string>>
  /** A new value makes the card read everything again. */
  readonly moment: string
  /** What can be done with the card while the board is edited. */
  readonly edit: CardEdit | null
}

interface CardEdit {
  /** Null at the start or the end of the board. */
  readonly earlier: (() => void) | null
  readonly later: (() => void) | null
  readonly remove: () => void
}

/** A chart of a board. Its query runs only while the card is in view, and again when the range moves. */
export function BoardCard({ query, range, shownRange, moment, edit }: BoardCardProps) {
  const box = useRef<HTMLElement>(null)
  const isVisible = useVisible(box)
  const title = query?.name ?? 'A deleted query'
  return (
    <section ref={box} class="panel board-card" aria-label={title}>
      <div class="detail-head">
        <h2>{query === undefined ? title : <a href={hrefOfQuery(query, shownRange)}>{title}</a>}</h2>
        {query !== undefined && !usesRange(query.query) && <span class="hint">own time range</span>}
        {edit !== null && <EditButtons title={title} edit={edit} />}
      </div>
      {query === undefined ? (
        <p class="hint">Its saved query was deleted. Edit the board to remove the chart.</p>
      ) : (
        <CardResult key={query.query_id} query={query} range={range} moment={moment} isVisible={isVisible} />
      )}
    </section>
  )
}

function EditButtons({ title, edit: { earlier, later, remove } }: { readonly title: string; readonly edit: CardEdit }) {
  return (
    <div class="head-actions">
      <Button icon="left" label={`Move ${title} earlier`} disabled={earlier === null} onClick={() => earlier?.()} />
      <Button icon="right" label={`Move ${title} later`} disabled={later === null} onClick={() => later?.()} />
      <Button icon="close" label={`Remove ${title}`} onClick={remove} />
    </div>
  )
}

interface CardResultProps extends Pick<BoardCardProps, 'range' | 'moment'> {
  readonly query: SavedQuery
  readonly isVisible: boolean
}

function CardResult({ query, range, moment, isVisible }: CardResultProps) {
  const { queries } = useSession()
  const params = { ...(query.params as unknown as Params), ...timeParams(query.query, range) }
  const wanted = `${query.query} ${JSON.stringify(params)} ${moment}`
  // Out of view, the last result stays, and nothing is read.
  const read = useRef<string | null>(null)
  if (isVisible) read.current = wanted
  const loading = useLoad(
    async (signal) => (read.current === null ? undefined : queries.run(query.query, params, signal)),
    [read.current],
    { subject: query.query_id },
  )
  const isRanged = usesRange(query.query)
  const zoom = isRanged ? (from: number, to: number) => pushQuery({ ...zoomOf(from, to) }) : undefined
  return (
    <Loaded read={loading} lines={5}>
      {(result) => {
        if (result.rows.length === 0) return <p class="hint board-nothing">No rows in this range.</p>
        if (query.chart === null || !canDraw(result)) return <ResultTable result={result} rowsMax={TABLE_ROWS_MAX} />
        return (
          <ResultChart
            result={result}
            choice={query.chart}
            title={query.name}
            height={CHART_HEIGHT}
            range={isRanged ? range : undefined}
            onZoom={zoom}
          />
        )
      }}
    </Loaded>
  )
}

/** The query in the SQL view, in the range of the board. */
function hrefOfQuery({ query, params, chart, query_id }: SavedQuery, shownRange: Readonly<Record<string, string>>) {
  const texts = textsOf(params as never)
  return hrefOf('sql', [], {
    ...addressOf(query, texts),
    ...SQL.write({ saved: query_id, ...lookOf(chart) }),
    ...linkedRange(shownRange),
  })
}

/** Whether an element is in view, or nearly. */
function useVisible(element: { readonly current: HTMLElement | null }): boolean {
  const [isVisible, setVisible] = useState(false)
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setVisible(entries.at(-1)?.isIntersecting ?? false), {
      rootMargin: MARGIN,
    })
    observer.observe(element.current as HTMLElement)
    return () => observer.disconnect()
  }, [])
  return isVisible
}
