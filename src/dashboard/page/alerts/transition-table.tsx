import { count, words } from '../../../base/format.ts'
import { numOrNull } from '../data/json.ts'
import { Scrollable } from '../parts/scrollable.tsx'
import { Status } from '../parts/states.tsx'
import { dateAndTime } from '../parts/time.tsx'
import { type Change, figure, seriesName } from './series.ts'

const ROWS_MAX = 200

/** Changes of the states of series, in order of time; the newest are shown first. */
export function TransitionTable({ changes }: { readonly changes: readonly Change[] }) {
  const shown = changes.slice(-ROWS_MAX).toReversed()
  return (
    <>
      <Scrollable as="div" class="table-scroll transitions" role="region" label="Transitions">
        <table>
          <thead>
            <tr>
              <th scope="col">At</th>
              <th scope="col">Series</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                Value
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((change) => (
              <TransitionRow key={`${change.at} ${seriesName(change.series)}`} change={change} />
            ))}
          </tbody>
        </table>
      </Scrollable>
      {changes.length > shown.length && (
        <p class="hint">
          The latest {ROWS_MAX} of {count(changes.length)}.
        </p>
      )}
    </>
  )
}

function TransitionRow({ change: { at, series, from, to, value, renotified } }: { readonly change: Change }) {
  return (
    <tr>
      <td>
        <time dateTime={at} title={dateAndTime(at)}>
          {dateAndTime(at).slice(5)}
        </time>
      </td>
      <td class="series-name">{seriesName(series)}</td>
      <td>
        <Status name={to} text={renotified ? 'still firing' : words(to)} />
        {!renotified && <small> after {words(from)}</small>}
      </td>
      <td class="number">
        <Value value={value} />
      </td>
    </tr>
  )
}

/** The value of a series; its hint has all digits. */
export function Value({ value }: { readonly value: unknown }) {
  const number = numOrNull(value)
  if (number === null) return <span class="hint">–</span>
  return <span title={String(number)}>{figure(number)}</span>
}
