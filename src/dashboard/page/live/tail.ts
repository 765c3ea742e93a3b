import { batch, signal } from '@preact/signals'
import type { Feed, Subscription } from '../data/feed.ts'
import type { Activity } from '../data/records.ts'

export const LIVE_CHOICES: readonly (readonly [value: string, title: string])[] = [
  ['', 'Everything'],
  ['event', 'Events'],
  ['task', 'Tasks'],
  ['run', 'Runs'],
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

/** A line of the tail: an activity, or the note that some is lost. */
export type TailLine = Activity | { readonly cursor: string; readonly gap: true }

const LINES_MAX = 5_000
/** More would not be readable; what is left out is counted. */
const PER_SECOND_MAX = 10_000
const RATE_WINDOW_MS = 2_000
/** Between two renderings: faster ones cannot be read, and would take the time of scrolling and clicks. */
const DRAW_MS = 50

/**
 * The newest activity that a filter selects. A pause ends the subscription, and the end of the
 * pause resumes it at the same position, so that a pause loses nothing and costs no memory.
 */
export class Tail {
  readonly lines = signal<readonly TailLine[]>([])
  readonly seen = signal(0)
  readonly skipped = signal(0)
  /** Activities per second. */
  readonly rate = signal(0)
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
    this.lines.value = []
    this.seen.value = 0
    this.skipped.value = 0
    if (!this.isPaused.value) this.subscribe()
  }

  pause(): void {
    this.isPaused.value = true
    this.resumeAfter = this.subscription?.cursor()
    this.subscription?.stop()
  }

  resume(): void {
    this.isPaused.value = false
    this.subscribe()
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
    if (this.fresh.length > LINES_MAX) this.fresh.splice(0, this.fresh.length - LINES_MAX)
    this.freshCount += items.length + skipped
    this.freshSkipped += skipped
    this.arrivals.push({ atMs: performance.now(), count: items.length + skipped })
    this.drawing ??= setTimeout(() => this.draw(), DRAW_MS)
  }

  private draw(): void {
    this.drawing = undefined
    const kept = Math.max(0, LINES_MAX - this.fresh.length)
    batch(() => {
      this.lines.value = [...(kept === 0 ? [] : this.lines.value.slice(-kept)), ...this.fresh]
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
    const count = this.arrivals.reduce((sum, each) => sum + each.count, 0)
    this.rate.value = Math.round((count / RATE_WINDOW_MS) * 1_000)
  }
}
