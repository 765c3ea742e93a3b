import type { Api } from './api.ts'
import type { Directory } from './directory.ts'
import { h, keyedList, setText } from './dom.ts'
import { count } from './format.ts'
import { listPending, newestFirst, type Pause } from './pause.ts'
import { pauseCard } from './pause-card.ts'
import { type NamedPause, WatchedPauses } from './watched-pauses.ts'

export interface WaitingDeps {
  readonly api: Api
  readonly directory: Directory
}

/** How often the number of waiting items is refreshed while another view is shown. */
const BADGE_REFRESH_MS = 5_000

/** Pending approvals and questions of hosted runs, newest first, each with a form to decide it. */
export function waitingView({ api, directory }: WaitingDeps) {
  const list = h('ol', { class: 'pauses' })
  const none = h('p', { class: 'empty' }, 'Nothing is waiting for a person.')
  const state = h('p', { class: 'hint', role: 'status' })
  const badge = h('span', { class: 'badge', hidden: true })
  const element = h('section', { class: 'waiting', 'aria-label': 'Waiting' }, state, none, list)
  const watched = new WatchedPauses(api)
  const cards = new Map<string, ReturnType<typeof pauseCard>>()
  let toFocus: string | null = null
  let askedAtMs = Number.NEGATIVE_INFINITY

  const watch = (pause: Pause) => watched.add(pause)
  const show = keyedList<Pause>(
    list,
    ({ id }) => id,
    (pause) => {
      const card = pauseCard(pause, { api, directory, onTouched: watch, onDecided: watch })
      cards.set(pause.id, card)
      return card
    },
  )
  none.hidden = true

  async function refresh(): Promise<void> {
    askedAtMs = performance.now()
    const { pauses, hasMore } = await listPending(api)
    const listed = new Map(pauses.map((pause) => [pause.id, pause]))
    await watched.update(listed)
    const shown = new Map(listed)
    for (const pause of watched.known()) shown.set(pause.id, pause)
    show([...shown.values()].sort(newestFirst))
    for (const id of cards.keys()) if (!shown.has(id)) cards.delete(id)
    none.hidden = shown.size > 0
    badge.hidden = pauses.length === 0
    setText(badge, `${count(pauses.length)}${hasMore ? '+' : ''}`)
    if (watched.isMissing) setText(state, 'This link refers to something that is not in this workspace.')
    else setText(state, hasMore ? 'Only the newest are shown; more appear as these are decided.' : '')
    focusNamed()
  }

  /** Scrolls to the item that the link names, once. */
  function focusNamed(): void {
    const card = toFocus === null || element.hidden ? undefined : cards.get(toFocus)
    if (card === undefined) return
    toFocus = null
    card.focus()
  }

  return {
    element,
    /** The number of waiting items, for the link to this view. */
    badge,
    /** Called when the user opens the view. @param named the item that the link names */
    open(named: NamedPause | null): void {
      watched.open(named)
      toFocus = named?.id ?? null
    },
    refresh,
    /** Does nothing while the view is shown, because it is refreshed anyway. */
    async refreshBadge(): Promise<void> {
      if (element.hidden && performance.now() - askedAtMs > BADGE_REFRESH_MS) await refresh()
    },
    /** Called when a run starts to wait: the next refresh reads the list. */
    invalidate(): void {
      askedAtMs = Number.NEGATIVE_INFINITY
    },
  }
}
