import type { EventRecord } from '../../runs/schema.ts'
import type { Api, OnWire } from './api.ts'
import { h, labelled, setText, textBlock } from './dom.ts'
import { count, timeOfDay } from './format.ts'
import { pretty, textOf } from './json.ts'

type Event = OnWire<EventRecord>

const LEVELS: readonly Event['level'][] = ['debug', 'info', 'warn', 'error']
const PAGE_LIMIT = 100
/** New events are loaded automatically up to this number; further ones on request. */
const FOLLOWED_MAX = 1_000
const PREVIEW_LENGTH_MAX = 160
/** Shorter pauses count as continued typing. */
const TYPING_PAUSE_MS = 300

/** The events of a run, oldest first, filtered by type and level. New events are appended as they arrive. */
export function eventsPanel({ api, runId }: { readonly api: Api; readonly runId: string }) {
  const list = h('ol', { class: 'events' })
  const more = h('button', { type: 'button' }, 'Load more')
  const state = h('p', { class: 'hint', role: 'status' })
  const filters = eventFilters(() => {
    reading = startReading()
    list.replaceChildren()
    void refresh()
  })
  /** The state of the loaded list. Another filter starts a new one. */
  let reading = startReading()
  more.hidden = true
  more.addEventListener('click', () => void loadPage())

  function startReading() {
    return { after: 0, shown: 0, hasMore: true, busy: false }
  }

  async function loadPage(): Promise<void> {
    const mine = reading
    if (mine.busy) return
    mine.busy = true
    try {
      const query = { ...filters.values(), after_seq: mine.after, limit: PAGE_LIMIT }
      const page = await api.get<{ items: readonly Event[]; next_cursor: string | null }>(
        `/api/v1/runs/${runId}/events`,
        query,
      )
      // The filter has changed in the meantime.
      if (mine !== reading) return
      list.append(...page.items.map(eventItem))
      mine.after = page.items.at(-1)?.seq ?? mine.after
      mine.shown += page.items.length
      mine.hasMore = page.next_cursor !== null
      more.hidden = !mine.hasMore && mine.shown < FOLLOWED_MAX
      setText(state, mine.shown === 0 ? 'No events here yet.' : `${count(mine.shown)}${mine.hasMore ? '+' : ''} shown`)
    } catch (error) {
      if (mine === reading) setText(state, (error as Error).message)
    } finally {
      mine.busy = false
    }
  }

  /** Loads further events, up to the number that is loaded automatically. */
  async function refresh(): Promise<void> {
    if (reading.shown === 0 || (!reading.hasMore && reading.shown < FOLLOWED_MAX)) await loadPage()
  }

  return {
    element: h('section', {}, h('h3', {}, 'Events'), filters.element, list, state, more),
    refresh,
  }
}

function eventFilters(onChange: () => void) {
  const type = h('input', {
    type: 'search',
    placeholder: 'llm.call, tool.*',
    autocomplete: 'off',
    spellcheck: 'false',
  })
  const level = h('select', {}, h('option', { value: '' }, 'Any level'))
  level.append(...LEVELS.slice(1).map((name) => h('option', { value: name }, `${name} or higher`)))
  let typing: ReturnType<typeof setTimeout> | undefined
  type.addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(onChange, TYPING_PAUSE_MS)
  })
  level.addEventListener('change', onChange)
  return {
    element: h(
      'div',
      { class: 'filters', role: 'search', 'aria-label': 'Filter events' },
      labelled('Type', type),
      labelled('Level', level),
    ),
    values: () => ({ type: type.value.trim(), level: level.value }),
  }
}

function eventItem({ type, level, payload, occurred_at }: Event): HTMLElement {
  const text = textOf(payload)
  const details = h(
    'details',
    {},
    h(
      'summary',
      {},
      h('time', { datetime: occurred_at, title: occurred_at }, timeOfDay(occurred_at)),
      h('span', { class: `level ${level}` }, level),
      h('span', { class: 'name' }, type),
      h(
        'code',
        { class: 'preview' },
        text.length > PREVIEW_LENGTH_MAX ? `${text.slice(0, PREVIEW_LENGTH_MAX)}…` : text,
      ),
    ),
  )
  // Most payloads are never expanded.
  details.addEventListener(
    'toggle',
    () => {
      const block = textBlock('Payload')
      block.show(pretty(payload))
      details.append(block.element)
    },
    { once: true },
  )
  return h('li', {}, details)
}
