import { parseArgs } from 'node:util'
import { parseSince, type Since } from './since.ts'

/** What is to be watched, and how it is shown. */
export interface TailOptions {
  /** Where the service answers, without a slash at the end. */
  readonly url: string
  readonly key: string
  /** Fields of contract section 5; the service checks them. */
  readonly filter: Readonly<Record<string, readonly string[]>>
  readonly since: Since
  readonly maxPerSecond: number | undefined
  readonly json: boolean
  readonly noColor: boolean
}

/** Something the person at the terminal can put right: its message is all they need. */
export class TailError extends Error {
  constructor(
    message: string,
    /** 2 for a command line that makes no sense, 1 for everything else. */
    readonly exitCode: 1 | 2 = 1,
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'TailError'
  }
}

const DEFAULT_URL = 'http://127.0.0.1:3000'
/** More different characters than that are another word, not a slip of the finger. */
const SLIP_MAX = 3

export const HELP = `Shows what agents do, as it happens: one line for each event and each change of a run or task.

  bun run tail [--key svc_…] [options]

  --key <key>            workspace or agent key; or set AGENT_RUN_KEY
  --url <url>            where the service answers; or set AGENT_RUN_URL   (${DEFAULT_URL})
  --agent <id>           of these agents
  --run <id>             of these runs
  --kind <kind>          event, task or run
  --type <type>          events of these types; tool.* for all that begin so
  --level <level>        events of at least this level: debug, info, warn, error
  --status <status>      runs and tasks in this state
  --tag <tag>            runs with this tag
  --since <when>         90s, 10m, 2h or 1d ago (workspace key); 0 for all that is kept; or after a cursor   (now)
  --max-per-second <n>   no more than n a second; says how many it left out
  --json                 one JSON object a line, as the service sent it
  --no-color             no colours; or set NO_COLOR
  --help                 this text

Filters take several values, given again or separated by commas: any of them may match. A filter on something that only
some kinds have (--type and --level: events; --status: runs and tasks; --tag: runs) leaves the other kinds out.
After a lost connection it goes on where it stopped, with nothing missed or shown twice. Ctrl-C ends it.
`

/** Options that are fields of the filter, and how the service calls those. */
const FILTERS = {
  agent: 'agent_id',
  run: 'run_id',
  kind: 'kind',
  type: 'type',
  level: 'level',
  status: 'status',
  tag: 'tag',
} as const

const text = { type: 'string' } as const
const list = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const
const OPTIONS = {
  key: text,
  url: text,
  agent: list,
  run: list,
  kind: list,
  type: list,
  level: list,
  status: list,
  tag: list,
  since: text,
  'max-per-second': text,
  json: flag,
  'no-color': flag,
  help: { type: 'boolean', short: 'h' },
} as const

/**
 * @param argv what follows the script's name
 * @returns 'help' when that is what was asked for
 * @throws TailError (exit code 2) that names the option and what it takes
 */
export function readArgs(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): TailOptions | 'help' {
  const values = parse(argv)
  if (values.help === true) return 'help'
  const filter: Record<string, string[]> = {}
  for (const [option, field] of Object.entries(FILTERS)) {
    const given = values[option as keyof typeof FILTERS]
    if (given !== undefined) filter[field] = readList(option, given)
  }
  return {
    url: readUrl(values.url ?? (env.AGENT_RUN_URL?.trim() || DEFAULT_URL)),
    key: readKey(values.key ?? env.AGENT_RUN_KEY?.trim() ?? ''),
    filter,
    since: readSince(values.since),
    maxPerSecond: values['max-per-second'] === undefined ? undefined : readRate(values['max-per-second']),
    json: values.json === true,
    noColor: values['no-color'] === true || (env.NO_COLOR ?? '') !== '',
  }
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS }).values
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const unknown = /^Unknown option '--?([\w-]+)/.exec(message)?.[1]
    if (unknown === undefined) throw new TailError(`${message}\nTry --help.`, 2)
    const near = nearest(unknown)
    const advice = near === undefined ? 'Try --help.' : `Did you mean\n${usageOf(near)}`
    throw new TailError(`unknown option --${unknown}. ${advice}`, 2)
  }
}

function nearest(word: string): string | undefined {
  const ranked = Object.keys(OPTIONS)
    .map((name) => ({ name, slips: name.startsWith(word) || word.startsWith(name) ? 0 : distance(word, name) }))
    .sort((a, b) => a.slips - b.slips)
  const [best] = ranked
  return best !== undefined && best.slips <= Math.min(SLIP_MAX, word.length - 1) ? best.name : undefined
}

/** How many characters must be put in, left out or changed to make one word of the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1))
    row = next
  }
  return row[b.length]!
}

function usageOf(option: string): string {
  return HELP.split('\n').find((line) => line.startsWith(`  --${option}`)) ?? `  --${option}`
}

function readList(option: string, given: readonly string[]): string[] {
  const values = given.flatMap((each) => each.split(',').map((value) => value.trim()))
  if (values.every((value) => value !== '')) return values
  throw new TailError(`--${option} needs a value\n${usageOf(option)}`, 2)
}

function readUrl(given: string): string {
  const url = URL.parse(given)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new TailError(`--url must begin with http:// or https://; got "${given}"`, 2)
  return url.href.replace(/\/+$/, '')
}

function readKey(key: string): string {
  if (/^svc_(ws|agent)_\w+$/.test(key)) return key
  if (key !== '') throw new TailError('a key begins with svc_ws_ or svc_agent_; the one given does not', 2)
  throw new TailError('no key: set AGENT_RUN_KEY, or give --key svc_… (a workspace key, or the key of one agent)', 2)
}

function readSince(given: string | undefined): Since {
  if (given === undefined) return { kind: 'now' }
  const since = parseSince(given)
  if (since !== null) return since
  throw new TailError(`--since takes 90s, 10m, 2h, 1d, 0 or a cursor; got "${given}"`, 2)
}

function readRate(given: string): number {
  const rate = given.trim() === '' ? Number.NaN : Number(given)
  if (Number.isInteger(rate) && rate >= 1) return rate
  throw new TailError(`--max-per-second must be a whole number from 1; got "${given}"`, 2)
}
