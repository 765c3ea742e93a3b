import { script } from '../../base/script.ts'
import { type Environment, readKey, readUrl, URL_OPTION } from '../shared/connection.ts'
import { CliError } from '../shared/error.ts'
import { isColorOff } from '../shared/main.ts'
import { optionLine, parseOptions } from '../shared/options.ts'
import { parseSince, type Since } from './since.ts'

/** Options that are filter fields: the service's name for the field, and what the help shows. */
const FILTERS = {
  agent: ['agent_id', '<id>', 'only these agents'],
  run: ['run_id', '<id>', 'only these runs'],
  kind: ['kind', '<kind>', 'event, task, run or score'],
  type: ['type', '<type>', 'events of these types; tool.* matches a prefix'],
  level: ['level', '<level>', 'events of at least this level: debug, info, warn, error'],
  status: ['status', '<status>', 'runs and tasks with this status'],
  tag: ['tag', '<tag>', 'runs with this tag'],
} as const
type FilterName = keyof typeof FILTERS

function filterOption(name: FilterName) {
  const [, value, help] = FILTERS[name]
  return { type: 'string', multiple: true, value, help } as const
}

const OPTIONS = {
  key: { type: 'string', value: '<key>', help: 'workspace or agent key; or set AGENT_RUN_KEY' },
  url: URL_OPTION,
  agent: filterOption('agent'),
  run: filterOption('run'),
  kind: filterOption('kind'),
  type: filterOption('type'),
  level: filterOption('level'),
  status: filterOption('status'),
  tag: filterOption('tag'),
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
} as const

const TAIL = {
  summary: 'Shows what agents do, as it happens: one line for each event and each change of a run or task.',
  usage: [script('tail [--key svc_…] [options]')],
  options: OPTIONS,
  notes: `
Filters accept several values, repeated or separated by commas; any of them may match. A filter on a field that only
some kinds have (--type and --level: events; --status: runs and tasks; --tag: runs) excludes the other kinds.
After a lost connection it resumes where it stopped: nothing is missed or shown twice. Ctrl-C ends it.
`,
}

export type TailOptions = ReturnType<typeof readArgs>

/**
 * @param argv the arguments after the script's name
 * @throws CliError (exit code 2) that names the option and what it takes; HelpRequest
 */
export function readArgs(argv: readonly string[], env: Environment) {
  const { values } = parseOptions(argv, TAIL)
  const filters = Object.entries(FILTERS).flatMap(([option, [field]]) => {
    const given = values[option as FilterName]
    return given === undefined ? [] : [[field, readList(option, given)] as const]
  })
  return {
    /** Without a trailing slash. */
    url: readUrl(values.url, env),
    key: readKey(values.key, env),
    /** Fields of docs/feeds.md#filters; the service checks them. */
    filter: Object.fromEntries(filters),
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
