import { signal } from '@preact/signals'
import { RUNS, statusesOf } from './filters.ts'
import { COLUMNS, type Column } from './run-table.tsx'
import { scoreColumnNames, scoreColumns } from './score-columns.tsx'

/** Which columns the list of runs has: kept in the address, and remembered for when it names none. */

const DEFAULT = ['started', 'duration', 'input', 'output', 'tokens', 'cost']
const STORED = 'run-columns'
/** In the address: only the columns that are always shown. */
const NONE = 'none'

const remembered = signal(globalThis.localStorage?.getItem(STORED)?.split(',') ?? DEFAULT)

/** The columns that the address names, or else those that the user chose last. Scores stand behind all others. */
export function chosenColumns(): readonly string[] {
  const { cols } = RUNS.value
  const named = cols === '' ? remembered.value : cols.split(',')
  return [...COLUMNS.map(({ name }) => name).filter((name) => named.includes(name)), ...scoreColumnNames(named)]
}

/** The columns as the address names them. */
export function columnsText(names: readonly string[]): string {
  return names.join() || NONE
}

export function toggleColumn(toggled: string): void {
  const chosen = chosenColumns()
  choose(chosen.includes(toggled) ? chosen.filter((name) => name !== toggled) : [...chosen, toggled])
}

/** Puts a column in the place of another; null: none. */
export function replaceColumn(from: string | null, to: string | null): void {
  const chosen = chosenColumns()
  if (from !== null && to !== null) choose(chosen.map((name) => (name === from ? to : name)))
  else choose([...chosen.filter((name) => name !== from), ...(to === null ? [] : [to])])
}

function choose(names: readonly string[]): void {
  const isNamed = ({ name }: Column) => names.includes(name)
  const next = [...COLUMNS.filter(isNamed).map(({ name }) => name), ...scoreColumnNames(names)]
  remembered.value = next
  localStorage.setItem(STORED, next.join())
  RUNS.set({ cols: columnsText(next) })
}

/** The columns that are shown: the chosen ones, and the error where the filter asks for failed runs. */
export function shownColumns(status: string): readonly Column[] {
  const chosen = chosenColumns()
  const isAboutFailures = statusesOf(status).some((name) => name === 'failed' || name === 'timed_out')
  const plain = COLUMNS.filter(({ name }) => chosen.includes(name) || (name === 'error' && isAboutFailures))
  return [...plain, ...scoreColumns(chosen)]
}
