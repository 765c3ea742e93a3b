import { script } from '../../base/script.ts'
import { type Environment, readKey, readUrl, URL_OPTION } from '../shared/connection.ts'
import { CliError } from '../shared/error.ts'
import { isColorOff } from '../shared/main.ts'
import { HELP_OPTION, helpText, optionLine, parseOptions } from '../shared/options.ts'
import { parseSince, type Since } from './since.ts'

/** The options of the tail command. */
export interface TailOptions {
  /** Base URL of the service, without a trailing slash. */
  readonly url: string
  readonly key: string
  /** Fields of docs/specification.md#filters; the service checks them. */
  readonly filter: Readonly<Record<string, readonly string[]>>
  readonly since: Since
  readonly maxPerSecond: number | undefined
  readonly json: boolean
  readonly noColor: boolean
}

const OPTIONS = {
  key: { type: 'string', value: '<key>', help: 'workspace or agent key; or set AGENT_RUN_KEY' },
  url: URL_OPTION,
  agent: { type: 'string', multiple: true, value: '<id>', help: 'only these agents' },
  run: { type: 'string', multiple: true, value: '<id>', help: 'only these runs' },
  kind: { type: 'string', multiple: true, value: '<kind>', help: 'event, task or run' },
  type: { type: 'string', multiple: true, value: '<type>', help: 'events of these types; tool.* matches a prefix' },
  level: {
    type: 'string',
    multiple: true,
    value: '<level>',
    help: 'events of at least this level: debug, info, warn, error',
  },
  status: { type: 'string', multiple: true, value: '<status>', help: 'runs and tasks with this status' },
  tag: { type: 'string', multiple: true, value: '<tag>', help: 'runs with this tag' },
  since: {
    type: 'string',
    value: '<when>',
    help: '90s, 10m, 2h or 1d ago (workspace key); 0 for all retained activity; or a cursor (default: now)',
  },
  'max-per-second': {
    type: 'string',
    value: '<n>',
    help: 'shows at most n activities per second, and reports how many were skipped',
  },
  json: { type: 'boolean', help: 'one JSON object per line, as the service sent it' },
  'no-color': { type: 'boolean', help: 'no colors; or set NO_COLOR' },
  help: HELP_OPTION,
} as const

export const HELP = helpText({
  summary: 'Shows what agents do, as it happens: one line for each event and each change of a run or task.',
  usage: [script('tail [--key svc_…] [options]')],
  options: OPTIONS,
  notes: `
Filters accept several values, repeated or separated by commas; any of them may match. A filter on a field that only
some kinds have (--type and --level: events; --status: runs and tasks; --tag: runs) excludes the other kinds.
After a lost connection it resumes where it stopped: nothing is missed or shown twice. Ctrl-C ends it.
`,
})

/** Options that are filter fields, with the service's names for them. */
const FILTERS = {
  agent: 'agent_id',
  run: 'run_id',
  kind: 'kind',
  type: 'type',
  level: 'level',
  status: 'status',
  tag: 'tag',
} as const

/**
 * @param argv the arguments after the script's name
 * @returns 'help' if help was requested
 * @throws CliError (exit code 2) that names the option and what it takes
 */
export function readArgs(argv: readonly string[], env: Environment): TailOptions | 'help' {
  const { values } = parseOptions(argv, OPTIONS)
  if (values.help === true) return 'help'
  const filter: Record<string, string[]> = {}
  for (const [option, field] of Object.entries(FILTERS)) {
    const given = values[option as keyof typeof FILTERS]
    if (given !== undefined) filter[field] = readList(option, given)
  }
  return {
    url: readUrl(values.url, env),
    key: readKey(values.key, env),
    filter,
    since: readSince(values.since),
    maxPerSecond: values['max-per-second'] === undefined ? undefined : readRate(values['max-per-second']),
    json: values.json === true,
    noColor: values['no-color'] === true || isColorOff(env),
  }
}

function readList(option: string, given: readonly string[]): string[] {
  const values = given.flatMap((each) => each.split(',').map((value) => value.trim()))
  if (values.every((value) => value !== '')) return values
  throw new CliError(`--${option} needs a value\n${optionLine(OPTIONS, option)}`, 2)
}

function readSince(given: string | undefined): Since {
  if (given === undefined) return { kind: 'now' }
  const since = parseSince(given)
  if (since !== null) return since
  throw new CliError(`--since takes 90s, 10m, 2h, 1d, 0 or a cursor; got "${given}"`, 2)
}

function readRate(given: string): number {
  const rate = given.trim() === '' ? Number.NaN : Number(given)
  if (Number.isInteger(rate) && rate >= 1) return rate
  throw new CliError(`--max-per-second must be a whole number from 1; got "${given}"`, 2)
}
