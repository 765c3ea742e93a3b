import { words } from '../../../base/format.ts'
import { hrefOfRun } from '../context/router.ts'
import { dateAndTime } from '../parts/time.tsx'
import type { Place, Places } from './search-places.ts'

const SEARCHED = 'Searched ids, tags, agents, errors, inputs, outputs, tasks and events.'

/** What was searched, and how far. */
export function SearchNote({ places, text }: { readonly places: Places; readonly text: string }) {
  const since = places.searchedSince.value
  if (text === '' || since === undefined) return null
  return (
    <p class="hint search-note" role="status">
      {since === null
        ? SEARCHED
        : `${SEARCHED} Only runs since ${dateAndTime(since)} so far; “Older runs” continues the search.`}
    </p>
  )
}

interface FoundRowProps {
  readonly runId: string
  readonly place: Place
  readonly columns: number
  readonly onOpen: (runId: string) => void
}

/** Stands below a run of the list: the place where the search text was found, as a link to it. */
export function FoundRow({ runId, place, columns, onOpen }: FoundRowProps) {
  return (
    <tr class="found">
      <td colSpan={columns}>
        <a class="found-place" href={hrefOf(runId, place)} onClick={() => onOpen(runId)}>
          <small>{titleOf(place)}</small>
          <span>{place.snippet.map(({ text, match }, index) => (match ? <mark key={index}>{text}</mark> : text))}</span>
        </a>
      </td>
    </tr>
  )
}

function hrefOf(runId: string, { event_seq: event, task_id: task }: Place): string {
  if (event !== undefined) return hrefOfRun(runId, { event: String(event) })
  return hrefOfRun(runId, task === undefined ? {} : { task })
}

function titleOf({ field, event_type: type }: Place): string {
  return type === undefined ? words(field.replace('.', ' ')) : type
}
