import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { type ApiError, invalid, invalidAll } from '../../base/errors.ts'
import { parseText } from '../../base/http/json-reader.ts'
import { shown, validationProblems } from '../../base/http/validation-message.ts'
import { isObject } from '../../base/json-object.ts'
import { encodeJson, type RawJson } from '../../base/raw-json.ts'

/** Levels of nesting of arguments. */
const DEPTH_MAX = 128

/** `JSON` of engines that can keep the text of a number. */
const EXACT = JSON as unknown as {
  rawJSON(text: string): unknown
  parse(text: string, revive: (name: string, value: unknown, context: { readonly source?: string }) => unknown): unknown
}

/** The result of a tool: the data, and the same as text for models that read only text. */
export function toolResult(data: object): object {
  const text = encodeJson(data)
  return { content: [{ type: 'text', text }], structuredContent: exactJson(text) }
}

/** The result of a call that failed for a reason that the model can act upon. */
export function failedTool({ code, message }: Pick<ApiError, 'code' | 'message'>): object {
  return { content: [{ type: 'text', text: `${code}: ${message}` }], isError: true }
}

/**
 * The arguments of a tool, checked. Free-form members are {@link RawJson}, as in bodies of the HTTP API.
 * @throws ApiError VALIDATION_ERROR naming the argument
 */
export function argumentsOf<S extends TSchema>(schema: S, { text }: RawJson): S['static'] {
  const value = parseText(text, DEPTH_MAX)
  if (!isObject(value)) throw invalid('arguments', `expected an object; got ${shown(value)}`)
  if (Value.Check(schema, value)) return value
  throw invalidAll(validationProblems({ type: 'arguments', value, findings: Value.Errors(schema, value) }))
}

/** Parsed JSON that `JSON.stringify` writes with all digits of its numbers. */
function exactJson(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text)
  return EXACT.parse(text, (_name, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source ? EXACT.rawJSON(source) : value,
  )
}
