import type { ActivityItem } from '../../live/wire.ts'
import type { Api } from './api.ts'
import type { Directory } from './directory.ts'
import { h, labelled, setText } from './dom.ts'
import { openFeed } from './feed.ts'
import { count, shortId, timeOfDay, words } from './format.ts'
import { textOf } from './json.ts'

export interface LiveDeps {
  readonly api: Api
  readonly directory: Directory
  readonly signal: AbortSignal
  /** Called for new activity in the workspace. */
  readonly onActivity: (items: readonly ActivityItem[]) => void
}

/** Older lines are removed. */
const SHOWN_MAX = 300
const PREVIEW_LENGTH_MAX = 200

/** The filter of each choice. */
const CHOICES: Readonly<Record<string, object>> = {
  Everything: {},
  'Info or higher': { level: 'info' },
  'Warnings and errors': { level: 'warn' },
  Errors: { level: 'error' },
  'Runs and tasks': { kind: ['run', 'task'] },
  'Failed runs': { kind: 'run', status: ['failed', 'timed_out'] },
}

/** Live activity of the workspace, newest first. */
export function liveView({ api, directory, signal, onActivity }: LiveDeps) {
  const list = h('ol', { class: 'ticker' })
  const state = h('p', { class: 'hint', role: 'status' }, 'Connecting…')
  const choice = h('select', {}, ...Object.keys(CHOICES).map((name) => h('option', {}, name)))
  const pause = h('button', { type: 'button', 'aria-pressed': 'false' }, 'Pause')
  let isPaused = false
  let missed = 0
  let seen = 0
  let isConnected = false

  const feed = openFeed(api, signal, {
    onActivities(items, skipped) {
      seen += items.length + skipped
      if (isPaused) missed += items.length + skipped
      else show(items)
      say()
      onActivity(items)
    },
    onGap: () => list.prepend(h('li', { class: 'hint' }, 'Some activity before this line was lost.')),
    onState(connected) {
      isConnected = connected
      say()
    },
  })
  choice.addEventListener('change', () => {
    list.replaceChildren()
    seen = 0
    missed = 0
    feed.filter(CHOICES[choice.value] ?? {})
    say()
  })
  pause.addEventListener('click', () => {
    isPaused = !isPaused
    pause.setAttribute('aria-pressed', String(isPaused))
    missed = 0
    say()
  })

  function show(items: readonly ActivityItem[]): void {
    list.prepend(...items.map((item) => line(item, directory)).reverse())
    while (list.childElementCount > SHOWN_MAX) list.lastElementChild?.remove()
  }

  function say(): void {
    const where = isConnected ? 'Live' : 'Reconnecting; nothing will be missed'
    const what = seen === 0 ? 'waiting for activity' : `${count(seen)} since you opened this page`
    setText(state, `${where} · ${isPaused ? `paused, ${count(missed)} not shown` : what}`)
  }

  return {
    element: h(
      'section',
      { class: 'panel', 'aria-label': 'Live' },
      h('div', { class: 'filters' }, labelled('Show', choice), pause),
      state,
      list,
    ),
    refresh: async () => {},
  }
}

function line(activity: ActivityItem, directory: Directory): HTMLElement {
  const { received_at: at, run_id: runId, kind } = activity
  const { level, name, text } = summary(activity)
  return h(
    'li',
    {},
    h('time', { datetime: at, title: at }, timeOfDay(at)),
    h('span', { class: `level ${level}` }, level === '' ? kind : level),
    h('span', { class: 'name' }, name),
    h('a', { href: `#/runs/${runId}` }, `${directory.nameOf(activity.agent_id)} ${shortId(runId)}`),
    h('code', { class: 'preview' }, text.length > PREVIEW_LENGTH_MAX ? `${text.slice(0, PREVIEW_LENGTH_MAX)}…` : text),
  )
}

function summary({ event, task, run }: ActivityItem): { level: string; name: string; text: string } {
  if (event !== undefined) return { level: event.level, name: event.type, text: textOf(event.payload) }
  const record = task ?? run
  const failed = record?.status === 'failed' || record?.status === 'timed_out'
  const name = `${task === undefined ? 'run' : task.name} ${words(record?.status ?? '')}`
  return { level: failed ? 'error' : '', name, text: record?.error_message ?? '' }
}
