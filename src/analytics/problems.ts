import type { ColumnarError } from '../columnar/client.ts'
import { ApiError } from '../http/errors.ts'

/** What a tenant's query may use, and what it is told when it wants more. */
export interface QueryCaps {
  readonly seconds: number
  readonly memoryBytes: number
}

const TIMEOUT_EXCEEDED = 159
const MEMORY_LIMIT_EXCEEDED = 241
const READONLY = 164
const RESULT_TOO_LARGE = 396
const MESSAGE_LENGTH_MAX = 600

/**
 * Tells a caller what is wrong with its query in the engine's words, without what is ours: the statement that was put
 * around it, stored tables and columns, and how the engine went about it.
 */
export function explainFailure(error: ColumnarError, caps: QueryCaps): ApiError {
  const invalid = (problem: string) => new ApiError('VALIDATION_ERROR', `query: ${problem}`, { cause: error })
  if (error.code === TIMEOUT_EXCEEDED) return invalid(`it took longer than ${caps.seconds} s`)
  if (error.code === RESULT_TOO_LARGE) return invalid('its result is too large: select fewer columns or rows')
  if (error.code === READONLY) return invalid('only reading is allowed')
  if (error.code === MEMORY_LIMIT_EXCEEDED) {
    if (!error.message.includes('(total)'))
      return invalid(`it needs more than ${caps.memoryBytes / 2 ** 30} GiB of memory`)
    return new ApiError('UNAVAILABLE', 'too many queries need memory just now', { cause: error })
  }
  return invalid(clean(error.message))
}

function clean(message: string): string {
  const suggestion = /Maybe you meant: (\[[^\]]*\])/.exec(message)?.[1]
  const text = message
    .replace(/\.? Maybe you meant[\s\S]*$/, '')
    .replace(/:? In scope [\s\S]*$/i, '')
    .replace(/:? ?(In query|while executing|While processing) [\s\S]*$/i, '')
    .replace(/\. Expected one of: [\s\S]*$/, '')
    .replace(/ SELECT formatQuerySingleLine[\s\S]*$/, '')
    .replace(/\b__table\d+\./g, '')
    .replace(/[:.\s]+$/, '')
  const dynamic = /\bDynamic\b/.test(text) ? '; give it a type, as in payload.tokens.in::Float64' : ''
  const hint = suggestion === undefined ? '' : `; maybe you meant ${suggestion}`
  const whole = `${text}${hint}${dynamic}`
  // Anything that still speaks of the inside is not for the caller.
  if (/workspace_id|PREWHERE|_scope\b|\bMergeTree/i.test(whole))
    return `it failed (${message.length} characters of detail withheld)`
  return whole.length > MESSAGE_LENGTH_MAX ? `${whole.slice(0, MESSAGE_LENGTH_MAX)}…` : whole
}
