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

/** The message and the details of an error, as a run or task reports them. */
export function describeError(error: unknown): { message: string; detail: string } {
  const message = plainText(error instanceof Error ? error.message || error.name : String(error))
  if (!(error instanceof Error)) return { message, detail: safeText(error) }
  const { name, stack, cause } = error
  const detail = { ...error, name, stack, ...(cause !== undefined && { cause: String(cause) }) }
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

const MESSAGE_LENGTH_MAX = 10_000

/** Plain text fields take no NUL and no lone surrogates. */
function plainText(text: string): string {
  return text.slice(0, MESSAGE_LENGTH_MAX).replace(UNSTORABLE, '\ufffd')
}

const UNSTORABLE = /\0|\p{Surrogate}/gu
