import { RUN_STATUSES } from '../../runs/state.ts'
import type { Api } from './api.ts'
import type { Agent, Directory } from './directory.ts'
import { h, keyedList, labelled, type Part, setText } from './dom.ts'
import { ago, count, shortId, words } from './format.ts'
import { noRunsYet } from './hints.ts'
import { durationOf, type Run } from './run.ts'
import { runDetail } from './run-detail.ts'

export interface RunsViewDeps {
  readonly api: Api
  readonly directory: Directory
  /** Requests a refresh right away, because the user has changed what to show. */
  readonly refreshSoon: () => void
}

const PAGE_LIMIT = 25

/** The runs of the workspace, newest first, and beside them the one that the URL names. */
export function runsView({ api, directory, refreshSoon }: RunsViewDeps) {
  const filters = runFilters(() => toPage([]))
  const pager = createPager(toPage)
  const list = runList(directory)
  const nothingMatches = h('p', { class: 'empty' }, 'No run matches these filters.')
  const empty = noRunsYet()
  const detail = runDetail({ api, directory })
  const listPane = h(
    'div',
    { class: 'panel list' },
    filters.element,
    list.element,
    nothingMatches,
    empty,
    pager.element,
  )
  const element = h('section', { class: 'runs', 'aria-label': 'Runs' }, listPane, detail.element)
  let selected: string | null = null
  /** Cursors of the previous pages and of this one. Empty: the first page, which shows new runs as they start. */
  let cursors: readonly string[] = []

  function toPage(to: readonly string[]): void {
    cursors = to
    refreshSoon()
  }

  async function refreshList(): Promise<void> {
    const asked = { ...filters.values(), cursor: cursors.at(-1) }
    const page = await api.get<{ items: readonly Run[]; next_cursor: string | null }>('/api/v1/runs', {
      ...asked,
      limit: PAGE_LIMIT,
    })
    // The response is outdated: the user has clicked again.
    if (JSON.stringify(asked) !== JSON.stringify({ ...filters.values(), cursor: cursors.at(-1) })) return
    const isEmpty = page.items.length === 0 && cursors.length === 0
    list.show(page.items, selected)
    list.element.hidden = isEmpty
    element.classList.toggle('without-runs', isEmpty && !filters.areSet())
    nothingMatches.hidden = !isEmpty || !filters.areSet()
    empty.hidden = !isEmpty || filters.areSet()
    pager.show(cursors, page.next_cursor)
  }

  return {
    element,
    /** @param runId null for none */
    select(runId: string | null): void {
      selected = runId
      list.mark(selected)
      element.classList.toggle('with-detail', runId !== null)
      detail.open(runId)
      // On a narrow screen the list is hidden, and with it the link that had the focus.
      if (runId !== null && listPane.offsetParent === null) detail.focus()
    },
    filterByAgent(agentId: string): void {
      filters.setAgent(agentId)
      toPage([])
    },
    async refresh(): Promise<void> {
      filters.showAgents(directory.agents)
      await Promise.all([refreshList(), detail.refresh()])
    },
  }
}

function runFilters(onChange: () => void) {
  const status = h('select', {}, h('option', { value: '' }, 'Any status'))
  status.append(...RUN_STATUSES.map((name) => h('option', { value: name }, words(name))))
  const named = h('optgroup', { label: 'Agents' })
  const agent = h('select', {}, h('option', { value: '' }, 'Any agent'), named)
  const clear = h('button', { type: 'button', class: 'quiet' }, 'Clear')
  const showAgents = keyedList<Pick<Agent, 'agent_id' | 'name'>>(
    named,
    ({ agent_id }) => agent_id,
    ({ agent_id }) => {
      const option = h('option', { value: agent_id })
      return { element: option, update: ({ name }) => setText(option, name) }
    },
  )
  const areSet = () => status.value !== '' || agent.value !== ''
  const changed = () => {
    clear.hidden = !areSet()
    onChange()
  }
  status.addEventListener('change', changed)
  agent.addEventListener('change', changed)
  clear.hidden = true
  clear.addEventListener('click', () => {
    status.value = ''
    agent.value = ''
    changed()
  })
  return {
    element: h(
      'div',
      { class: 'filters', role: 'search', 'aria-label': 'Filter runs' },
      labelled('Status', status),
      labelled('Agent', agent),
      clear,
    ),
    showAgents,
    areSet,
    values: () => ({ status: status.value, agent_id: agent.value }),
    setAgent(agentId: string): void {
      status.value = ''
      agent.value = agentId
      clear.hidden = !areSet()
    },
  }
}

function createPager(toPage: (cursors: readonly string[]) => void) {
  const newest = h('button', { type: 'button' }, 'Newest')
  const newer = h('button', { type: 'button' }, '← Newer')
  const older = h('button', { type: 'button' }, 'Older →')
  const where = h('span', { class: 'hint' })
  let at: readonly string[] = []
  let next: string | null = null
  newest.addEventListener('click', () => toPage([]))
  newer.addEventListener('click', () => toPage(at.slice(0, -1)))
  older.addEventListener('click', () => next !== null && toPage([...at, next]))
  const element = h('nav', { class: 'pager', 'aria-label': 'Pages of runs' }, newest, newer, older, where)
  return {
    element,
    show(cursors: readonly string[], nextCursor: string | null): void {
      at = cursors
      next = nextCursor
      newest.disabled = newer.disabled = at.length === 0
      older.disabled = next === null
      element.hidden = at.length === 0 && next === null
      setText(where, at.length === 0 ? '' : `page ${at.length + 1}`)
    },
  }
}

function runList(directory: Directory) {
  const body = h('tbody')
  const heads = ['Status', 'Agent', 'Started', 'Duration', 'Events'].map((title) => h('th', { scope: 'col' }, title))
  const rows = new Map<string, HTMLElement>()
  const show = keyedList<Run>(
    body,
    ({ run_id }) => run_id,
    (run) => runRow(run, directory, rows),
  )
  const mark = (selected: string | null) => {
    for (const [id, link] of rows) {
      if (id === selected) link.setAttribute('aria-current', 'true')
      else link.removeAttribute('aria-current')
    }
  }
  return {
    element: h('table', { class: 'run-list' }, h('thead', {}, h('tr', {}, ...heads)), body),
    mark,
    show(runs: readonly Run[], selected: string | null): void {
      show(runs)
      const shown = new Set(runs.map(({ run_id }) => run_id))
      for (const id of rows.keys()) if (!shown.has(id)) rows.delete(id)
      mark(selected)
    },
  }
}

function runRow({ run_id, created_at }: Run, directory: Directory, rows: Map<string, HTMLElement>): Part<Run> {
  const status = h('span')
  const link = h('a', { href: `#/runs/${run_id}` })
  const started = h('time', { datetime: created_at, title: created_at })
  const took = h('td', { class: 'number' })
  const events = h('td', { class: 'number' })
  const name = h('td', {}, link, h('small', {}, shortId(run_id)))
  rows.set(run_id, link)
  return {
    element: h('tr', {}, h('td', {}, status), name, h('td', {}, started), took, events),
    update(run) {
      setText(status, words(run.status))
      status.className = `status ${run.status}`
      setText(link, directory.nameOf(run.agent_id))
      setText(started, ago(created_at, Date.now()))
      setText(took, durationOf(run))
      setText(events, count(run.event_count))
    },
  }
}
