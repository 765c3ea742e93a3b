/**
 * What the page builds itself from. Texts become text nodes and nothing else: what agents report is hostile until proven
 * otherwise, and the page's Trusted Types policy forbids `innerHTML` and its kin altogether.
 */

/** Undefined and false leave the attribute out, true makes it empty. Names and addresses are ours, never an agent's. */
type Attributes = Readonly<Record<string, string | boolean | undefined>>

/** An element, as in `h('p', { class: 'hint' }, 'Nothing here')`. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...children)
  return element
}

/** Leaves a text alone that is right already, so that a selection in it survives the refresh. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** A control with its name in front of it. */
export function labelled(name: string, control: HTMLElement): HTMLElement {
  return h('label', {}, name, control)
}

/** One item of a list on the page. */
export interface Part<T> {
  readonly element: Element
  update(item: T): void
}

/**
 * A function that makes `parent` show just the items it is given, in their order. The element of an item that was there
 * before stays: focus, selection and what is unfolded survive the refresh, and nothing flickers.
 */
export function keyedList<T>(parent: Element, keyOf: (item: T) => string, create: (item: T) => Part<T>) {
  const parts = new Map<string, Part<T>>()
  return (items: readonly T[]): void => {
    const wanted = new Set(items.map(keyOf))
    for (const [key, { element }] of parts) {
      if (wanted.has(key)) continue
      element.remove()
      parts.delete(key)
    }
    let next = parent.firstElementChild
    for (const item of items) {
      const part = parts.get(keyOf(item)) ?? create(item)
      parts.set(keyOf(item), part)
      part.update(item)
      if (part.element === next) next = next.nextElementSibling
      else parent.insertBefore(part.element, next)
    }
  }
}

const SHOWN_LENGTH_MAX = 50_000

/** JSON or another long text under its title, to be read and copied. Very long ones are cut until somebody asks for all. */
export function textBlock(title: string): { readonly element: HTMLElement; show(text: string): void } {
  const pre = h('pre', { tabindex: '0', 'aria-label': title })
  const all = h('button', { type: 'button', class: 'quiet' })
  const element = h('section', {}, h('h3', {}, title), pre, all)
  let full = ''
  let shownMax = SHOWN_LENGTH_MAX
  const render = () => {
    setText(pre, full.slice(0, shownMax))
    all.hidden = full.length <= shownMax
    setText(all, `Show all ${full.length.toLocaleString()} characters`)
  }
  all.addEventListener('click', () => {
    shownMax = Number.POSITIVE_INFINITY
    render()
  })
  return {
    element,
    show(text) {
      full = text
      render()
    },
  }
}
