import { script } from '../../base/script.ts'
import { type Environment, readKey, readUrl, URL_OPTION, WORKSPACE_KEY_OPTION } from '../shared/connection.ts'
import { CliError } from '../shared/error.ts'
import { parseOptions } from '../shared/options.ts'

const AGENTS_MAX = 200
const RATE_MAX = 5_000
const DURATION_SECONDS_MAX = 86_400

const DEMO = {
  summary: 'Simulates agents that report to a running service.',
  usage: [script('demo [--key svc_ws_…] [options]')],
  options: {
    key: WORKSPACE_KEY_OPTION,
    url: URL_OPTION,
    agents: { type: 'string', value: '<n>', help: 'number of agents (default: 5)' },
    rate: { type: 'string', value: '<n>', help: 'runs started per second, by all agents together (default: 20)' },
    duration: { type: 'string', value: '<s>', help: 'duration in seconds (default: 60)' },
    seed: { type: 'string', value: '<n>', help: 'makes the same choices as an earlier demo (default: random)' },
  },
  notes: `
The agents' names begin with "demo". Existing ones are used again, missing ones are created. Each agent gets a key, which is
revoked at the end. Ctrl-C ends the demo early: runs in progress finish at once, and the summary is printed.
`,
} as const

export type DemoOptions = ReturnType<typeof readArgs>

/**
 * @param argv the arguments after the script's name
 * @throws CliError (exit code 2) that names the option and what it takes; HelpRequest
 */
export function readArgs(argv: readonly string[], env: Environment) {
  const { values } = parseOptions(argv, DEMO)
  return {
    /** Without a trailing slash. */
    url: readUrl(values.url, env),
    key: readKey(values.key, env, 'the demo'),
    agents: number('agents', values.agents ?? '5', 1, AGENTS_MAX, Number.isInteger),
    /** Runs started per second, by all agents together. */
    rate: number('rate', values.rate ?? '20', 0.01, RATE_MAX),
    durationSeconds: number('duration', values.duration ?? '60', 1, DURATION_SECONDS_MAX),
    /** The same seed makes the same choices. */
    seed: number('seed', values.seed ?? `${Math.floor(Math.random() * 2 ** 32)}`, 0, 2 ** 32 - 1, Number.isInteger),
  }
}

function number(name: string, text: string, min: number, max: number, also: (value: number) => boolean = () => true) {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (value >= min && value <= max && also(value)) return value
  const kind = also === Number.isInteger ? 'a whole number' : 'a number'
  throw new CliError(`--${name} must be ${kind} from ${min} to ${max}; got "${text}"`, 2)
}
