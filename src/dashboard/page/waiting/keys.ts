import { isTyping, useKeys } from '../context/browser.ts'
import { address, hrefOf, navigate } from '../context/router.ts'
import { moveByKey } from '../parts/table.tsx'
import type { WaitingList } from './waiting-list.ts'

const ROWS = '.pause-row [data-pause]'
const OPEN_ROW = `${ROWS}[aria-expanded=true]`
const ARROWS = new Map([
  ['ArrowDown', 'j'],
  ['ArrowUp', 'k'],
])

/**
 * j and k (or the arrows, from a row) move between the rows, Enter opens one, x chooses it, Escape closes it. a and d lead to
 * the buttons that approve and reject: Enter then decides, so that no single key does.
 * @param decideChosen opens the dialog that decides the chosen ones
 */
export function useListKeys(list: WaitingList, decideChosen: () => void): void {
  useKeys((event) => {
    const { key, target } = event
    const isBox = (target as HTMLElement).matches('.pause-row input')
    if (key === 'Escape' && !isBox && isTyping(event)) {
      ;(target as HTMLElement).blur()
      return true
    }
    if (isTyping(event) && !isBox) return false
    if (key === 'Escape') return closeOpen()
    const row = (target as HTMLElement).closest('.pause-row, .pause-item')?.querySelector<HTMLElement>('[data-pause]')
    const arrow = row === target ? ARROWS.get(key) : undefined
    if (moveByKey(arrow ?? key, document.querySelectorAll<HTMLElement>(ROWS), row ?? document.querySelector(OPEN_ROW)))
      return true
    const id = row?.dataset.pause ?? address.value.path[1]
    if (key === 'x') list.toggle(list.kept.value.filter((line) => line.id === id))
    if (key === 'a' || key === 'd') leadToDecision(list, id, key === 'a' ? 'approve' : 'reject', decideChosen)
    return key === 'x' || key === 'a' || key === 'd'
  })
}

function closeOpen(): boolean {
  const [, id] = address.value.path
  if (id === undefined) return false
  navigate(hrefOf('waiting', [], address.value.query))
  document.querySelector<HTMLElement>(`[data-pause="${id}"]`)?.focus()
  return true
}

function leadToDecision(
  list: WaitingList,
  id: string | undefined,
  wanted: 'approve' | 'reject',
  decideChosen: () => void,
): void {
  const card = document.querySelector<HTMLElement>('.pause')
  const line = list.kept.value.find((each) => each.id === id)
  if (list.chosen.value.size > 0) decideChosen()
  else if (card !== null && address.value.path[1] === id) focusAction(card, wanted)
  else if (line !== undefined) {
    list.wanted = wanted
    navigate(hrefOf('waiting', [line.kind, line.id], address.value.query))
  }
}

function focusAction(card: HTMLElement, action: 'approve' | 'reject'): void {
  card.querySelector<HTMLElement>(`[data-action="${action}"]`)?.focus()
}

/** Scrolls a card that has just opened into view. It takes the focus if a link opened it, not its row. */
export function showCard(card: HTMLElement, list: WaitingList | undefined): void {
  const item = card.closest<HTMLElement>('.pause-item') ?? card
  const { top, bottom } = item.getBoundingClientRect()
  if (top < 0 || bottom > innerHeight) item.scrollIntoView({ block: 'start' })
  if (list?.wanted) focusAction(card, list.wanted)
  else if (!item.contains(document.activeElement)) card.querySelector('h2')?.focus({ preventScroll: true })
  if (list !== undefined) list.wanted = null
}
