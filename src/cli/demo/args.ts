import { script } from '../../base/script.ts'
import { type Environment, readKey, readUrl, URL_OPTION, WORKSPACE_KEY_OPTION } from '../shared/connection.ts'
import { CliError } from '../shared/error.ts'
import { HELP_OPTION, helpText, parseOptions } from '../shared/options.ts'

export interface DemoOptions {
  /** Base URL of the service, without a trailing slash. */
  readonly url: string
  /** A workspace key. */
  readonly key: string
  readonly agents: number
  /** Runs started per second, by all agents together. */
  readonly rate: number
  readonly durationSeconds: number
  /** The same seed makes the same choices. */
  readonly seed: number
}

const AGENTS_MAX = 200
const RATE_MAX = 5_000
const DURATION_SECONDS_MAX = 86_400

const OPTIONS = {
  key: WORKSPACE_KEY_OPTION,
  url: URL_OPTION,
  agents: { type: 'string', value: '<n>', help: 'number of agents (default: 5)' },
  rate: { type: 'string', value: '<n>', help: 'runs started per second, by all agents together (default: 20)' },
  duration: { type: 'string', value: '<s>', help: 'duration in seconds (default: 60)' },
  seed: { type: 'string', value: '<n>', help: 'makes the same choices as an earlier demo (default: random)' },
  help: HELP_OPTION,
} as const

export const HELP = helpText({
  summary: 'Simulates agents that report to a running service.',
  usage: [script('demo [--key svc_ws_…] [options]')],
  options: OPTIONS,
  notes: `
The agents' names begin with "demo". Existing ones are used again, missing ones are created. Each agent gets a key, which is
revoked at the end. Ctrl-C ends the demo early: runs in progress finish at once, and the summary is printed.
`,
})

/**
 * @param argv the arguments after the script's name
 * @returns 'help' if help was requested
 * @throws CliError (exit code 2) that names the option and what it takes
 */
export function readArgs(argv: readonly string[], env: Environment): DemoOptions | 'help' {
  const { values } = parseOptions(argv, OPTIONS)
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
