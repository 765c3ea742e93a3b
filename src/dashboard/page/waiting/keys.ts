import { isTyping } from '../context/browser.ts'
import { address, hrefOf, navigate } from '../context/router.ts'
import { moveByKey, useRowKeys } from '../parts/table.tsx'
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
  const others = (event: KeyboardEvent) => {
    const { key } = event
    const target = event.target as HTMLElement
    if (isTyping(event)) {
      if (key === 'Escape') target.blur()
      return key === 'Escape'
    }
    if (key === 'Escape') return closeOpen()
    const arrow = target.matches(ROWS) ? ARROWS.get(key) : undefined
    if (arrow !== undefined) return moveByKey(arrow, rows(), target)
    const id = rowOf(target)?.dataset.pause ?? address.value.path[1]
    if (key === 'x') list.toggle(list.kept.value.filter((line) => line.id === id))
    if (key === 'a' || key === 'd') leadToDecision(list, id, key === 'a' ? 'approve' : 'reject', decideChosen)
    return key === 'x' || key === 'a' || key === 'd'
  }
  const current = () => rowOf(document.activeElement) ?? document.querySelector<HTMLElement>(OPEN_ROW)
  useRowKeys({ rows, current, others })
}

function rows(): Iterable<HTMLElement> {
  return document.querySelectorAll<HTMLElement>(ROWS)
}

function rowOf(element: Element | null): HTMLElement | null | undefined {
  return element?.closest('.pause-row, .pause-item')?.querySelector<HTMLElement>('[data-pause]')
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
