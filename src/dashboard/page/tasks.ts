import type { TaskRecord } from '../../tasks/schema.ts'
import type { Api, OnWire } from './api.ts'
import { h, keyedList, type Part, setText, textBlock } from './dom.ts'
import { duration, words } from './format.ts'
import { pretty } from './json.ts'
import type { Run } from './run.ts'
import { type Bar, taskBars } from './task-bars.ts'
import { taskTree } from './task-tree.ts'

type Task = OnWire<TaskRecord>

/** A task in its place in the tree. */
interface Row {
  readonly task: Task
  readonly depth: number
  /** Null for a task that has not begun, or was skipped. */
  readonly bar: Bar | null
}

const TASKS_MAX = 200
const DEPTH_MAX = 8
/** A shorter bar would be invisible. */
const WIDTH_MIN = 0.7
const NO_BAR: Bar = { from: 0, to: 0, ms: 0 }

/** The tasks of a run as a tree, each with a bar for its share of the run's time. */
export function tasksPanel({ api, runId }: { readonly api: Api; readonly runId: string }) {
  const list = h('ol', { class: 'tasks' })
  const none = h('p', { class: 'hint' }, 'No tasks reported.')
  const more = h('p', { class: 'hint' }, `Only the newest ${TASKS_MAX} tasks are shown.`)
  const show = keyedList<Row>(list, ({ task }) => task.id, taskItem)
  more.hidden = none.hidden = true
  return {
    element: h('section', {}, h('h3', {}, 'Tasks'), list, none, more),
    async refresh(run: Run): Promise<void> {
      const page = await api.get<{ items: readonly Task[]; next_cursor: string | null }>(
        `/api/v1/runs/${runId}/tasks`,
        { limit: TASKS_MAX },
      )
      const bars = taskBars(page.items, run, Date.now())
      show(taskTree(page.items).map(({ task, depth }) => ({ task, depth, bar: bars.get(task) ?? null })))
      none.hidden = page.items.length > 0
      more.hidden = page.next_cursor === null
    },
  }
}

function taskItem(): Part<Row> {
  const name = h('span', { class: 'name' })
  const status = h('span')
  const bar = h('span', { class: 'bar' })
  const took = h('span', { class: 'number' })
  const summary = h('summary', {}, name, status, h('span', { class: 'track' }, bar), took)
  const problem = h('p', { class: 'problem' })
  const input = textBlock('Input')
  const output = textBlock('Output')
  const bodies = h('div', { class: 'bodies' }, input.element, output.element)
  const element = h('li', {}, h('details', {}, summary, problem, bodies))
  return {
    element,
    update({ task, depth, bar: span }) {
      setText(name, task.name)
      setText(status, words(task.status))
      status.className = `status ${task.status}`
      element.style.setProperty('--depth', String(Math.min(depth, DEPTH_MAX)))
      bar.className = `bar ${task.status}`
      bar.hidden = span === null
      const { from, to, ms } = span ?? NO_BAR
      const width = Math.max(WIDTH_MIN, to - from)
      bar.style.setProperty('--from', `${Math.min(from, 100 - width)}%`)
      bar.style.setProperty('--width', `${width}%`)
      setText(took, span === null ? '' : duration(ms))
      setText(problem, task.error_message ?? '')
      input.show(task.input === null ? 'none reported' : pretty(task.input))
      output.show(task.output === null ? 'none reported' : pretty(task.output))
    },
  }
}
