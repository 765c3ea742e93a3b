import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

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
  const first = Math.max(0, Math.floor(view.top / rowHeight) - MARGIN_ROWS)
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
    <div
      ref={box}
      class={`virtual ${props.class ?? ''}`}
      style={props.height === undefined ? undefined : { height: `${props.height}px` }}
      onScroll={scrolled}
      tabIndex={0}
      role={props.isTable ? 'rowgroup' : 'group'}
      aria-label={label}
    >
      <div class="virtual-space" role="presentation" style={{ height: `${count * rowHeight}px` }}>
        <div class="virtual-rows" role="presentation" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {indexes.map(row)}
        </div>
      </div>
    </div>
  )
}
