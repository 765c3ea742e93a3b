import { computed, type Signal, signal } from '@preact/signals'
import { options, type VNode } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { visible } from '../../../base/visible.ts'

export type Theme = 'system' | 'light' | 'dark'

const STORED = 'theme'
const ORDER: readonly Theme[] = ['system', 'light', 'dark']

const isSystemDark = mediaSignal('(prefers-color-scheme: dark)')

export const theme = signal<Theme>(ORDER.find((name) => name === globalThis.localStorage?.getItem(STORED)) ?? 'system')
export const isDark = computed(() => (theme.value === 'system' ? isSystemDark.value : theme.value === 'dark'))

/** Applies the stored choice to the page. */
export function applyTheme(): void {
  document.documentElement.style.colorScheme = theme.peek() === 'system' ? '' : theme.peek()
}

/** Switches to the next theme and stores the choice. */
export function nextTheme(): void {
  theme.value = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] as Theme
  localStorage.setItem(STORED, theme.value)
  applyTheme()
}

/** The navigation is on top, and rows have two lines: as in the style sheet. */
export const isNarrow = mediaSignal('(width < 860px)')

/** Whether the screen fulfils a media query. */
function mediaSignal(query: string): Signal<boolean> {
  const media = globalThis.matchMedia?.(query)
  const state = signal(media?.matches ?? false)
  media?.addEventListener('change', ({ matches }) => {
    state.value = matches
  })
  return state
}

/** Attributes that browsers show or read out. */
const SHOWN = ['title', 'aria-label', 'placeholder', 'alt', 'label'] as const

/**
 * Passes all text of the page through {@link visible}, whichever component shows it: each text node, and each attribute that
 * people see. Values of fields are left alone, so that editing a record does not change its text.
 */
export function showAllText(): void {
  const next = options.vnode
  options.vnode = (node) => {
    if (node.type === null) showText(node as unknown as { props: unknown })
    else if (typeof node.type === 'string') showAttributes(node.props as Record<string, unknown>)
    next?.(node as VNode)
  }
}

/** The `props` of a text node are its text. */
function showText(node: { props: unknown }): void {
  if (typeof node.props === 'string') node.props = visible(node.props)
}

function showAttributes(props: Record<string, unknown>): void {
  for (const name of SHOWN) {
    const value = props[name]
    if (typeof value === 'string') props[name] = visible(value)
  }
}

/** Handles key presses of the whole page while the component is shown. @param handle returns true for its own keys */
export function useKeys(handle: (event: KeyboardEvent) => boolean): void {
  const current = useRef(handle)
  current.current = handle
  // Before the view is painted: whoever sees it may press a key.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (document.querySelector('dialog[open]') !== null) return
      if (current.current(event)) event.preventDefault()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
}

const TYPED = 'input:not([type=checkbox], [type=radio]), textarea, select'

/** The key belongs to a field. */
export function isTyping({ target }: Event): boolean {
  const element = target as HTMLElement
  return element.matches(TYPED) || element.isContentEditable || element.shadowRoot !== null
}

const FOCUSABLE = ':is(a[href], button, input, select, textarea, summary):not(:disabled)'

/**
 * When what has the focus goes away, such as a row that was deleted, what stands in its place gets the focus: without it, the
 * keyboard would begin again at the top of the page.
 */
export function keepFocus(signal: AbortSignal): void {
  /** What had the focus last, and what it was in, from the inside out, each with its place in its parent. */
  let path: (readonly [element: Element, at: number])[] = []
  const remember = ({ target }: Event) => {
    path = []
    for (let each = target as Element | null; each !== null; each = each.parentElement)
      path.push([each, [...(each.parentElement?.children ?? [])].indexOf(each)])
  }
  const keep = () => {
    if (document.activeElement !== document.body || path[0]?.[0].isConnected !== false) return
    const at = path.findIndex(([element]) => element.isConnected)
    const [[parent], [, place]] = [path[at], path[at - 1]] as [(typeof path)[0], (typeof path)[0]]
    path = []
    // What scrolls has the focus itself, so that it does not wander while rows come and go.
    const box = parent.closest<HTMLElement>('[tabindex]')
    const next = parent.children[Math.min(place, parent.children.length - 1)]
    const inPlace = next?.matches(FOCUSABLE) ? (next as HTMLElement) : next?.querySelector<HTMLElement>(FOCUSABLE)
    const isBox = box === parent || box?.matches('[tabindex="0"]')
    const found = isBox ? box : (inPlace ?? box)
    found?.focus({ preventScroll: true })
  }
  /** Who clicks on nothing has left it. What is going away takes the focus with it, and is gone when this runs. */
  const leave = () =>
    queueMicrotask(() => {
      if (document.activeElement === document.body && path[0]?.[0].isConnected) path = []
    })
  document.addEventListener('focusin', remember, { signal })
  document.addEventListener('focusout', leave, { signal })
  const observer = new MutationObserver(keep)
  observer.observe(document.body, { childList: true, subtree: true })
  signal.addEventListener('abort', () => observer.disconnect())
}

/** Saves a text as a file of the user. */
export function saveFile(name: string, type: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
