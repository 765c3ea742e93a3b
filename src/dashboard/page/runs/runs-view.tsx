import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { counted } from '../../../base/format.ts'
import { isTyping } from '../context/browser.ts'
import { address } from '../context/router.ts'
import { perSession, useSession } from '../context/session.ts'
import { loadingList } from '../data/loading.ts'
import { Button } from '../parts/controls.tsx'
import { noRunsYet } from '../parts/hints.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { useRowKeys } from '../parts/table.tsx'
import { ChosenRuns } from './chosen-runs.tsx'
import { shownColumns } from './columns.ts'
import { FOUND_MAX, filterOf, isFiltered, isPlain, type RunFilter } from './filters.ts'
import { RunFilters } from './run-filters.tsx'
import { RunList } from './run-list.ts'
import { type Column, RunTable } from './run-table.tsx'
import { useRunScores } from './score-columns.tsx'
import { SearchNote } from './search-found.tsx'
import { ViewBar } from './view-bar.tsx'

const listOf = perSession((session) => new RunList(session))

/** The runs of the workspace. */
export function RunsView() {
  const list = listOf(useSession())
  const { value: runs } = list.runs
  const { query } = address.value
  const filter = filterOf(query, Date.now())
  const search = useRef<HTMLInputElement>(null)
  const key = JSON.stringify(query)
  // The query, as text, determines the filter.
  useEffect(() => {
    list.open(filterOf(query, Date.now()))
    return () => list.close()
  }, [key, list])
  const columns = shownColumns(filter.status)
  useDetails(list, columns)
  useRunScores(runs, columns)
  useWayBack(list)
  useListKeys(list, search)
  const onOpen = (runId: string) => {
    list.lastOpened = runId
  }
  return (
    <section class="view runs" aria-label="Runs">
      <div class="view-head">
        <h1>Runs</h1>
        <NewRuns list={list} />
      </div>
      <ViewBar />
      <RunFilters filter={filter} search={search} />
      <SearchNote places={list.places} text={filter.text} />
      <Loaded read={loadingList(list.runs)} lines={8} empty={<NoRuns filter={filter} />}>
        {() => (
          <RunTable
            runs={runs}
            columns={columns}
            filter={filter}
            details={list.details}
            choice={list.choice}
            places={list.places}
            onOpen={onOpen}
          />
        )}
      </Loaded>
      <ListEnd list={list} isSearch={!isPlain(filter)} />
      <ChosenRuns runs={runs} choice={list.choice} />
    </section>
  )
}

function NoRuns({ filter }: { readonly filter: RunFilter }) {
  return isFiltered(filter) ? <Empty title="No run matches these filters." icon="filter" /> : noRunsYet()
}

function NewRuns({ list }: { readonly list: RunList }) {
  const number = list.newIds.value.size
  return (
    <div role="status" class="new-runs">
      {number > 0 && (
        <Button class="small" text={`↑ ${counted(number, 'new run')}`} onClick={() => void list.reload()} />
      )}
    </div>
  )
}

/** Reads the next page when the end of the list comes into view. */
function ListEnd({ list, isSearch }: { readonly list: RunList; readonly isSearch: boolean }) {
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) void list.loadMore()
    })
    observer.observe(end.current as HTMLElement)
    return () => observer.disconnect()
  }, [list])
  return (
    <div ref={end} class="list-end">
      {list.hasMore.value && <Button class="quiet" text="Older runs" onClick={() => void list.loadMore()} />}
      {isSearch && list.isCut && <p class="hint">The first {FOUND_MAX}. Narrow the filters to see others.</p>}
    </div>
  )
}

/** Reads the details that the shown columns need in addition to the list. */
function useDetails({ runs: { value: runs }, details }: RunList, columns: readonly Column[]): void {
  const names = columns.map(({ name }) => name)
  const [hasTexts, hasModels] = [names.includes('input') || names.includes('output'), names.includes('model')]
  useEffect(() => {
    details.texts.want(hasTexts ? runs : [])
    details.models.want(hasModels ? runs : [])
  }, [runs, hasTexts, hasModels])
}

/** Coming back from a run: the same place, and the focus on that run. */
function useWayBack(list: RunList): void {
  useLayoutEffect(() => {
    const row = document.querySelector<HTMLElement>(`[data-run="${list.lastOpened}"] .row-link`)
    if (row === null) return
    scrollTo({ top: list.scrollTop })
    row.focus({ preventScroll: true })
    return undefined
  }, [list])
  useEffect(() => {
    const remember = () => {
      list.scrollTop = scrollY
    }
    addEventListener('scroll', remember, { passive: true })
    return () => removeEventListener('scroll', remember)
  }, [list])
}

/** Of the list: x chooses a run, / searches, Escape leaves the search or clears the choice. */
function useListKeys(list: RunList, search: { readonly current: HTMLInputElement | null }): void {
  useRowKeys({
    others(event) {
      if (event.key === 'Escape' && document.activeElement === search.current) {
        search.current?.blur()
        return true
      }
      if (event.key === 'Escape' && list.choice.ids.peek().size > 0) {
        list.choice.clear()
        return true
      }
      if (isTyping(event)) return false
      if (event.key === 'x') {
        const run = document.activeElement?.closest<HTMLElement>('tr[data-run]')?.dataset.run
        if (run !== undefined) list.choice.toggle(run)
        return true
      }
      if (event.key === '/') {
        search.current?.focus()
        search.current?.select()
        return true
      }
      return false
    },
  })
}
