import { signal } from '@preact/signals'

/** As in `style/narrow.css`. */
const narrow = globalThis.matchMedia?.('(width < 860px)')

/** The navigation is on top, and rows have two lines. */
export const isNarrow = signal(narrow?.matches ?? false)
narrow?.addEventListener('change', ({ matches }) => {
  isNarrow.value = matches
})
