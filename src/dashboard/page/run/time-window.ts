/** A part of a run's time, in Unix milliseconds. */
export interface TimeWindow {
  readonly fromMs: number
  readonly toMs: number
}

const SPAN_MS_MIN = 1
const TICKS_MAX = 6
const LABEL_SHARE = 0.08
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5,
  864e5,
]

/** Magnifies around a point, within the whole. @param factor below 1 shows less */
export function zoomed(window: TimeWindow, whole: TimeWindow, atMs: number, factor: number): TimeWindow {
  const length = Math.max(SPAN_MS_MIN, (window.toMs - window.fromMs) * factor)
  if (length >= whole.toMs - whole.fromMs) return whole
  const share = (atMs - window.fromMs) / Math.max(1, window.toMs - window.fromMs)
  return within({ fromMs: atMs - share * length, toMs: atMs + (1 - share) * length }, whole)
}

/** Moves by a share of its length, within the whole. */
export function panned(window: TimeWindow, whole: TimeWindow, share: number): TimeWindow {
  const by = (window.toMs - window.fromMs) * share
  return within({ fromMs: window.fromMs + by, toMs: window.toMs + by }, whole)
}

/** Marks for an axis that begins with the run: offsets from `whole.fromMs`, in milliseconds. */
export function ticksOf({ fromMs, toMs }: TimeWindow, whole: TimeWindow): number[] {
  const length = toMs - fromMs
  const step = STEPS.find((size) => length / size <= TICKS_MAX) ?? 864e5 * Math.ceil(length / 864e5 / TICKS_MAX)
  const first = Math.ceil((fromMs - whole.fromMs) / step) * step
  const ticks: number[] = []
  // A mark at the very end would have no room for its label.
  const last = toMs - whole.fromMs - length * LABEL_SHARE
  for (let at = first; at <= last; at += step) ticks.push(at)
  return ticks
}

/** The place of a moment in the window, in percent; may be outside. */
export function placeOf(atMs: number, { fromMs, toMs }: TimeWindow): number {
  return ((atMs - fromMs) / Math.max(SPAN_MS_MIN, toMs - fromMs)) * 100
}

function within({ fromMs, toMs }: TimeWindow, whole: TimeWindow): TimeWindow {
  const length = toMs - fromMs
  const from = Math.min(Math.max(fromMs, whole.fromMs), whole.toMs - length)
  return { fromMs: from, toMs: from + length }
}

/** The label of a mark: `0`, `500 ms`, `1.5 s`, `2 min`, `1:15 min`, `2:30 h`. */
export function tickLabel(ms: number): string {
  if (ms === 0) return '0'
  if (ms < 1_000) return `${ms} ms`
  if (ms < 60_000) return `${ms / 1_000} s`
  return ms < 3_600_000 ? `${sixtieths(ms / 60_000)} min` : `${sixtieths(ms / 3_600_000)} h`
}

/** `2`, `1:15`. */
function sixtieths(value: number): string {
  const whole = Math.floor(value)
  const rest = Math.round((value - whole) * 60)
  return rest === 0 ? String(whole) : `${whole}:${String(rest).padStart(2, '0')}`
}
