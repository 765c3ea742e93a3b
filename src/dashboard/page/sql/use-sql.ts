import { useEffect, useRef, useState } from 'preact/hooks'
import { saveFile } from '../context/browser.ts'
import { address, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Params, Result } from '../data/api.ts'
import { failureOf } from '../data/loading.ts'
import { addressOf, paramsOf, remember, valuesOf } from './sql-state.ts'

const TYPES = { csv: 'text/csv', parquet: 'application/vnd.apache.parquet' }
const WRITE_PAUSE_MS = 400

/** The state of the SQL view: what the user writes, which the address follows, and the last answer. */
export function useSql() {
  const { api } = useSession()
  const given = address.value.query
  const [text, setText] = useState(given.q ?? '')
  // Only this is written into the editor, never `text`: what the editor reports could then overtake what is typed since.
  const [shown, setShown] = useState({ text })
  const [values, setValues] = useState(valuesOf(given))
  const [result, setResult] = useState<Result | null>(null)
  const [problem, setProblem] = useState('')
  const [isRunning, setRunning] = useState(false)
  const aborting = useRef(new AbortController())

  useEffect(() => {
    const timer = setTimeout(() => writeAddress(text, values), WRITE_PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text, values])

  const run = async (query = text, params = values) => {
    if (query.trim() === '') return
    aborting.current.abort()
    aborting.current = new AbortController()
    const { signal } = aborting.current
    setRunning(true)
    setProblem('')
    writeAddress(query, params)
    try {
      const body = { query, params: paramsOf(query, params) as Params }
      const answer = await api.post<Result>('/api/v1/query', body, signal)
      setResult(answer)
      remember(query)
    } catch (error) {
      if (signal.aborted) return
      setResult(null)
      setProblem(failureOf(error).message)
    }
    setRunning(false)
  }

  const stop = () => {
    aborting.current.abort()
    setRunning(false)
  }

  const download = async (format: keyof typeof TYPES) => {
    try {
      const response = await api.raw('/api/v1/query', { query: text, params: paramsOf(text, values), format })
      saveFile(`query.${format}`, TYPES[format], await response.blob())
    } catch (error) {
      setProblem(failureOf(error).message)
    }
  }

  /** Replaces what the editor has. */
  const replace = (query: string, params: Readonly<Record<string, string>> = {}) => {
    setText(query)
    setShown({ text: query })
    setValues(params)
  }

  /** Shows another query, and runs it. */
  const show: typeof replace = (query, params = {}) => {
    replace(query, params)
    void run(query, params)
  }

  // A link to a query shows its result. It can only read.
  // Once, when the view opens.
  useEffect(() => {
    if ((given.q ?? '') !== '') void run()
    return () => aborting.current.abort()
  }, [])

  return { text, setText, shown, replace, values, setValues, result, problem, isRunning, run, stop, download, show }
}

export type SqlState = ReturnType<typeof useSql>

function writeAddress(text: string, values: Readonly<Record<string, string>>): void {
  const { view, query } = address.peek()
  if (view !== 'sql') return
  const old = Object.fromEntries(Object.keys(query).map((name) => [name, name === 'as' ? (query[name] ?? null) : null]))
  setQuery({ ...old, ...addressOf(text, values) })
}
