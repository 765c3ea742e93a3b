import { DEFAULT_URL, type Environment, readKey, readUrl } from '../cli/connection.ts'
import { CliError } from '../cli/error.ts'
import { parseOptions } from '../cli/options.ts'

/** What a person reads, in the order in which they are offered. */
export const TEXT_FORMATS = ['table', 'vertical', 'json', 'ndjson', 'csv'] as const
/** What needs a file. */
const BINARY_FORMATS = ['parquet', 'arrow'] as const
const FORMATS = [...TEXT_FORMATS, ...BINARY_FORMATS] as const
export type Format = (typeof FORMATS)[number]

export function isBinary(format: Format): boolean {
  return BINARY_FORMATS.some((each) => each === format)
}

/** What is to be asked, and how the answer is shown. */
export interface SqlOptions {
  /** Where the service answers, without a slash at the end. */
  readonly url: string
  /** A workspace key. */
  readonly key: string
  /** Undefined: from standard input, or from a prompt. */
  readonly query: string | undefined
  /** Of a file with the query, instead of that. */
  readonly file: string | undefined
  readonly format: Format
  /** Of the file for the answer; undefined: standard output. */
  readonly output: string | undefined
  /** Values of `{name:Type}` placeholders, as text: the service reads them as the type says. */
  readonly params: Readonly<Record<string, string>>
  readonly waitFor: string | number | undefined
  readonly noColor: boolean
}

export const HELP = `Asks the events, runs and tasks of a workspace in ClickHouse SQL.

  bun run sql "SELECT …" [options]     asks once
  bun run sql -f report.sql            … what a file says; or from a pipe: echo "SELECT …" | bun run sql
  bun run sql                          opens a prompt; \\? there tells what it can do

  --key <key>            workspace key; or set AGENT_RUN_KEY
  --url <url>            where the service answers; or set AGENT_RUN_URL   (${DEFAULT_URL})
  -f, --file <path>      takes the query from this file; several are separated by semicolons
  --format <format>      table, vertical, json, ndjson, csv, parquet or arrow   (table)
  --output <path>        puts the answer into this file
  --param <name=value>   the value of {name:Type} in the query; may be given again
  --wait-for <position>  asks once this seq, or "complete_through" of an earlier answer, is readable
  --no-color             no colours; or set NO_COLOR
  --help                 this text

json is the answer as the service sent it, to the digit; ndjson has a row a line.
Exit code: 0, 1 when the service or the SQL says no, 2 for a command line that makes no sense.
`

const text = { type: 'string' } as const
const OPTIONS = {
  key: text,
  url: text,
  file: { type: 'string', short: 'f' },
  format: text,
  output: text,
  param: { type: 'string', multiple: true },
  'wait-for': text,
  'no-color': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

/**
 * @param argv what follows the script's name
 * @returns 'help' when that is what was asked for
 * @throws CliError (exit code 2) that names the option and what it takes
 */
export function readArgs(argv: readonly string[], env: Environment): SqlOptions | 'help' {
  const { values, positionals } = parseOptions(argv, OPTIONS, { help: HELP, allowPositionals: true })
  if (values.help === true) return 'help'
  const [query] = positionals
  if (positionals.length > 1) throw new CliError(`put the query in quotes: "${positionals.join(' ')}"`, 2)
  if (query !== undefined && values.file !== undefined) throw new CliError('give a query or --file, not both', 2)
  return {
    url: readUrl(values.url, env),
    key: readKey(values.key, env, 'SQL'),
    query,
    file: values.file,
    format: readFormat(values.format ?? 'table'),
    output: values.output,
    params: Object.fromEntries((values.param ?? []).map(readParam)),
    waitFor: values['wait-for'] === undefined ? undefined : readPosition(values['wait-for']),
    noColor: values['no-color'] === true || (env.NO_COLOR ?? '') !== '',
  }
}

function readFormat(given: string): Format {
  const format = FORMATS.find((each) => each === given)
  if (format !== undefined) return format
  throw new CliError(`--format must be one of ${FORMATS.join(', ')}; got "${given}"`, 2)
}

/** Takes `name=value` apart; null for what is not that. */
export function parseParam(given: string): [name: string, value: string] | null {
  const [, name, value] = /^(\w+)=([\s\S]*)$/.exec(given) ?? []
  return name === undefined || value === undefined ? null : [name, value]
}

function readParam(given: string): [name: string, value: string] {
  const param = parseParam(given)
  if (param !== null) return param
  throw new CliError(`--param takes name=value; got "${given}"`, 2)
}

function readPosition(given: string): string | number {
  if (given === '') throw new CliError('--wait-for takes a seq, or "complete_through" of an earlier answer', 2)
  return /^\d+$/.test(given) ? Number(given) : given
}
