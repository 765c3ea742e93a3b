import { isUtf8 } from 'node:buffer'
import type { HttpTool } from '../../activity/agents/tools.ts'
import { isDeeper, parsedJson } from '../../base/json-object.ts'
import { EgressFailed, EgressRefused } from '../../outbound/egress/errors.ts'
import { type FilledHeaders, HeadersNotFilled } from '../../tenants/secrets/store.ts'
import type { CallableTool, ToolCallContext, ToolContext, ToolOutcome } from './tool.ts'

/** Limit of a response body; a larger one is refused. */
const ANSWER_BYTES_MAX = 1024 * 1024
/** Limit of the result for the model, in UTF-16 units; the rest is cut off. */
const OUTPUT_LENGTH_MAX = 256 * 1024
const ERROR_LENGTH_MAX = 2_000
/** JSON nested deeper than this is passed on as text: later code may process the value recursively. */
const JSON_DEPTH_MAX = 100
/** Default timeout. */
const DEFAULT_HEADERS = { accept: 'application/json, text/*;q=0.9, */*;q=0.5', 'user-agent': 'agent-run-service' }
/** Proxies and servers drop or refuse a body of these methods (RFC 9110, 9.3.1 and 9.3.5). */
const WITHOUT_BODY = new Set(['GET', 'DELETE'])
/** The same Idempotency-Key is sent again. */
const IS_REPEATABLE = true
const JSON_TYPE = /^application\/(.+\+)?json$/
/** Content types of responses that do not declare their real one. */
const UNDECLARED = new Set(['', 'application/octet-stream'])
const TEXT_TYPE =
  /^text\/|^application\/(.+\+)?(xml|yaml|x-yaml|javascript|ecmascript|x-ndjson|graphql|x-www-form-urlencoded)$/

/**
 * A tool that the service calls over HTTP with the model's arguments (docs/hosted-agents.md#tools): as a JSON body, or,
 * for GET and DELETE, as query parameters. Secrets that were sent with the call are redacted from the result.
 *
 * A call throws only the signal's reason, or an error of our own when one of our stores is unavailable.
 */
export function httpTool(
  definition: HttpTool,
  { egress, secrets, workspaceId }: Omit<ToolContext, 'lists'> & { readonly workspaceId: string },
): CallableTool {
  const { name, description, parameters, method, headers = {}, requires_approval = false } = definition
  const url = new URL(definition.url)

  async function send(input: Record<string, unknown>, filled: FilledHeaders, context: ToolCallContext) {
    const response = await egress.fetch(WITHOUT_BODY.has(method) ? withQuery(url, input) : url, {
      method,
      headers: headersOf(filled, method, context),
      body: WITHOUT_BODY.has(method) ? null : JSON.stringify(input),
      signal: context.signal,
      maxBytes: ANSWER_BYTES_MAX,
      isRepeatable: IS_REPEATABLE,
    })
    return outcomeOf(response, filled)
  }

  return {
    name,
    description,
    parameters: parameters as Record<string, unknown>,
    requiresApproval: requires_approval,
    isRepeatable: IS_REPEATABLE,
    async call(input, context) {
      let redact = (text: string) => text
      try {
        context.signal.throwIfAborted()
        const filled = await secrets.fill(workspaceId, headers)
        redact = filled.redact
        return await send(input, filled, context)
      } catch (error) {
        if (isOutcome(error)) return { ok: false, error: redact(error.message) }
        throw error
      }
    },
  }
}

/** Failures of the call itself, as opposed to failures of this service. */
function isOutcome(error: unknown): error is Error {
  return (
    error instanceof EgressRefused ||
    error instanceof EgressFailed ||
    error instanceof HeadersNotFilled ||
    error instanceof FixedParameter
  )
}

/** Headers of the connection are left out; the Idempotency-Key is ours. */
function headersOf(filled: FilledHeaders, method: string, { idempotencyKey }: ToolCallContext): Headers {
  const headers = new Headers(DEFAULT_HEADERS)
  if (!WITHOUT_BODY.has(method)) headers.set('content-type', 'application/json')
  for (const [name, value] of Object.entries(filled.headers)) headers.set(name, value)
  headers.set('idempotency-key', idempotencyKey)
  return headers
}

class FixedParameter extends Error {}

/**
 * Adds arguments to the query: strings as they are, null not at all, anything else as JSON. The model cannot override
 * parameters that are part of the definition's URL.
 */
function withQuery(url: URL, input: Record<string, unknown>): URL {
  const called = new URL(url)
  for (const [name, value] of Object.entries(input)) {
    if (url.searchParams.has(name)) throw new FixedParameter(`argument ${name}: the tool's address sets it already`)
    if (value === null || value === undefined) continue
    called.searchParams.append(name, typeof value === 'string' ? value : JSON.stringify(value))
  }
  return called
}

async function outcomeOf(response: Response, filled: FilledHeaders): Promise<ToolOutcome> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  const output = outputOf(bytes, response.headers.get('content-type') ?? '', filled)
  if (response.ok) return { ok: true, output }
  const text = output === null ? '' : typeof output === 'string' ? output : JSON.stringify(output)
  const said = text === '' ? filled.redact(response.statusText) : cut(text, ERROR_LENGTH_MAX)
  return { ok: false, error: `HTTP ${response.status}${said === '' ? '' : `: ${said}`}` }
}

/** A response body for the model: a JSON value, text, null when empty, or a description of binary content. */
function outputOf(bytes: Uint8Array, contentType: string, { redact }: FilledHeaders): unknown {
  if (bytes.byteLength === 0) return null
  const type = contentType.split(';', 1)[0].trim().toLowerCase()
  if (JSON_TYPE.test(type)) {
    const value = parsedJson(decoded(bytes, 'utf-8'))
    if (value !== undefined && !isDeeper(value, JSON_DEPTH_MAX)) return jsonOutput(value, redact)
  } else if (UNDECLARED.has(type) ? !isUtf8(bytes) : !TEXT_TYPE.test(type)) {
    return `[a body of type ${type === '' ? 'unknown' : redact(type)} and ${bytes.byteLength} bytes, which is not shown]`
  }
  if (bytes.includes(0)) return `[a binary body of ${bytes.byteLength} bytes, which is not shown]`
  return cut(redact(decoded(bytes, charsetOf(contentType))), OUTPUT_LENGTH_MAX)
}

/** Serialized again before redaction: JSON has many spellings of one text (`\/`, `\u0041`), and this leaves one. */
function jsonOutput(value: unknown, redact: (text: string) => string): unknown {
  const json = JSON.stringify(value)
  const redacted = redact(json)
  if (redacted.length > OUTPUT_LENGTH_MAX) return cut(redacted, OUTPUT_LENGTH_MAX)
  if (redacted === json) return value
  // Redacting a number breaks the JSON.
  return parsedJson(redacted) ?? redacted
}

function charsetOf(contentType: string): string {
  return /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(contentType)?.[1] ?? 'utf-8'
}

function decoded(bytes: Uint8Array, charset: string): string {
  try {
    return new TextDecoder(charset as 'utf-8').decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes)
  }
}

function cut(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  return `${text.slice(0, lengthMax).toWellFormed()}… [cut: ${text.length} characters in all]`
}
