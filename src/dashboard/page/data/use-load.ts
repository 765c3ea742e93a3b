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
    const show = (next: (data: T | undefined) => { data?: T; problem?: ApiFailure }) => {
      if (signal.aborted) return
      setState(({ data }) => ({ ...next(data), isLoading: false }))
      // Also after a failure: a query that took too long may be faster the next time.
      if (everyMs > 0) later(everyMs)
    }
    load(signal)
      .then((data) => show(() => ({ data })))
      .catch((error: unknown) => show((data) => ({ data, problem: failureOf(error) })))
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
