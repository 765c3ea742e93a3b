import type { ComponentChildren, HTMLAttributes } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Scrollable } from './scrollable.tsx'

interface VirtualListProps {
  readonly count: number
  /** In pixels; all rows have it. */
  readonly rowHeight: number
  readonly label: string
  readonly row: (index: number) => ComponentChildren
  /** Told the rows in view, for data that is read on demand. */
  readonly onRange?: (first: number, last: number) => void
  /** Keeps the end in view while rows are added, if it is in view. */
  readonly isFollowing?: boolean
  readonly onFollowing?: (isFollowing: boolean) => void
  /** Scrolls this row into view when it changes. */
  readonly reveal?: number | null
  readonly class?: string
  /** Of the visible part, in pixels; the style sheet decides otherwise. */
  readonly height?: number
  /** The rows are those of a table. */
  readonly isTable?: boolean
  /** Attributes that make it another widget, such as a tree with its keys. */
  readonly attributes?: HTMLAttributes<HTMLDivElement>
  /** A row that is this many pixels higher than the others, because something is open below it. */
  readonly opened?: { readonly index: number; readonly height: number } | undefined
}

/** Rows that are drawn beyond the edges. */
const MARGIN_ROWS = 12
/** Rounding of the browser. */
const END_SLACK_PX = 4

/** A list of rows of one height, of which only those in view exist: it may have any number of rows. */
export function VirtualList(props: VirtualListProps) {
  const { count, rowHeight, label, row, onRange, isFollowing, onFollowing, reveal } = props
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 600 })
  const { opened } = props
  const extra = opened?.height ?? 0
  /** The distance of a row from the top. */
  const topOf = (index: number) => index * rowHeight + (opened !== undefined && index > opened.index ? extra : 0)
  // With a row that is open above them, more rows are drawn than are in view.
  const first = Math.max(0, Math.floor((view.top - extra) / rowHeight) - MARGIN_ROWS)
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + MARGIN_ROWS)

  useLayoutEffect(() => {
    const element = box.current as HTMLDivElement
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  useLayoutEffect(() => {
    const element = box.current
    if (isFollowing && element !== null) element.scrollTop = element.scrollHeight
  }, [count, isFollowing])

  useEffect(() => {
    const element = box.current
    if (element === null || reveal === null || reveal === undefined || reveal < 0) return
    const top = reveal * rowHeight
    const isAbove = top < element.scrollTop
    const isBelow = top + rowHeight > element.scrollTop + element.clientHeight
    if (isAbove || isBelow) element.scrollTop = top - element.clientHeight / 3
  }, [reveal, rowHeight])

  useEffect(() => onRange?.(first, last), [first, last, count])

  const scrolled = () => {
    const element = box.current
    // Browsers report scrolling later, when the list may have gone.
    if (element === null) return
    setView({ top: element.scrollTop, height: element.clientHeight })
    const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - END_SLACK_PX
    if (isAtEnd !== isFollowing) onFollowing?.(isAtEnd)
  }
  const indexes = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at)
  return (
    <Scrollable
      as="div"
      box={box}
      class={`virtual ${props.class ?? ''}`}
      style={props.height === undefined ? undefined : { height: `${props.height}px` }}
      onScroll={scrolled}
      role={props.isTable ? 'rowgroup' : undefined}
      label={label}
      {...props.attributes}
    >
      <div class="virtual-space" role="presentation" style={{ height: `${count * rowHeight + extra}px` }}>
        <div class="virtual-rows" role="presentation" style={{ transform: `translateY(${topOf(first)}px)` }}>
          {indexes.map(row)}
        </div>
      </div>
    </Scrollable>
  )
}
