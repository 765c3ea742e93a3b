/**
 * Helpers that build the page. Text is only ever inserted as text nodes, because reported data is untrusted; the page's
 * Trusted Types policy also forbids `innerHTML` and similar.
 */

/** Undefined and false omit the attribute, true makes it empty. Names and URLs are ours, never an agent's. */
type Attributes = Readonly<Record<string, string | boolean | undefined>>

/** Creates an element: `h('p', { class: 'hint' }, 'Nothing here')`. */
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

/** Does nothing if the text is the same, so that a selection in it survives the refresh. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** A control with a label before it. */
export function labelled(name: string, control: HTMLElement): HTMLElement {
  return h('label', {}, name, control)
}

/** One item of a list on the page. */
export interface Part<T> {
  readonly element: Element
  update(item: T): void
}

/**
 * Returns a function that makes `parent` show exactly the given items, in order. Elements of items that were shown
 * before are reused: focus, selection and expanded parts survive the refresh, and nothing flickers.
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

/** JSON or another long text under a title. Very long texts are truncated until the user asks for the whole. */
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
