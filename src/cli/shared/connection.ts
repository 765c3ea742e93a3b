import { script } from '../../base/script.ts'
import { CliError } from './error.ts'

/** The URL and key that commands use: from options first, then from the environment. */

export type Environment = Readonly<Record<string, string | undefined>>

const DEFAULT_URL = 'http://127.0.0.1:3000'

export const URL_OPTION = {
  type: 'string',
  value: '<url>',
  help: `URL of the service; or set AGENT_RUN_URL (default: ${DEFAULT_URL})`,
} as const
export const WORKSPACE_KEY_OPTION = {
  type: 'string',
  value: '<key>',
  help: 'workspace key; or set AGENT_RUN_KEY',
} as const

/**
 * @param given the value of `--url`
 * @returns the URL without a trailing slash
 * @throws CliError (exit code 2) that names where the URL came from
 */
export function readUrl(given: string | undefined, env: Environment): string {
  const text = given ?? (env.AGENT_RUN_URL?.trim() || DEFAULT_URL)
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    const name = given === undefined ? 'AGENT_RUN_URL' : '--url'
    throw new CliError(`${name} must begin with http:// or https://; got "${text}"`, 2)
  }
  return url.href.replace(/\/+$/, '')
}

/**
 * @param given the value of `--key`
 * @param need what requires a workspace key, such as "SQL"; undefined if an agent key is enough
 * @throws CliError (exit code 2) that says what is missing and where to get it
 */
export function readKey(given: string | undefined, env: Environment, need?: string): string {
  const key = given ?? env.AGENT_RUN_KEY?.trim() ?? ''
  const isAgentKey = /^svc_agent_\w+$/.test(key)
  if (/^svc_ws_\w+$/.test(key) || (isAgentKey && need === undefined)) return key
  if (isAgentKey) throw new CliError(`this is an agent key; ${need} needs a workspace key (svc_ws_…)`, 2)
  const kinds = need === undefined ? 'a key begins with svc_ws_ or svc_agent_' : 'a workspace key begins with svc_ws_'
  if (key !== '') throw new CliError(`${kinds}; this one does not`, 2)
  const kind = need === undefined ? 'svc_… (a workspace key or an agent key)' : 'svc_ws_… (a workspace key)'
  throw new CliError(`no key: set AGENT_RUN_KEY, or pass --key ${kind}.\n${KEY_SOURCE}`, 2)
}

export const KEY_SOURCE = `The service printed a workspace key when it started for the first time; "${script('keys create')}" creates another.`
