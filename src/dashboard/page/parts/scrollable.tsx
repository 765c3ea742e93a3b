import { type ComponentChildren, type HTMLAttributes, h, type RefObject } from 'preact'

interface ScrollableProps extends Omit<HTMLAttributes<HTMLElement>, 'ref'> {
  readonly as: 'pre' | 'div' | 'ol'
  readonly label: string
  readonly box?: RefObject<HTMLDivElement | null>
  readonly children: ComponentChildren
}

/**
 * A part of a view that scrolls by itself: a list, or else a group. It can have the focus, without which not all browsers
 * let the keyboard scroll it, and a name for those who do not see it.
 */
export function Scrollable({ as, label, role, box, ...attributes }: ScrollableProps) {
  const ownRole = role ?? (as === 'ol' ? undefined : 'group')
  return h(as, { ref: box ?? null, tabIndex: 0, role: ownRole, 'aria-label': label, ...attributes })
}
