import { script } from '../../base/script.ts'
import { type Environment, readKey, readUrl, URL_OPTION, WORKSPACE_KEY_OPTION } from '../shared/connection.ts'
import { CliError } from '../shared/error.ts'
import { parseOptions } from '../shared/options.ts'

const RATE_MAX = 500
const DURATION_SECONDS_MAX = 7 * 86_400
const HISTORY_DAYS_MAX = 30
const PORT_MAX = 65_535
/** More than exist, so that by default all of them work. */
const AGENTS_MAX = 1_000
const DEFAULTS = { rate: '1', ownRate: '0.03', duration: '300', history: '7', modelPort: '4011' }

const DEMO = {
  summary: 'Simulates the agents of a shop, which report to a running service, or to one that the demo starts.',
  usage: [script('demo [--key svc_ws_…] [options]'), script('demo --serve [options]')],
  options: {
    serve: {
      type: 'boolean',
      help: 'starts a service of its own, with a week of history, until Ctrl-C; then deletes it',
    },
    key: WORKSPACE_KEY_OPTION,
    url: URL_OPTION,
    agents: { type: 'string', value: '<n>', help: 'how many of the reporting agents work (default: all)' },
    rate: {
      type: 'string',
      value: '<n>',
      help: `conversations and jobs started per second (default: ${DEFAULTS.rate}; with --serve ${DEFAULTS.ownRate})`,
    },
    duration: {
      type: 'string',
      value: '<s>',
      help: `duration in seconds (default: ${DEFAULTS.duration}; with --serve until Ctrl-C)`,
    },
    history: { type: 'string', value: '<days>', help: `with --serve: days of history (default: ${DEFAULTS.history})` },
    'model-port': {
      type: 'string',
      value: '<port>',
      help: `port of the scripted model (default: ${DEFAULTS.modelPort})`,
    },
    seed: { type: 'string', value: '<n>', help: 'makes the same choices as an earlier demo (default: random)' },
  },
  notes: `
The demo's agents have "demo": true in their metadata. Existing ones are used again, missing ones are created. Each gets a
key, which is revoked at the end. Ctrl-C ends the demo early: runs in progress finish at once, and the summary is printed.

Some agents are run by the service itself, with a scripted model that the demo serves on this machine. --serve arranges that.
For another service, start it with OPENAI_BASE_URL=http://127.0.0.1:${DEFAULTS.modelPort}/v1 EGRESS_ALLOW=127.0.0.1:${DEFAULTS.modelPort}; without that, these agents rest.
--serve listens on PORT (default: 3000), and keeps its data in a temporary folder.
`,
} as const

export type DemoOptions = ReturnType<typeof readArgs>

/**
 * @param argv the arguments after the script's name
 * @throws CliError (exit code 2) that names the option and what it takes; HelpRequest
 */
export function readArgs(argv: readonly string[], env: Environment) {
  const { values } = parseOptions(argv, DEMO)
  const isServing = values.serve === true
  if (isServing && (values.url !== undefined || values.key !== undefined))
    throw new CliError('--serve starts a service of its own: it cannot be combined with --url or --key', 2)
  if (!isServing && values.history !== undefined)
    throw new CliError('--history needs --serve: a running service records only the present', 2)
  const duration = values.duration ?? (isServing ? `${DURATION_SECONDS_MAX}` : DEFAULTS.duration)
  return {
    isServing,
    /** Without a trailing slash. Empty with `isServing`, like `key`. */
    url: isServing ? '' : readUrl(values.url, env),
    key: isServing ? '' : readKey(values.key, env, 'the demo'),
    /** How many of the reporting agents work. */
    agents: number('agents', values.agents ?? `${AGENTS_MAX}`, 1, AGENTS_MAX, Number.isInteger),
    /** Conversations and jobs started per second, by all agents together. */
    rate: number('rate', values.rate ?? (isServing ? DEFAULTS.ownRate : DEFAULTS.rate), 0.01, RATE_MAX),
    durationSeconds: number('duration', duration, 1, DURATION_SECONDS_MAX),
    historyDays: number('history', values.history ?? DEFAULTS.history, 0, HISTORY_DAYS_MAX),
    modelPort: number('model-port', values['model-port'] ?? DEFAULTS.modelPort, 0, PORT_MAX, Number.isInteger),
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
