import { batch, type Signal, signal } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiFailure } from './api.ts'

export interface Source<T> {
  /** Reads the value. `show` shows a part of it while the rest is being read. */
  readonly load: (signal: AbortSignal, show: (part: T) => void) => Promise<T>
  /** Reads it again after this time. Default, and for 0: only when asked. */
  readonly everyMs?: () => number
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
      else this.plan()
    }, ms)
  }

  /** How far it is read, for what shows it. @param data of its value; undefined: not known yet */
  reading<D>(data: D | undefined): Loading<D> {
    const { problem, isLoading } = this
    return { data, problem: problem.value, isLoading: isLoading.value, reload: () => void this.load() }
  }

  private end(problem: ApiFailure | null): void {
    this.problem.value = problem
    this.isLoading.value = false
    this.changes = []
    this.plan()
  }

  private plan(): void {
    const everyMs = this.source.everyMs?.() ?? 0
    if (everyMs > 0) this.loadSoon(everyMs)
  }

  private stop(): void {
    this.loading.abort()
    clearTimeout(this.timer)
    this.dueMs = Number.POSITIVE_INFINITY
  }
}

/** Data that a component reads from the service, for `Loaded` of `parts/states.tsx`. */
export interface Loading<T> {
  /** The last answer; stays while a newer one is read, also when that fails. */
  readonly data: T | undefined
  /** Why the last attempt failed. */
  readonly problem: ApiFailure | null
  readonly isLoading: boolean
  reload(): void
}

interface LoadOptions {
  /** Reads again after this time, while the page is visible; 0: only when asked. */
  readonly everyMs?: number
  /** What the data is about: an earlier answer about the same stays until the next one. By default, the inputs. */
  readonly subject?: string
}

/** Reads data when the component appears and when `inputs` change; answers for earlier inputs are dropped. */
export function useLoad<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  { everyMs = 0, subject }: LoadOptions = {},
): Loading<T> {
  const latest = useRef({ load, everyMs })
  latest.current = { load, everyMs }
  const key = JSON.stringify(inputs)
  const [resource, closing] = useMemo(() => {
    const closing = new AbortController()
    const source: Source<T | undefined> = {
      load: (signal) => latest.current.load(signal),
      // Also after a failure: a query that took too long may be faster the next time.
      everyMs: () => latest.current.everyMs,
      isWanted: () => !document.hidden,
    }
    return [new LiveResource<T | undefined>(undefined, source, closing.signal), closing] as const
  }, [subject ?? key])
  useEffect(() => () => closing.abort(), [closing])
  useEffect(() => void resource.open(`${key} ${everyMs}`), [resource, key, everyMs])
  return resource.reading(resource.value)
}

/** A list that is read again for other filters: an empty one may still be of the filters before. */
export function loadingList<T>(resource: LiveResource<readonly T[]>): Loading<readonly T[]> {
  const { value, problem, isLoading } = resource
  const isKnown = value.length > 0 || (!isLoading.value && problem.value === null)
  return resource.reading(isKnown ? value : undefined)
}

/** What is said of an edit that would have overwritten another one. */
const CHANGED = 'Somebody else has changed this. If you do not see their version yet, load the page again.'

/** Why something has failed, for people. A bug of this page is reported, and shown like a failure of the service. */
export function failureOf(error: unknown): ApiFailure {
  if (error instanceof ApiFailure)
    return error.about.reason === 'version_changed' ? new ApiFailure(error.code, CHANGED, 0) : error
  reportError(error)
  return new ApiFailure('PAGE', error instanceof Error ? error.message : String(error), 0)
}

/** Does what a button or a form asks for; `problem` says why the last attempt failed, if it did. */
export function useAttempt() {
  const [problem, setProblem] = useState('')
  const attempt = async (work: () => Promise<unknown>) => {
    setProblem('')
    await work().catch((error: unknown) => setProblem(failureOf(error).message))
  }
  /** A handler for forms. */
  const submit = (work: () => Promise<unknown>) => (event: Event) => {
    event.preventDefault()
    void attempt(work)
  }
  return { problem, attempt, submit }
}
