import { DEFAULT_URL, type Environment, readKey, readUrl } from '../cli/connection.ts'
import { CliError } from '../cli/error.ts'
import { parseOptions } from '../cli/options.ts'

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

const AGENTS_MAX = 200
const RATE_MAX = 5_000
const DURATION_SECONDS_MAX = 86_400

export const HELP = `A fleet of simulated agents that reports to a running service.

  bun run demo [--key svc_ws_…] [options]

  --key <key>         workspace key; or set AGENT_RUN_KEY
  --url <url>         where the service answers; or set AGENT_RUN_URL   (${DEFAULT_URL})
  --agents <n>        agents in the fleet              (5)
  --rate <n>          runs started a second, in all    (20)
  --duration <s>      seconds                          (60)
  --seed <n>          make the same choices again      (random)
  --help              this text

Agents are made under names that begin with "demo", or found again by them. Each gets a key for this session, which is
revoked at the end. Ctrl-C lets the fleet finish what it is doing and prints the summary.
`

const text = { type: 'string' } as const
const OPTIONS = {
  url: text,
  key: text,
  agents: text,
  rate: text,
  duration: text,
  seed: text,
  help: { type: 'boolean', short: 'h' },
} as const

/**
 * @param argv what follows the script's name
 * @returns 'help' when that is what was asked for
 * @throws CliError (exit code 2) that names the option and what it takes
 */
export function readArgs(argv: readonly string[], env: Environment): DemoOptions | 'help' {
  const { values } = parseOptions(argv, OPTIONS, { help: HELP })
  if (values.help === true) return 'help'
  return {
    url: readUrl(values.url, env),
    key: readKey(values.key, env, 'the demo'),
    agents: number('agents', values.agents ?? '5', 1, AGENTS_MAX, Number.isInteger),
    rate: number('rate', values.rate ?? '20', 0.01, RATE_MAX),
    durationSeconds: number('duration', values.duration ?? '60', 1, DURATION_SECONDS_MAX),
    seed: number('seed', values.seed ?? `${Math.floor(Math.random() * 2 ** 32)}`, 0, 2 ** 32 - 1, Number.isInteger),
  }
}

function number(name: string, text: string, min: number, max: number, also: (value: number) => boolean = () => true) {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (value >= min && value <= max && also(value)) return value
  const kind = also === Number.isInteger ? 'a whole number' : 'a number'
  throw new CliError(`--${name} must be ${kind} from ${min} to ${max}; got "${text}"`, 2)
}
