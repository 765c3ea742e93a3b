import { parseArgs } from 'node:util'

/** What the fleet is asked to do. */
export interface DemoOptions {
  /** Where the service answers, without a slash at the end. */
  readonly url: string
  /** A workspace key. */
  readonly key: string
  readonly agents: number
  /** Runs started a second, over all agents. */
  readonly rate: number
  readonly durationSeconds: number
  /** Makes the same choices again. */
  readonly seed: number
}

/** Something the person at the terminal can put right: its message is all they need. */
export class DemoError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DemoError'
  }
}

const DEFAULT_URL = 'http://127.0.0.1:3000'
const AGENTS_MAX = 200
const RATE_MAX = 5_000
const DURATION_SECONDS_MAX = 86_400

export const HELP = `A fleet of simulated agents that reports to a running service.

  bun run demo [--key svc_ws_…] [options]

  --key <key>         workspace key; or set WORKSPACE_KEY
  --url <url>         where the service answers        (${DEFAULT_URL})
  --agents <n>        agents in the fleet              (5)
  --rate <n>          runs started a second, in all    (20)
  --duration <s>      seconds                          (60)
  --seed <n>          make the same choices again      (random)
  --help              this text

Agents are made under names that begin with "demo", or found again by them. Each gets a key for this session, which is
revoked at the end. Ctrl-C lets the fleet finish what it is doing and prints the summary.
`

/**
 * @param argv what follows the script's name
 * @returns 'help' when that is what was asked for
 * @throws DemoError that names the option and what it takes
 */
export function readArgs(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): DemoOptions | 'help' {
  const values = parse(argv)
  if (values.help === true) return 'help'
  const url = readUrl(values.url ?? DEFAULT_URL)
  return {
    url,
    key: readKey(values.key ?? env.WORKSPACE_KEY?.trim() ?? '', url),
    agents: number('agents', values.agents ?? '5', 1, AGENTS_MAX, Number.isInteger),
    rate: number('rate', values.rate ?? '20', 0.01, RATE_MAX),
    durationSeconds: number('duration', values.duration ?? '60', 1, DURATION_SECONDS_MAX),
    seed: number('seed', values.seed ?? `${Math.floor(Math.random() * 2 ** 32)}`, 0, 2 ** 32 - 1, Number.isInteger),
  }
}

function parse(argv: readonly string[]) {
  const text = { type: 'string' } as const
  try {
    return parseArgs({
      args: [...argv],
      options: {
        url: text,
        key: text,
        agents: text,
        rate: text,
        duration: text,
        seed: text,
        help: { type: 'boolean', short: 'h' },
      },
    }).values
  } catch (error) {
    throw new DemoError(`${error instanceof Error ? error.message : error}\nTry --help.`)
  }
}

function readUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new DemoError(`--url must begin with http:// or https://; got "${text}"`)
  return url.href.replace(/\/+$/, '')
}

function readKey(key: string, url: string): string {
  if (key.startsWith('svc_ws_')) return key
  if (key.startsWith('svc_agent_'))
    throw new DemoError('that is an agent key; the demo makes agents, so it needs a workspace key (svc_ws_…)')
  if (key !== '') throw new DemoError('a workspace key begins with svc_ws_; the one given does not')
  const where = isLocal(url)
    ? 'The service printed one to its terminal when it started for the first time ("workspace key").'
    : 'Whoever operates the service can make one.'
  throw new DemoError(`no workspace key: give --key svc_ws_…, or set WORKSPACE_KEY.\n${where}`)
}

function isLocal(url: string): boolean {
  return ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname)
}

function number(name: string, text: string, min: number, max: number, also: (value: number) => boolean = () => true) {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (value >= min && value <= max && also(value)) return value
  const kind = also === Number.isInteger ? 'a whole number' : 'a number'
  throw new DemoError(`--${name} must be ${kind} from ${min} to ${max}; got "${text}"`)
}
