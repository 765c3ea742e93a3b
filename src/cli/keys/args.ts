import { isUuid } from '../../base/ids.ts'
import { script } from '../../base/script.ts'
import { CliError } from '../shared/error.ts'
import { parseOptions, readNames } from '../shared/options.ts'

/** Ids are in lower case. */
export type KeysCommand =
  | { readonly name: 'list'; readonly workspace: string | undefined; readonly all: boolean }
  | {
      readonly name: 'create'
      readonly workspace: string | undefined
      readonly agentId: string | undefined
      readonly keyName: string | undefined
      readonly expiresAt: string | undefined
    }
  | { readonly name: 'revoke'; readonly keyId: string }
  | { readonly name: 'rotate'; readonly keyId: string; readonly graceSeconds: number }

const GRACE_SECONDS_MAX = 86_400
const NAME_LENGTH_MAX = 200

const KEYS = {
  summary: 'Manages the keys of all workspaces, on the machine of the service, whether it is running or not.',
  usage: [
    `${script('keys')}                    lists workspaces and their valid keys`,
    `${script('keys create')}             creates a workspace key and shows it once`,
    `${script('keys revoke <key_id>')}    revokes a key: no process accepts it once this command has ended`,
    `${script('keys rotate <key_id>')}    replaces a key by a new one`,
  ],
  options: {
    workspace: {
      type: 'string',
      value: '<id or name>',
      help: 'list, create: the workspace; create requires it if there are several',
    },
    agent: { type: 'string', value: '<agent_id>', help: 'create: makes a key of this agent instead' },
    name: { type: 'string', value: '<text>', help: 'create: name of the key, shown in lists' },
    'expires-at': { type: 'string', value: '<time>', help: 'create: such as 2030-01-31T00:00:00Z (default: never)' },
    'grace-seconds': {
      type: 'string',
      value: '<n>',
      help: `rotate: how long the old key still works, up to ${GRACE_SECONDS_MAX} (default: 0)`,
    },
    all: { type: 'boolean', help: 'list: includes revoked and expired keys' },
    json: { type: 'boolean', help: 'prints JSON' },
  },
  notes: `
Finds the database like the service does: by DATABASE_URL, or in DATA_DIR (./data).
`,
} as const

/** Options of each command, besides `--json`. */
const TAKES: Record<KeysCommand['name'], readonly string[]> = {
  list: ['workspace', 'all'],
  create: ['workspace', 'agent', 'name', 'expires-at'],
  revoke: [],
  rotate: ['grace-seconds'],
}

/**
 * @param argv the arguments after the script's name
 * @throws CliError (exit code 2) that names the option and what it takes; HelpRequest
 */
export function readArgs(argv: readonly string[]) {
  const { values, positionals } = parseOptions(argv, KEYS, { allowPositionals: true })
  const [given = 'list', ...rest] = positionals
  const [name] = readNames('command', [given], Object.keys(TAKES)) as [KeysCommand['name']]
  const foreign = Object.keys(values).find((each) => each !== 'json' && !TAKES[name].includes(each))
  if (foreign !== undefined) throw new CliError(`${name} does not take --${foreign}\nTry --help.`, 2)
  return { command: readCommand(name, rest, values), json: values.json === true }
}

type Values = ReturnType<typeof parseOptions<(typeof KEYS)['options']>>['values']

function readCommand(name: KeysCommand['name'], positionals: readonly string[], values: Values): KeysCommand {
  if (name === 'revoke' || name === 'rotate') {
    const [keyId = '', ...more] = positionals
    if (more.length > 0 || keyId === '') throw new CliError(`${name} takes one key_id; ${script('keys')} lists them`, 2)
    const id = { keyId: readId('key_id', keyId) }
    return name === 'revoke'
      ? { name, ...id }
      : { name, ...id, graceSeconds: readGrace(values['grace-seconds'] ?? '0') }
  }
  if (positionals.length > 0) throw new CliError(`${name} does not take "${positionals.join(' ')}"\nTry --help.`, 2)
  const { workspace } = values
  if (name === 'list') return { name, workspace, all: values.all === true }
  const agentId = values.agent === undefined ? undefined : readId('--agent', values.agent)
  return { name, workspace, agentId, keyName: readName(values.name), expiresAt: values['expires-at'] }
}

function readId(what: string, given: string): string {
  if (isUuid(given)) return given.toLowerCase()
  // The value is not repeated: it may be a key, pasted by mistake.
  throw new CliError(`${what} must be an id as listed by ${script('keys')}, not a key`, 2)
}

function readName(given: string | undefined): string | undefined {
  if (given === undefined || (given.length > 0 && given.length <= NAME_LENGTH_MAX && !given.includes('\0')))
    return given
  throw new CliError(`--name must have 1 to ${NAME_LENGTH_MAX} characters`, 2)
}

function readGrace(given: string): number {
  const seconds = /^\d+$/.test(given) ? Number(given) : Number.NaN
  if (seconds <= GRACE_SECONDS_MAX) return seconds
  throw new CliError(`--grace-seconds must be a whole number from 0 to ${GRACE_SECONDS_MAX}; got "${given}"`, 2)
}
