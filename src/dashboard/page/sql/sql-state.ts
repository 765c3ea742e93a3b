import { useEffect, useRef, useState } from 'preact/hooks'
import { saveFile } from '../context/browser.ts'
import { address, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Params, Result } from '../data/api.ts'
import { failureOf } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { rangeOf } from '../parts/range.tsx'
import { addressOf, paramsOf, valuesOf } from './placeholders.ts'
import { SQL, SQL_TIME } from './sql-address.ts'
import { timeParams } from './time-params.ts'

/** The SQL view's query, the values of its placeholders and its answer, and what the address says of them. */

/** The position in the query that an error is about, from 0: the one it names, else that of the name that it quotes. */
export function positionOf(message: string, query: string): number | null {
  const position = Number(/\bposition (\d+)/.exec(message)?.[1])
  if (Number.isFinite(position)) return position - 1
  const [, name = ''] = /[`'"]([\w.]+)[`'"]/.exec(message) ?? []
  const at = name === '' ? -1 : query.indexOf(name)
  return at === -1 ? null : at
}

const STORED = 'sql-history'
const HISTORY_MAX = 30

/** Queries that were run in this browser, newest first. */
export function readHistory(): readonly string[] {
  try {
    const stored = JSON.parse(localStorage.getItem(STORED) ?? '[]')
    return Array.isArray(stored) ? stored.filter((each) => typeof each === 'string') : []
  } catch {
    return []
  }
}

function remember(query: string): void {
  const next = [query, ...readHistory().filter((each) => each !== query)].slice(0, HISTORY_MAX)
  localStorage.setItem(STORED, JSON.stringify(next))
}

/** The answer of `GET /api/v1/query/schema`. */
export type Catalogue = Schemas['QueryCatalogue']

const TYPES = { csv: 'text/csv', parquet: 'application/vnd.apache.parquet' }
const WRITE_PAUSE_MS = 400
/** Members of the address that a change of the query text keeps. */
const KEPT = ['as', 'chart', 'saved', 'range', 'from', 'to']

/** The values of all placeholders of a query: those of its fields, and the time range that the address names. */
export function allParams(query: string, values: Readonly<Record<string, string>>): Record<string, unknown> {
  const range = rangeOf(SQL_TIME.of(address.peek().query), Date.now())
  return { ...paramsOf(query, values), ...timeParams(query, range) }
}

type Look = Partial<typeof SQL.value>

/** The state of the SQL view: what the user writes, which the address follows, and the last answer. */
export function useSql() {
  const { api } = useSession()
  const given = address.value.query
  const [text, setText] = useState(SQL.of(given).q)
  // The editor is set from this only. Setting it from `text`, which it reports, could undo what was typed in the meantime.
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
      const body = { query, params: allParams(query, params) as Params }
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
      const response = await api.raw('/api/v1/query', { query: text, params: allParams(text, values), format })
      saveFile(`query.${format}`, TYPES[format], await response.blob())
    } catch (error) {
      setProblem(failureOf(error).message)
    }
  }

  /** Replaces the query in the editor. */
  const replace = (query: string, params: Readonly<Record<string, string>> = {}) => {
    setText(query)
    setShown({ text: query })
    setValues(params)
  }

  /** Shows another query, and runs it. @param look members of the address that say how its result is shown */
  const show = (query: string, params: Readonly<Record<string, string>> = {}, look: Look = {}) => {
    SQL.set({ as: 'table', chart: {}, saved: '', ...look })
    replace(query, params)
    void run(query, params)
  }

  // A link to a query shows its result, once, when the view opens. That is safe: a query can only read.
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
  const old = Object.fromEntries(
    Object.keys(query).map((name) => [name, KEPT.includes(name) ? (query[name] ?? null) : null]),
  )
  setQuery({ ...old, ...addressOf(text, values) })
}
