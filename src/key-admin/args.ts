import { parseArgs } from 'node:util'

/** What `bun run keys` was asked to do. Ids are in lower case. */
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

export interface KeysOptions {
  readonly command: KeysCommand
  readonly json: boolean
}

/** Something the person at the terminal can put right: its message is all they need. */
export class KeysError extends Error {
  constructor(
    message: string,
    /** 2 for a command line that makes no sense, 1 for everything else. */
    readonly exitCode: 1 | 2 = 1,
  ) {
    super(message)
    this.name = 'KeysError'
  }
}

const GRACE_SECONDS_MAX = 86_400
const NAME_LENGTH_MAX = 200

export const HELP = `Lists and changes the keys of all workspaces, on the machine of the service, whether it is running or not.

  bun run keys                    lists workspaces and the keys that work
  bun run keys list --all         … those that are revoked or expired, too
  bun run keys create             makes a workspace key, and shows it this once
  bun run keys revoke <key_id>    kills a key: no process accepts it once this has ended
  bun run keys rotate <key_id>    puts a new key in the place of an old one

  --workspace <id or name>   list, create: of this workspace; create needs it when there are several
  --agent <agent_id>         create: a key of this agent instead
  --name <text>              create: what the key is called in lists
  --expires-at <time>        create: as 2030-01-31T00:00:00Z; never without it
  --grace-seconds <n>        rotate: how long the old key still works, up to ${GRACE_SECONDS_MAX}   (0)
  --json                     answers in JSON
  --help                     this text

Finds the database as the service does: by DATABASE_URL, or in DATA_DIR (./data).
Exit code: 0, 1 when it cannot be done, 2 for a command line that makes no sense.
`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const OPTIONS = {
  workspace: text,
  agent: text,
  name: text,
  'expires-at': text,
  'grace-seconds': text,
  all: flag,
  json: flag,
  help: { type: 'boolean', short: 'h' },
} as const

/** Options that each command takes, besides `--json`. */
const TAKES: Record<KeysCommand['name'], readonly string[]> = {
  list: ['workspace', 'all'],
  create: ['workspace', 'agent', 'name', 'expires-at'],
  revoke: [],
  rotate: ['grace-seconds'],
}

/**
 * @param argv what follows the script's name
 * @returns 'help' when that is what was asked for
 * @throws KeysError (exit code 2) that names the option and what it takes
 */
export function readArgs(argv: readonly string[]): KeysOptions | 'help' {
  const { values, positionals } = parse(argv)
  if (values.help === true) return 'help'
  const [given = 'list', ...rest] = positionals
  const name = Object.keys(TAKES).find((each) => each === given) as KeysCommand['name'] | undefined
  if (name === undefined)
    throw new KeysError(`unknown command ${given}: expected ${Object.keys(TAKES).join(', ')}\nTry --help.`, 2)
  const foreign = Object.keys(values).find((each) => each !== 'json' && !TAKES[name].includes(each))
  if (foreign !== undefined) throw new KeysError(`${name} does not take --${foreign}\nTry --help.`, 2)
  return { command: readCommand(name, rest, values), json: values.json === true }
}

function readCommand(
  name: KeysCommand['name'],
  positionals: readonly string[],
  values: ReturnType<typeof parse>['values'],
): KeysCommand {
  if (name === 'revoke' || name === 'rotate') {
    const [keyId = '', ...more] = positionals
    if (more.length > 0 || keyId === '') throw new KeysError(`${name} takes one key_id; bun run keys lists them`, 2)
    const id = { keyId: readId('key_id', keyId) }
    return name === 'revoke'
      ? { name, ...id }
      : { name, ...id, graceSeconds: readGrace(values['grace-seconds'] ?? '0') }
  }
  if (positionals.length > 0) throw new KeysError(`${name} does not take "${positionals.join(' ')}"\nTry --help.`, 2)
  const { workspace } = values
  if (name === 'list') return { name, workspace, all: values.all === true }
  const agentId = values.agent === undefined ? undefined : readId('--agent', values.agent)
  return { name, workspace, agentId, keyName: readName(values.name), expiresAt: values['expires-at'] }
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const unknown = /^Unknown option '(--?[\w-]+)/.exec(message)?.[1]
    throw new KeysError(`${unknown === undefined ? message : `unknown option ${unknown}`}\nTry --help.`, 2)
  }
}

function readId(what: string, given: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(given)) return given.toLowerCase()
  // Not repeated: it may be a key, pasted by mistake.
  throw new KeysError(`${what} must be an id as bun run keys shows it, not a key`, 2)
}

function readName(given: string | undefined): string | undefined {
  if (given === undefined || (given.length > 0 && given.length <= NAME_LENGTH_MAX && !given.includes('\0')))
    return given
  throw new KeysError(`--name must have 1 to ${NAME_LENGTH_MAX} characters`, 2)
}

function readGrace(given: string): number {
  const seconds = /^\d+$/.test(given) ? Number(given) : Number.NaN
  if (seconds <= GRACE_SECONDS_MAX) return seconds
  throw new KeysError(`--grace-seconds must be a whole number from 0 to ${GRACE_SECONDS_MAX}; got "${given}"`, 2)
}
