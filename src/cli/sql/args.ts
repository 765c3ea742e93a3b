import { script } from '../../base/script.ts'
import { type Environment, readKey, readUrl, URL_OPTION, WORKSPACE_KEY_OPTION } from '../shared/connection.ts'
import { CliError } from '../shared/error.ts'
import { isColorOff } from '../shared/main.ts'
import { parseOptions } from '../shared/options.ts'

const FORMATS = ['table', 'vertical', 'json', 'ndjson', 'csv', 'parquet', 'arrow'] as const
export type Format = (typeof FORMATS)[number]

/** Whether a terminal cannot show it. */
export function isBinary(format: Format): boolean {
  return format === 'parquet' || format === 'arrow'
}

const SQL = {
  summary: 'Queries the events, runs and tasks of a workspace in ClickHouse SQL.',
  usage: [
    `${script('sql "SELECT …" [options]')}     runs one query`,
    `${script('sql -f report.sql')}            runs the queries of a file, or of standard input`,
    `${script('sql')}                          reads statements from the terminal`,
  ],
  options: {
    key: WORKSPACE_KEY_OPTION,
    url: URL_OPTION,
    file: {
      type: 'string',
      short: 'f',
      value: '<path>',
      help: 'reads the query from this file; separate several queries by semicolons',
    },
    format: {
      type: 'string',
      value: '<format>',
      help: 'table, vertical, json, ndjson, csv, parquet or arrow (default: table)',
    },
    output: { type: 'string', value: '<path>', help: 'writes the result to this file' },
    param: {
      type: 'string',
      multiple: true,
      value: '<name=value>',
      help: 'value of {name:Type} in the query; can be repeated',
    },
    'wait-for': {
      type: 'string',
      value: '<position>',
      help: 'waits until this seq, or "complete_through" of an earlier result, can be queried',
    },
    'no-color': { type: 'boolean', help: 'no colors; or set NO_COLOR' },
  },
  notes: `
The format json is the exact response of the service; ndjson has one row per line.
`,
} as const

export type SqlOptions = ReturnType<typeof readArgs>

/**
 * @param argv the arguments after the script's name
 * @throws CliError (exit code 2) that names the option and what it takes; HelpRequest
 */
export function readArgs(argv: readonly string[], env: Environment) {
  const { values, positionals } = parseOptions(argv, SQL, { allowPositionals: true })
  const [query] = positionals
  if (positionals.length > 1) throw new CliError(`put the query in quotes: "${positionals.join(' ')}"`, 2)
  if (query !== undefined && values.file !== undefined) throw new CliError('give a query or --file, not both', 2)
  return {
    /** Without a trailing slash. */
    url: readUrl(values.url, env),
    key: readKey(values.key, env, 'SQL'),
    /** Undefined: the query comes from `file`, standard input or the prompt. */
    query,
    file: values.file,
    format: readFormat(values.format ?? 'table'),
    /** Undefined: standard output. */
    output: values.output,
    /** Values of `{name:Type}` placeholders, as text; the service converts them to the type. */
    params: Object.fromEntries((values.param ?? []).map(readParam)),
    waitFor: values['wait-for'] === undefined ? undefined : readPosition(values['wait-for']),
    noColor: values['no-color'] === true || isColorOff(env),
  }
}

function readFormat(given: string): Format {
  const format = FORMATS.find((each) => each === given)
  if (format !== undefined) return format
  throw new CliError(`--format must be one of ${FORMATS.join(', ')}; got "${given}"`, 2)
}

function readParam(given: string): [name: string, value: string] {
  const [, name, value] = /^(\w+)=([\s\S]*)$/.exec(given) ?? []
  if (name !== undefined && value !== undefined) return [name, value]
  throw new CliError(`--param takes name=value; got "${given}"`, 2)
}

function readPosition(given: string): string | number {
  if (given === '') throw new CliError('--wait-for takes a seq, or "complete_through" of an earlier result', 2)
  return /^\d+$/.test(given) ? Number(given) : given
}
