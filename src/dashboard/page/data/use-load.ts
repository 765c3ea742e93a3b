import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure } from './api.ts'

/** Data that a component reads from the service. */
export interface Loaded<T> {
  /** The last answer; stays while a newer one is read, also when that fails. */
  readonly data: T | undefined
  /** Why the last attempt failed. */
  readonly problem: ApiFailure | undefined
  readonly isLoading: boolean
  reload(): void
}

export interface LoadOptions {
  /** Reads again after this time, while the page is visible; 0: only when asked. */
  readonly everyMs?: number
  /** What the data is about: an earlier answer about the same stays until the next one. By default, the inputs. */
  readonly subject?: string
}

const RETRY_MS = 3_000

/**
 * Reads data when the component appears and when `inputs` change; answers for earlier inputs are dropped. A transient
 * failure is tried again.
 */
export function useLoad<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  { everyMs = 0, subject }: LoadOptions = {},
): Loaded<T> {
  const [state, setState] = useState<{ data?: T; problem?: ApiFailure; isLoading: boolean }>({ isLoading: true })
  const [round, setRound] = useState(0)
  const shown = useRef<string | undefined>(undefined)
  const key = JSON.stringify(inputs)
  const about = subject ?? key
  // The inputs are the dependencies, as text.
  useEffect(() => {
    const aborting = new AbortController()
    const { signal } = aborting
    let timer: ReturnType<typeof setTimeout> | undefined
    const later = (ms: number) => {
      timer = setTimeout(() => (document.hidden ? later(ms) : setRound((n) => n + 1)), ms)
    }
    const isNew = shown.current !== about
    shown.current = about
    setState(({ data }) => ({ data: isNew ? undefined : data, isLoading: true }))
    load(signal)
      .then((data) => {
        if (signal.aborted) return
        setState({ data, isLoading: false })
        if (everyMs > 0) later(everyMs)
      })
      .catch((error: unknown) => {
        if (signal.aborted) return
        const problem = failureOf(error)
        setState(({ data }) => ({ data, problem, isLoading: false }))
        if (problem.isTransient) later(Math.max(RETRY_MS, problem.retryAfterSeconds * 1_000))
        // A query that took too long may be faster the next time.
        else if (everyMs > 0) later(everyMs)
      })
    return () => {
      aborting.abort()
      clearTimeout(timer)
    }
  }, [key, round, everyMs])
  const reload = () => setRound((n) => n + 1)
  // The effect has yet to drop what belongs to earlier inputs.
  if (shown.current !== about) return { data: undefined, problem: undefined, isLoading: true, reload }
  return { data: state.data, problem: state.problem, isLoading: state.isLoading, reload }
}

/** A bug of this page is reported, and shown like a failure of the service. */
export function failureOf(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error
  reportError(error)
  return new ApiFailure('PAGE', error instanceof Error ? error.message : String(error), 0)
}
