import { useEffect, useRef } from 'preact/hooks'
import { panned, placeOf, type TimeWindow, tickLabel, ticksOf, zoomed } from './time-window.ts'

export const ZOOM_STEP = 0.6
const PAN_STEP = 0.25

interface ZoomableProps {
  readonly shownRange: TimeWindow
  readonly whole: TimeWindow
  readonly onZoom: (to: TimeWindow) => void
  readonly children: preact.ComponentChildren
}

/** Ctrl and the wheel zoom around the pointer, Shift and the wheel move the window. */
export function Zoomable({ shownRange, whole, onZoom, children }: ZoomableProps) {
  const element = useRef<HTMLDivElement>(null)
  const current = useRef({ shownRange, whole, onZoom })
  current.current = { shownRange, whole, onZoom }
  useEffect(() => {
    const box = element.current as HTMLDivElement
    const turn = (event: WheelEvent) => {
      const { shownRange: shown, whole: all, onZoom: zoom } = current.current
      const track = box.querySelector('.axis-track')?.getBoundingClientRect()
      if (track === undefined || !(event.ctrlKey || event.metaKey || event.shiftKey)) return
      event.preventDefault()
      const direction = Math.sign(event.deltaY || event.deltaX)
      if (event.shiftKey) return zoom(panned(shown, all, direction * PAN_STEP))
      const share = Math.min(1, Math.max(0, (event.clientX - track.left) / track.width))
      const at = shown.fromMs + share * (shown.toMs - shown.fromMs)
      zoom(zoomed(shown, all, at, direction > 0 ? 1 / ZOOM_STEP : ZOOM_STEP))
    }
    box.addEventListener('wheel', turn, { passive: false })
    return () => box.removeEventListener('wheel', turn)
  }, [])
  return (
    <div ref={element} class="waterfall-body">
      {children}
    </div>
  )
}

export function Axis({ shownRange, whole }: { readonly shownRange: TimeWindow; readonly whole: TimeWindow }) {
  return (
    <div class="axis" aria-hidden="true">
      <span />
      <div class="axis-track">
        {ticksOf(shownRange, whole).map((at) => (
          <span key={at} style={{ left: `${placeOf(whole.fromMs + at, shownRange)}%` }}>
            {tickLabel(at)}
          </span>
        ))}
      </div>
      <span />
    </div>
  )
}
