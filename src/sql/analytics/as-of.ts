import type { ScopedTable } from './tables.ts'

interface AsOfSource {
  readonly name: string
  readonly table: ScopedTable
  readonly database: string
  /** Conditions on the workspace. */
  readonly own: readonly string[]
  /** The columns that the query reads. */
  readonly read: readonly string[]
  /** Unix milliseconds. */
  readonly asOf: number
}

/**
 * What follows FROM for a query that sees only what was known at a time: the stored columns of the table's rows. Conditions
 * are PREWHERE: see `scopedStatement`.
 */
export function rowsAsOf(source: AsOfSource): string {
  const { name, table, database, own, asOf } = source
  const { final, stored = name, clauses = '', knownSince, changes } = table
  if (changes !== undefined) return latestAsOf(source, changes)
  return `${database}.${stored}${final ? ' FINAL' : ''} PREWHERE ${[...own, known(knownSince, asOf)].join(' AND ')} ${clauses}`
}

/**
 * A table of latest states lacks the states that newer ones have replaced. So rows whose newest state is later are read from
 * the table of all changes instead. No row is missed or read twice: the subqueries of one query read the same snapshot of
 * a table, and the changes up to that time have all been loaded.
 */
function latestAsOf(
  { name, table, database, own, read, asOf }: AsOfSource,
  changes: NonNullable<ScopedTable['changes']>,
) {
  const { fromLatest = new Map<string, string>(), unknown = [] } = changes
  const stored = table.columns.flatMap((column) => (column.isComputed === true ? [] : [column.name]))
  const names = stored.filter((each) => !unknown.includes(each) && (!fromLatest.has(each) || read.includes(each)))
  const added = names.filter((each) => fromLatest.has(each))
  const key = changes.key.join(', ')
  const select = (columns: readonly string[], from: string, ...conditions: readonly string[]) =>
    `SELECT ${columns.join(', ')} FROM ${database}.${from} PREWHERE ${[...own, ...conditions].join(' AND ')}`

  const later = `(${select([key], name, `NOT ${known(table.knownSince, asOf)}`)})`
  const unchanged = select(names, `${name} FINAL`, `(${key}) NOT IN ${later}`)
  const inChanges = names.filter((each) => !fromLatest.has(each))
  const newest = `ORDER BY seq DESC LIMIT 1 BY ${key}`
  const changed = `${select(inChanges, changes.table, known(table.knownSince, asOf), `(${key}) IN ${later}`)} ${newest}`
  if (added.length === 0) return `(${unchanged} UNION ALL ${changed})`
  const latest = select([key, ...added], `${name} FINAL`, `(${key}) IN ${later}`)
  const all = names.map((each) => `${fromLatest.get(each) ?? `change.${each}`} AS ${each}`).join(', ')
  return `(${unchanged} UNION ALL SELECT ${all} FROM (${changed}) AS change JOIN (${latest}) AS latest USING (${key}))`
}

function known(since: string, asOf: number): string {
  return `(${since} <= fromUnixTimestamp64Milli(${asOf}, 'UTC'))`
}
