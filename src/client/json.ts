/** An object of JSON, as the service stores inputs, outputs and payloads. */
export type JsonObject = { readonly [name: string]: unknown }

/**
 * The JSON text of a value, which the service wants to be an object: anything else becomes `{"value": …}`, nothing `{}`.
 * @throws TypeError for what JSON cannot express: a bigint, a cycle
 */
export function objectText(value: unknown): string {
  if (value === undefined || value === null) return '{}'
  const text = JSON.stringify(value)
  if (text === undefined) return '{}'
  return text.charCodeAt(0) === OPEN_BRACE ? text : `{"value":${text}}`
}

const OPEN_BRACE = 0x7b

/** The same, but a value that JSON cannot express becomes an object that says so. */
export function objectTextOrProblem(value: unknown): string {
  try {
    return objectText(value)
  } catch (error) {
    return JSON.stringify({ invalid_json: describeError(error).message })
  }
}

/** The message and the details of an error, as a run or task reports them. */
export function describeError(error: unknown): { message: string; detail: string } {
  const message = plainText(messageOf(error))
  if (!(error instanceof Error)) return { message, detail: safeText(error) }
  const { name, stack, cause } = error
  const detail = { ...error, name, stack, ...(cause !== undefined && { cause: messageOf(cause) }) }
  return { message, detail: safeText(detail, { name, stack }) }
}

/** An error must be reported even when JSON cannot express what is attached to it. */
function safeText(value: unknown, otherwise: unknown = {}): string {
  try {
    return objectText(value)
  } catch {
    return objectText(otherwise)
  }
}

function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message || error.name : error)
  } catch {
    return 'an error without a message'
  }
}

const MESSAGE_LENGTH_MAX = 10_000

/** Plain text fields take no NUL and no lone surrogates. */
function plainText(text: string): string {
  return text.slice(0, MESSAGE_LENGTH_MAX).replace(UNSTORABLE, '\ufffd')
}

const UNSTORABLE = /\0|\p{Surrogate}/gu
