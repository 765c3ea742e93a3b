import { script } from '../../base/script.ts'
import { NoResponseError, type ServiceError } from '../../client/errors.ts'
import { KEY_SOURCE } from './connection.ts'
import { CliError } from './error.ts'

/** What commands say about calls that fail. */

/** For a service that cannot be reached at `url`. */
export function unreachable(url: string, cause: unknown): CliError {
  const root = cause instanceof NoResponseError ? cause.cause : cause
  const { code, message } = root as NodeJS.ErrnoException
  const advice = `Start one with "${script('start')}", or set --url or AGENT_RUN_URL.`
  return new CliError(`no service responds at ${url} (${code ?? message}).\n${advice}`, 1, { cause })
}

/** For a service that rejects the key. */
export function keyRejected(url: string, refusal: ServiceError): CliError {
  const reason = refusal.detail || `status ${refusal.status}`
  return new CliError(`the service at ${url} rejected the key: ${reason}\n${KEY_SOURCE}`, 1, { cause: refusal })
}
