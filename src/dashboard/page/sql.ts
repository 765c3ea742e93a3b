import type { Api } from './api.ts'
import { h, setText } from './dom.ts'
import { count, duration } from './format.ts'
import { textOf } from './json.ts'

interface Result {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly row_count: number
  readonly truncated: boolean
  readonly statistics: { readonly elapsed_ms: number }
}

const EXAMPLES: readonly (readonly [title: string, query: string])[] = [
  [
    'Agents by runs and failures',
    `SELECT agent_name, count() AS runs, countIf(status = 'failed') AS failed,
  round(avg(duration_ms)) AS average_ms
FROM runs
GROUP BY agent_name
ORDER BY runs DESC
LIMIT 20`,
  ],
  [
    'Tokens by model',
    `SELECT payload.gen_ai.request.model::String AS model, count() AS calls,
  sum(payload.gen_ai.usage.input_tokens.:Int64) AS tokens_in,
  sum(payload.gen_ai.usage.output_tokens.:Int64) AS tokens_out
FROM events
WHERE type = 'llm.call'
GROUP BY model
ORDER BY calls DESC`,
  ],
  [
    'Slowest tasks',
    `SELECT name, count() AS tasks, countIf(status = 'failed') AS failed,
  round(avg(dateDiff('millisecond', created_at, updated_at))) AS average_ms
FROM tasks
GROUP BY name
ORDER BY average_ms DESC
LIMIT 20`,
  ],
]

const TABLES = [
  'events(seq, event_id, run_id, agent_id, type, level, payload, occurred_at, received_at)',
  'runs(run_id, agent_id, agent_name, status, trigger_type, external_run_id, parent_run_id, session_id, tags, input, ' +
    'output, error_message, created_at, started_at, completed_at, duration_ms, input_tokens, output_tokens, cost_usd)',
  'tasks(task_id, run_id, agent_id, name, status, input, output, created_at, updated_at)',
]

const ROWS_SHOWN_MAX = 500

/** Any question about the workspace, in ClickHouse SQL. */
export function sqlView(api: Api) {
  const text = h('textarea', { id: 'sql', rows: '8', spellcheck: 'false', autocomplete: 'off' })
  const run = h('button', { type: 'submit', class: 'primary' }, 'Run')
  const problem = h('p', { class: 'problem', role: 'alert' })
  const summary = h('p', { class: 'hint', role: 'status' })
  const output = h('div', { class: 'result', tabindex: '0', role: 'region', 'aria-label': 'Result' })
  text.value = EXAMPLES[0]?.[1] ?? ''
  output.hidden = true

  async function execute(): Promise<void> {
    if (run.disabled || text.value.trim() === '') return
    run.disabled = true
    setText(problem, '')
    setText(summary, 'Running…')
    try {
      const result = await api.post<Result>('/api/v1/query', { query: text.value })
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

  const form = h(
    'form',
    {},
    h('label', { for: 'sql' }, 'Query'),
    text,
    h(
      'div',
      { class: 'actions' },
      run,
      h('span', { class: 'hint' }, 'or Ctrl+Enter. Examples:'),
      ...examples(text, execute),
    ),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void execute()
  })
  text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    void execute()
  })
  const tables = h('details', {}, h('summary', {}, 'Tables and columns'), h('pre', {}, TABLES.join('\n\n')))
  return {
    element: h('section', { class: 'panel sql', 'aria-label': 'SQL' }, form, tables, problem, summary, output),
    /** A result stands until its reader asks again. */
    refresh: async () => {},
  }
}

function examples(text: HTMLTextAreaElement, execute: () => Promise<void>): HTMLElement[] {
  return EXAMPLES.map(([title, query]) => {
    const button = h('button', { type: 'button', class: 'quiet' }, title)
    button.addEventListener('click', () => {
      text.value = query
      void execute()
    })
    return button
  })
}

function summaryOf({ row_count, rows, truncated, statistics }: Result): string {
  const parts = [`${count(row_count)} ${row_count === 1 ? 'row' : 'rows'}`, duration(statistics.elapsed_ms)]
  if (truncated) parts.push('cut at the limit: add a LIMIT or aggregate')
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
