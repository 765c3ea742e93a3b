import { batch, signal } from '@preact/signals'
import type { Feed, Subscription } from '../data/feed.ts'
import { textOf } from '../data/json.ts'
import type { Activity } from '../data/records.ts'

export const LIVE_CHOICES: readonly (readonly [value: string, title: string])[] = [
  ['', 'Everything'],
  ['event', 'Events'],
  ['task', 'Tasks'],
  ['run', 'Runs'],
  ['score', 'Scores'],
  ['failed', 'Failed runs'],
]

/** The filter of the feed that an address names. A type without `*` is the start of one, so that it works while it is typed. */
export function feedFilterOf({ level, agent, kind, type = '' }: Readonly<Record<string, string>>): object {
  const types = type.split(/[\s,]+/).filter((each) => each !== '')
  return {
    ...(agent && { agent_id: agent }),
    ...(kind === 'failed' ? { kind: 'run', status: ['failed', 'timed_out'] } : kind && { kind }),
    ...(level && { level }),
    ...(types.length > 0 && { type: types.map((each) => (each.endsWith('*') ? each : `${each}*`)) }),
  }
}

/** A line of the tail: an activity, or a note that some was lost. */
export type TailLine = Activity | { readonly cursor: string; readonly gap: true }

const LINES_MAX = 5_000
/** The service sends no more than this, and counts what it leaves out. */
const PER_SECOND_MAX = 10_000
const RATE_WINDOW_MS = 2_000
/** Between two renderings: faster ones cannot be read, and would take the time of scrolling and clicks. */
const DRAW_MS = 50
/** Lines per second that are shown: nobody reads more, so of a higher rate a sample is shown. Shorter bursts are whole. */
const SHOWN_PER_SECOND_MAX = 200
const BURST_MAX = 1_000

/** All words of a line that a search looks at, in lower case. */
export function searchedText(line: TailLine): string {
  if ('gap' in line) return ''
  const { event, task, run, score, run_id } = line
  const found = event
    ? [event.type, event.level, event.payload]
    : task
      ? [task.name, task.status, task.error_message, task.input, task.output]
      : score
        ? [score.name, score.label, score.text, score.comment, score.source]
        : [run?.status, run?.external_run_id, run?.error_message, run?.tags, run?.metadata]
  return [run_id, ...found]
    .map((value) => textOf(value ?? ''))
    .join(' ')
    .toLowerCase()
}

/** Whether a line is kept before others when only a sample is shown: failures, and notes of what is lost. */
function isImportant(line: TailLine): boolean {
  if ('gap' in line) return true
  return (
    line.event?.level === 'error' || (line.task ?? line.run)?.status === 'failed' || line.run?.status === 'timed_out'
  )
}

/** At most `max` of the lines, in their order: failures first, and the others evenly. */
export function sampleOf(lines: readonly TailLine[], max: number): readonly TailLine[] {
  if (lines.length <= max) return lines
  const important = lines.filter(isImportant)
  const others = important.length >= max ? [] : lines.filter((line) => !isImportant(line))
  const kept = new Set([...evenly(important, max), ...evenly(others, max - important.length)])
  return lines.filter((line) => kept.has(line))
}

function evenly<T>(list: readonly T[], max: number): readonly T[] {
  if (list.length <= max) return list
  return Array.from({ length: Math.max(0, max) }, (_, at) => list[Math.floor((at * list.length) / max)] as T)
}

/**
 * The newest activity that a filter selects, or a sample of it at a high rate. A pause ends the subscription, and the end of the
 * pause resumes it at the same position, so that a pause loses nothing and costs no memory.
 */
export class Tail {
  readonly lines = signal<readonly TailLine[]>([])
  readonly seen = signal(0)
  /** Left out by the service. */
  readonly skipped = signal(0)
  /** Activities per second. */
  readonly rate = signal(0)
  /** One of this many lines is shown; 1: all are. */
  readonly sampledFrom = signal(1)
  readonly isPaused = signal(false)
  /** New activity arrives from now on. */
  readonly isStarted = signal(false)
  private subscription: Subscription | undefined
  /** Not drawn yet. */
  private fresh: TailLine[] = []
  private freshCount = 0
  private freshSkipped = 0
  private drawing: ReturnType<typeof setTimeout> | undefined
  private gaps = 0
  private arrivals: { readonly atMs: number; readonly count: number }[] = []
  /** How many lines matched the search, and how many of those are shown. */
  private draws: { readonly atMs: number; readonly found: number; readonly shown: number }[] = []
  /** How many lines may be shown now. */
  private room = BURST_MAX
  private roomAtMs = performance.now()
  /** The lines that another search starts from; `lines` are those that match the present one. */
  private all: readonly TailLine[] = []
  private text = ''
  private readonly timer = setInterval(() => this.measure(), 500)
  private resumeAfter: string | undefined

