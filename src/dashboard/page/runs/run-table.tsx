import { hrefOfRun, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { RunSummary } from '../data/records.ts'
import { Status } from '../parts/states.tsx'
import { COLUMNS, type ColumnDef, shownColumns } from './columns.tsx'
import type { RunFilter, SortColumn } from './filters.ts'

interface RunTableProps {
  readonly runs: readonly RunSummary[]
  readonly filter: RunFilter
  readonly onOpen: (runId: string) => void
}

/** Runs as a table with the chosen columns. The name of a run's agent is the link to the run, and the row follows it. */
export function RunTable({ runs, filter, onOpen }: RunTableProps) {
  const columns = COLUMNS.filter(({ name }) => shownColumns.value.includes(name))
  return (
    <div class="table-scroll">
      <table class="run-list">
        <thead>
          <tr>
            <SortHead title="Status" sort="status" filter={filter} />
            <SortHead title="Agent" sort="agent" filter={filter} />
            {columns.map(({ name, title, sort, isNumber }) =>
              sort === undefined ? (
                <th key={name} scope="col" class={`col-${name}`}>
                  {title}
                </th>
              ) : (
                <SortHead key={name} title={title} sort={sort} isNumber={isNumber} filter={filter} />
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunRow key={run.run_id} run={run} columns={columns} onOpen={onOpen} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface SortHeadProps {
  readonly title: string
  readonly sort: SortColumn
  readonly isNumber?: boolean
  readonly filter: RunFilter
}

function SortHead({ title, sort, isNumber, filter }: SortHeadProps) {
  const isSorted = filter.sort === sort
  const isDefault = sort === 'started'
  // The first click sorts descending, the second ascending, the third restores the order of time.
  const choose = () => {
    const next = !isSorted ? sort : filter.isAscending ? null : `${sort}.asc`
    setQuery({ sort: isDefault && next === sort ? null : next })
  }
  const direction = filter.isAscending ? 'ascending' : 'descending'
  return (
    <th scope="col" class={`col-${sort} ${isNumber ? 'number' : ''}`} aria-sort={isSorted ? direction : undefined}>
      <button type="button" class="sort" onClick={choose}>
        {title}
        <span aria-hidden="true">{isSorted ? (filter.isAscending ? ' ↑' : ' ↓') : ''}</span>
      </button>
    </th>
  )
}

interface RunRowProps {
  readonly run: RunSummary
  readonly columns: readonly ColumnDef[]
  readonly onOpen: (runId: string) => void
}

function RunRow({ run, columns, onOpen }: RunRowProps) {
  const { directory } = useSession()
  return (
    <tr data-run={run.run_id}>
      <td class="col-status">
        <Status name={run.status} />
      </td>
      <td class="col-agent">
        <a class="row-link" href={hrefOfRun(run.run_id)} onClick={() => onOpen(run.run_id)}>
          {directory.nameOf(run.agent_id)}
        </a>
        <small>…{run.run_id.slice(-8)}</small>
      </td>
      {columns.map(({ name, isNumber, cell }) => (
        <td key={name} class={`col-${name} ${isNumber ? 'number' : ''}`}>
          {cell(run, directory)}
        </td>
      ))}
    </tr>
  )
}
