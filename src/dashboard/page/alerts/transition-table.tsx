import { count, words } from '../../../base/format.ts'
import { numOrNull } from '../data/json.ts'
import { Scrollable } from '../parts/scrollable.tsx'
import { Status } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { dateAndTime } from '../parts/time.tsx'
import { type Change, figure, seriesName } from './series.ts'

const ROWS_MAX = 200

/** Changes of the states of series, in order of time; the newest are shown first. */
export function TransitionTable({ changes }: { readonly changes: readonly Change[] }) {
  const shown = changes.slice(-ROWS_MAX).toReversed()
  return (
    <>
      <Scrollable as="div" class="table-scroll transitions" role="region" label="Transitions">
        <Table
          rows={shown}
          keyOf={({ at, series }) => `${at} ${seriesName(series)}`}
          columns={[
            {
              title: 'At',
              cell: ({ at }) => (
                <time dateTime={at} title={dateAndTime(at)}>
                  {dateAndTime(at).slice(5)}
                </time>
              ),
            },
            { title: 'Series', class: 'series-name', cell: ({ series }) => seriesName(series) },
            {
              title: 'State',
              cell: ({ from, to, renotified }) => (
                <>
                  <Status name={to} text={renotified ? 'still firing' : words(to)} />
                  {!renotified && <small> after {words(from)}</small>}
                </>
              ),
            },
            { title: 'Value', isNumber: true, cell: ({ value }) => <Value value={value} /> },
          ]}
        />
      </Scrollable>
      {changes.length > shown.length && (
        <p class="hint">
          The latest {ROWS_MAX} of {count(changes.length)}.
        </p>
      )}
    </>
  )
}

/** The value of a series; its hint has all digits. */
export function Value({ value }: { readonly value: unknown }) {
  const number = numOrNull(value)
  if (number === null) return <span class="hint">–</span>
  return <span title={String(number)}>{figure(number)}</span>
}
