import type { TaskRecord } from '../../tasks/schema.ts'
import type { Api, OnWire } from './api.ts'
import { h, keyedList, type Part, setText, textBlock } from './dom.ts'
import { duration, words } from './format.ts'
import { pretty } from './json.ts'
import type { Run } from './run.ts'
import { taskTree } from './task-tree.ts'

type Task = OnWire<TaskRecord>

/** A task in its place: `from` and `to` in percent of the time the run has taken. */
interface Bar {
  readonly task: Task
  readonly depth: number
  readonly from: number
  readonly to: number
  readonly ms: number
}

const TASKS_MAX = 200
const DEPTH_MAX = 8
/** A bar that is shorter could not be seen. */
const WIDTH_MIN = 0.7

/** The tasks of a run as a tree, each with a bar for its share of the run's time. */
export function tasksPanel({ api, runId }: { readonly api: Api; readonly runId: string }) {
  const list = h('ol', { class: 'tasks' })
  const none = h('p', { class: 'hint' }, 'No tasks reported.')
  const more = h('p', { class: 'hint' }, `Only the newest ${TASKS_MAX} tasks are shown.`)
  const show = keyedList<Bar>(list, ({ task }) => task.id, taskItem)
  more.hidden = none.hidden = true
  return {
    element: h('section', {}, h('h3', {}, 'Tasks'), list, none, more),
    async refresh(run: Run): Promise<void> {
      const page = await api.get<{ items: readonly Task[]; next_cursor: string | null }>(
        `/api/v1/runs/${runId}/tasks`,
        { limit: TASKS_MAX },
      )
      show(bars(page.items, run))
      none.hidden = page.items.length > 0
      more.hidden = page.next_cursor === null
    },
  }
}

function bars(tasks: readonly Task[], run: Run): Bar[] {
  const now = Date.now()
  const spans = tasks.map((task) => {
    const start = Date.parse(task.created_at)
    return { start, end: Math.max(start, isLive(task) ? now : Date.parse(task.updated_at)) }
  })
  const start = Math.min(Date.parse(run.started_at ?? run.created_at), ...spans.map((span) => span.start))
  const end = Math.max(run.completed_at === null ? now : Date.parse(run.completed_at), ...spans.map((span) => span.end))
  const percent = (at: number) => ((at - start) / Math.max(1, end - start)) * 100
  const spanOf = new Map(tasks.map((task, index) => [task, spans[index]]))
  return taskTree(tasks).map(({ task, depth }) => {
    const span = spanOf.get(task) ?? { start, end }
    return { task, depth, from: percent(span.start), to: percent(span.end), ms: span.end - span.start }
  })
}

function taskItem(): Part<Bar> {
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
    update({ task, depth, from, to, ms }) {
      setText(name, task.name)
      setText(status, words(task.status))
      status.className = `status ${task.status}`
      const width = Math.max(WIDTH_MIN, to - from)
      element.style.setProperty('--depth', String(Math.min(depth, DEPTH_MAX)))
      bar.className = `bar ${task.status}`
      bar.style.setProperty('--from', `${Math.min(from, 100 - width)}%`)
      bar.style.setProperty('--width', `${width}%`)
      setText(took, task.status === 'pending' ? '' : duration(ms))
      setText(problem, task.error_message ?? '')
      input.show(task.input === null ? 'none reported' : pretty(task.input))
      output.show(task.output === null ? 'none reported' : pretty(task.output))
    },
  }
}

function isLive({ status }: Task): boolean {
  return status === 'pending' || status === 'running'
}
