import { batch, type Signal, signal } from '@preact/signals'
import type { ApiFailure } from './api.ts'
import { failureOf } from './use-load.ts'

export interface Source<T> {
  /** Reads the value. `show` shows a part of it while the rest is being read. */
  readonly load: (signal: AbortSignal, show: (part: T) => void) => Promise<T>
  /** Reads it again after this time. Default: only when asked. */
  readonly everyMs?: number
  /** A planned read is left out unless this is true. */
  readonly isWanted?: () => boolean
}

type Change<T> = (value: T) => T

/**
 * A value that is read from the service and changed by what the feed brings. Changes that arrive during a read are applied
 * to its result as well, so that the read cannot undo them.
 */
export class LiveResource<T> {
  /** Also true until it is first read. */
  readonly isLoading = signal(true)
  /** It has been read at least once. */
  readonly isLoaded = signal(false)
  /** Why the last read failed. */
  readonly problem = signal<ApiFailure | null>(null)
  private readonly state: Signal<T>
  private key: string | undefined
  private loading = new AbortController()
  private changes: Change<T>[] = []
  private timer: ReturnType<typeof setTimeout> | undefined
  private dueMs = Number.POSITIVE_INFINITY

  /** @param closing ends all reads */
  constructor(
    initial: T,
    private readonly source: Source<T>,
    private readonly closing: AbortSignal,
  ) {
    this.state = signal(initial)
    closing.addEventListener('abort', () => this.stop())
  }

  /** Reading it subscribes the component or signal that does. */
  get value(): T {
    return this.state.value
  }

  /** Changes the value at once. */
  update(change: Change<T>): void {
    this.state.value = change(this.state.peek())
    if (this.isLoading.peek()) this.changes.push(change)
  }

  /** Reads the value if it was last opened with another key. @returns whether it was */
  open(key: string): boolean {
    if (key === this.key) return false
    this.key = key
    void this.load()
    return true
  }

  /** Reads the value; an earlier read that has not ended is dropped. */
  async load(read: Source<T>['load'] = this.source.load): Promise<void> {
    this.stop()
    this.loading = new AbortController()
    const { signal } = this.loading
    if (this.closing.aborted) return
    this.isLoading.value = true
    const show = (value: T) => {
      if (!signal.aborted) this.state.value = this.changes.reduce((changed, change) => change(changed), value)
    }
    try {
      const value = await read(signal, show)
      if (signal.aborted) return
      batch(() => {
        show(value)
        this.isLoaded.value = true
        this.end(null)
      })
    } catch (error) {
      if (!signal.aborted) this.end(failureOf(error))
    }
  }

  /** Reads the value within this time. */
  loadSoon(ms: number): void {
    const dueMs = performance.now() + ms
    if (dueMs >= this.dueMs || this.closing.aborted) return
    clearTimeout(this.timer)
    this.dueMs = dueMs
    this.timer = setTimeout(() => {
      this.dueMs = Number.POSITIVE_INFINITY
      if (this.source.isWanted?.() ?? true) void this.load()
    }, ms)
  }

  private end(problem: ApiFailure | null): void {
    this.problem.value = problem
    this.isLoading.value = false
    this.changes = []
    if (this.source.everyMs !== undefined) this.loadSoon(this.source.everyMs)
  }

  private stop(): void {
    this.loading.abort()
    clearTimeout(this.timer)
    this.dueMs = Number.POSITIVE_INFINITY
  }
}
