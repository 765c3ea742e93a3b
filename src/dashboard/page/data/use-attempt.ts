import { useState } from 'preact/hooks'
import { failureOf } from './use-load.ts'

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