  constructor(
    private readonly feed: Feed,
    private filter: object,
  ) {
    this.subscribe()
  }

  close(): void {
    this.subscription?.stop()
    clearInterval(this.timer)
    clearTimeout(this.drawing)
  }

  /** Starts over with new activity that another filter selects. */
  select(filter: object): void {
    if (JSON.stringify(filter) === JSON.stringify(this.filter)) return
    this.filter = filter
    this.subscription?.stop()
    this.resumeAfter = undefined
    this.forget()
    this.all = []
    this.lines.value = []
    this.seen.value = 0
    this.skipped.value = 0
    if (!this.isPaused.value) this.subscribe()
  }

  /** Shows only lines with this text, present and new ones. */
  search(text: string): void {
    const wanted = text.toLowerCase()
    if (wanted === this.text) return
    this.text = wanted
    this.lines.value = this.matching(this.all)
  }

  pause(): void {
    if (this.isPaused.value) return
    this.isPaused.value = true
    this.resumeAfter = this.subscription?.cursor()
    this.subscription?.stop()
  }

  /** Continues where it was paused. @param isSkipping continues now instead, without what happened meanwhile */
  resume(isSkipping = false): void {
    if (isSkipping) this.resumeAfter = undefined
    // What happened during the pause is shown as far as there is room for lines.
    this.room = LINES_MAX
    this.isPaused.value = false
    this.subscribe()
  }

  private matching(lines: readonly TailLine[]): readonly TailLine[] {
    return this.text === '' ? lines : lines.filter((line) => searchedText(line).includes(this.text))
  }

  private subscribe(): void {
    this.isStarted.value = false
    const handlers = {
      onStart: () => {
        this.isStarted.value = true
      },
      onItems: (items: readonly Activity[], skipped: number) => this.take(items, skipped),
      onGap: () => this.take([{ cursor: `gap ${++this.gaps}`, gap: true }], 0),
    }
    this.subscription = this.feed.subscribe(this.filter, handlers, {
      after: this.resumeAfter,
      maxPerSecond: PER_SECOND_MAX,
    })
  }

  private take(items: readonly TailLine[], skipped: number): void {
    for (const item of items) this.fresh.push(item)
    if (this.fresh.length > LINES_MAX) this.fresh = [...sampleOf(this.fresh, LINES_MAX / 2)]
    this.freshCount += items.length + skipped
    this.freshSkipped += skipped
    this.arrivals.push({ atMs: performance.now(), count: items.length + skipped })
    this.drawing ??= setTimeout(() => this.draw(), DRAW_MS)
  }

  private draw(): void {
    this.drawing = undefined
    const found = this.matching(this.fresh)
    const atMs = performance.now()
    const room = Math.max(
      this.room,
      Math.min(BURST_MAX, this.room + ((atMs - this.roomAtMs) / 1_000) * SHOWN_PER_SECOND_MAX),
    )
    const shown = sampleOf(found, Math.floor(room))
    this.room = room - shown.length
    this.roomAtMs = atMs
    this.draws.push({ atMs, found: found.length, shown: shown.length })
    this.all = newest(this.all, shown)
    batch(() => {
      if (shown.length > 0) this.lines.value = newest(this.lines.value, shown)
      this.seen.value += this.freshCount
      this.skipped.value += this.freshSkipped
    })
    this.forget()
  }

  private forget(): void {
    this.fresh = []
    this.freshCount = 0
    this.freshSkipped = 0
  }

  private measure(): void {
    const since = performance.now() - RATE_WINDOW_MS
    this.arrivals = this.arrivals.filter(({ atMs }) => atMs >= since)
    this.draws = this.draws.filter(({ atMs }) => atMs >= since)
    const sum = (counts: readonly number[]) => counts.reduce((total, each) => total + each, 0)
    const found = sum(this.draws.map((draw) => draw.found))
    const shown = sum(this.draws.map((draw) => draw.shown))
    batch(() => {
      this.rate.value = Math.round((sum(this.arrivals.map(({ count }) => count)) / RATE_WINDOW_MS) * 1_000)
      this.sampledFrom.value = shown === 0 ? 1 : Math.round(found / shown)
    })
  }
}

function newest(lines: readonly TailLine[], fresh: readonly TailLine[]): readonly TailLine[] {
  const kept = Math.max(0, LINES_MAX - fresh.length)
  return [...(kept === 0 ? [] : lines.slice(-kept)), ...fresh]
}
