import { TEXT_FORMATS } from './args.ts'
import { COMMAND_NAMES } from './commands.ts'
import type { Schema } from './service.ts'

const KEYWORDS = (
  'select from where group by order limit offset having with distinct prewhere qualify as and or not in between like ' +
  'ilike is null asc desc join left right full inner cross anti semi asof any all on using union except intersect ' +
  'array case when then else end interval over partition rows range preceding following current row totals rollup cube ' +
  'count countIf sum sumIf avg avgIf min max uniq quantile quantiles argMax argMin groupArray round toDate toDateTime ' +
  'toStartOfHour toStartOfDay toStartOfMinute toStartOfInterval dateDiff now today arrayJoin has length lower upper'
).split(' ')

/**
 * Completes the word before the cursor, for readline.
 *
 * @param line the line up to the cursor
 * @param before earlier lines of the same statement
 * @returns the candidates, and the word that they complete
 */
export function complete(schema: Schema | null, line: string, before: string): [candidates: string[], word: string] {
  const command = /^\s*(\\\S*)$/.exec(line)
  if (command !== null) return among(COMMAND_NAMES, command[1]!)
  const argument = /^\s*\\(\w+)\s+(\w*)$/.exec(line)
  if (argument !== null) return among(argument[1] === 'format' ? TEXT_FORMATS : tableNames(schema), argument[2]!)
  const [, lead, word] = /([\s\S]*?)(\w*)$/.exec(`${before}\n${line}`) as unknown as [string, string, string]
  if (/\b(from|join)\s+$/i.test(lead)) return among(tableNames(schema), word)
  const columns = columnNames(schema, `${before}\n${line}`)
  if (lead.endsWith('.')) return among(columns, word)
  if (word === '') return [[], '']
  // Upper-case input gets upper-case keywords. Functions keep their case, because ClickHouse distinguishes it.
  const isUpper = word === word.toUpperCase() && /[A-Z]/.test(word)
  const keywords = isUpper ? KEYWORDS.filter(isLower).map((keyword) => keyword.toUpperCase()) : KEYWORDS
  return among([...columns, ...tableNames(schema), ...keywords], word)
}

function among(names: readonly string[], word: string): [string[], string] {
  return [[...new Set(names)].filter((name) => name.startsWith(word)).sort(), word]
}

function tableNames(schema: Schema | null): string[] {
  return schema?.tables.map(({ name }) => name) ?? []
}

/** The columns of the tables that the statement names, or of all tables if it names none yet. */
function columnNames(schema: Schema | null, statement: string): string[] {
  const tables = schema?.tables ?? []
  const named = tables.filter(({ name }) => new RegExp(`\\b${name}\\b`, 'i').test(statement))
  return (named.length > 0 ? named : tables).flatMap(({ columns }) => columns.map(({ name }) => name))
}

function isLower(word: string): boolean {
  return word === word.toLowerCase()
}
