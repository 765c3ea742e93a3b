import type { QueryCatalogue } from '../../analytics/catalogue.ts'
import type { Api, OnWire } from './api.ts'
import { h, labelled, setText } from './dom.ts'
import { count, duration } from './format.ts'
import { textOf } from './json.ts'

interface Result {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly row_count: number
  readonly truncated: boolean
  readonly statistics: { readonly elapsed_ms: number }
}

type Catalogue = OnWire<QueryCatalogue>
type Example = Catalogue['examples'][number]

const ROWS_SHOWN_MAX = 500

/** Queries of the workspace in ClickHouse SQL. */
export function sqlView(api: Api) {
  const text = h('textarea', { id: 'sql', rows: '8', spellcheck: 'false', autocomplete: 'off' })
  const params = h('input', { spellcheck: 'false', autocomplete: 'off', placeholder: '{"name": "value"}' })
  const run = h('button', { type: 'submit', class: 'primary' }, 'Run')
  const problem = h('p', { class: 'problem', role: 'alert' })
  const summary = h('p', { class: 'hint', role: 'status' })
  const output = h('div', { class: 'result', tabindex: '0', role: 'region', 'aria-label': 'Result' })
  const examples = exampleMenu((example) => {
    show(example)
    void execute()
  })
  const tables = h('details', {})
  let isOffered = false
  output.hidden = true

  function show({ query, params: values }: Example): void {
    text.value = query
    params.value = values === undefined ? '' : JSON.stringify(values)
  }

  /** The schema does not change while the page is open, so it is read once. */
  async function offer(): Promise<void> {
    if (isOffered) return
    const catalogue = await api.get<Catalogue>('/api/v1/query/schema')
    isOffered = true
    examples.offer(catalogue.examples)
    tables.replaceChildren(h('summary', {}, 'Tables and columns'), ...catalogue.tables.flatMap(tableHelp))
    const [first] = catalogue.examples
    if (text.value === '' && first !== undefined) show(first)
  }

  async function execute(): Promise<void> {
    if (run.disabled || text.value.trim() === '') return
    run.disabled = true
    setText(problem, '')
    setText(summary, 'Running…')
    try {
      const request = { query: text.value, params: valuesOf(params.value) }
      const result = await api.post<Result>('/api/v1/query', request)
      output.replaceChildren(resultTable(result))
      output.hidden = false
      setText(summary, summaryOf(result))
    } catch (error) {
      output.hidden = true
      setText(summary, '')
      setText(problem, (error as Error).message)
    } finally {
      run.disabled = false
    }
  }

  const actions = [run, h('span', { class: 'hint' }, 'or Ctrl+Enter'), examples.element, labelled('Parameters', params)]
  const form = h('form', {}, h('label', { for: 'sql' }, 'Query'), text, h('div', { class: 'actions' }, ...actions))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void execute()
  })
  text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    void execute()
  })
  return {
    element: h('section', { class: 'panel sql', 'aria-label': 'SQL' }, form, tables, problem, summary, output),
    /** Results are not refreshed: they stay until the next query. */
    refresh: offer,
  }
}

function exampleMenu(choose: (example: Example) => void) {
  const menu = h('select', { 'aria-label': 'Examples' }, h('option', { value: '' }, 'Examples…'))
  let offered: readonly Example[] = []
  menu.addEventListener('change', () => {
    const example = offered[menu.selectedIndex - 1]
    if (example !== undefined) choose(example)
  })
  return {
    element: menu,
    offer(examples: readonly Example[]): void {
      offered = examples
      menu.append(...examples.map(({ title, description }) => h('option', { title: description }, title)))
    },
  }
}

function tableHelp({ name, description, columns }: Catalogue['tables'][number]): HTMLElement[] {
  const rows = columns.map((column) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, h('code', {}, column.name)),
      h('td', {}, h('code', {}, column.type)),
      h('td', {}, column.description),
    ),
  )
  return [h('h3', {}, name), h('p', { class: 'hint' }, description), h('table', {}, h('tbody', {}, ...rows))]
}

/** Parses values of placeholders; the service validates them. */
function valuesOf(json: string): unknown {
  if (json.trim() === '') return
  try {
    return JSON.parse(json)
  } catch {
    throw new Error('Parameters: expected JSON, such as {"days": 7}')
  }
}

function summaryOf({ row_count, rows, truncated, statistics }: Result): string {
  const parts = [`${count(row_count)} ${row_count === 1 ? 'row' : 'rows'}`, duration(statistics.elapsed_ms)]
  if (truncated) parts.push('truncated: add a LIMIT or aggregate')
  if (rows.length > ROWS_SHOWN_MAX) parts.push(`the first ${count(ROWS_SHOWN_MAX)} shown`)
  return parts.join(' · ')
}

function resultTable({ columns, rows }: Result): HTMLElement {
  const isNumber = columns.map(({ type }) => /^(Nullable\()?(U?Int|Float|Decimal)/.test(type))
  const cell = (value: unknown, index: number) => {
    if (value === null || value === undefined) return h('td', { class: 'null' }, 'null')
    return h('td', { class: isNumber[index] ? 'number' : undefined }, textOf(value))
  }
  const heads = columns.map(({ name, type }, index) =>
    h('th', { scope: 'col', title: type, class: isNumber[index] ? 'number' : undefined }, name),
  )
  return h(
    'table',
    {},
    h('thead', {}, h('tr', {}, ...heads)),
    h(
      'tbody',
      {},
      ...rows.slice(0, ROWS_SHOWN_MAX).map((row) => h('tr', {}, ...columns.map(({ name }, i) => cell(row[name], i)))),
    ),
  )
}
