import { ApiError, type ErrorReason, invalid } from '../../base/errors.ts'
import { ColumnarError } from '../../stores/clickhouse/client.ts'
import type { QueryCaps } from './query-caps.ts'

const TIMEOUT_EXCEEDED = 159
const MEMORY_LIMIT_EXCEEDED = 241
const READONLY = 164
const RESULT_TOO_LARGE = 396
const MESSAGE_LENGTH_MAX = 600
const NARROWER = 'narrow it by occurred_at, agent_id or run_id, or select fewer columns'

const MEANT = 'Maybe you meant: ['
const SIZES = [
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
] as const

/** Precedes the engine's suggestions. */
export const HINT = '; maybe you meant '

const WITHHELD = 'it failed'

/** The caps of the query that failed. */
type Caps = Pick<QueryCaps, 'seconds' | 'memoryBytes' | 'resultBytes'>

/** For a query that is not allowed. */
export function refusal(problem: string): ApiError {
  return invalid('query', problem, { reason: 'query_invalid' })
}

/**
 * Translates an engine error for the caller. Keeps the engine's wording, but removes internals: the statement around the
 * query, stored tables and columns, and execution details.
 */
export function explainFailure(error: ColumnarError, caps: Caps): ApiError {
  if (error.code === TIMEOUT_EXCEEDED) return tooLong(caps.seconds)
  if (error.code === READONLY) return wrong('only reading is allowed', error)
  if (error.code === RESULT_TOO_LARGE) return tooLarge(readableSize(caps.resultBytes))
  if (error.code === MEMORY_LIMIT_EXCEEDED) {
    if (error.message.includes('(total)'))
      return new ApiError('UNAVAILABLE', 'SQL is out of memory at the moment; try again later', { cause: error })
    return wrong(
      `it needs more than ${readableSize(caps.memoryBytes)} of memory: ${NARROWER}`,
      error,
      'query_too_large',
    )
  }
  return wrong(clean(error.message), error)
}

/** @param seconds the engine's time limit for the query */
export function tooLong(seconds: number): ApiError {
  const cause = new ColumnarError(TIMEOUT_EXCEEDED, 'TIMEOUT_EXCEEDED', `Timeout exceeded: maximum ${seconds} s`)
  return wrong(`it took longer than ${seconds} s: ${NARROWER}`, cause, 'query_too_slow')
}

/** @param limit the limit on a result, in words */
export function tooLarge(limit: string): ApiError {
  const cause = new ColumnarError(RESULT_TOO_LARGE, 'TOO_MANY_ROWS_OR_BYTES', `Limit for result exceeded: ${limit}`)
  return wrong(`its result is too large, more than ${limit}: select fewer columns or rows`, cause, 'query_too_large')
}

/**
 * Converts byte positions in a message about `query` to character positions, as editors count.
 * @param error returned unchanged unless it names a position in non-ASCII text
 */
export function atCharacters(error: unknown, query: string): unknown {
  const bytes = Buffer.from(query)
  if (!(error instanceof ApiError) || bytes.length === query.length) return error
  const [problem] = error.problems ?? []
  if (problem === undefined) return error
  const message = problem.message.replace(
    /\bposition (\d+)( \([\s\S]*?\))?( \(line \d+, col \d+\))?/,
    (_whole, position: string, token = '', place = '') => {
      const before = [...bytes.subarray(0, Number(position) - 1).toString('utf8')]
      const line = before.filter((character) => character === '\n').length + 1
      const column = before.length - before.lastIndexOf('\n')
      return `position ${before.length + 1}${token}${place === '' ? '' : ` (line ${line}, col ${column})`}`
    },
  )
  return error.at(problem.param, message)
}

function wrong(problem: string, cause: unknown, reason: ErrorReason<'VALIDATION_ERROR'> = 'query_invalid'): ApiError {
  return invalid('query', problem, { reason, cause })
}

function readableSize(bytes: number): string {
  const [unit, name] = SIZES.find(([size]) => bytes >= size) ?? [1, 'bytes']
  return `${Math.round((bytes / unit) * 10) / 10} ${name}`
}

/** Whether the engine's text is withheld in this message. */
export function isWithheld(message: string): boolean {
  return message.startsWith(`${WITHHELD} (`)
}

/** The text without the dots, colons and white space at its end. `/[:.\s]+$/` takes seconds for long white space elsewhere. */
export function withoutPunctuation(text: string): string {
  let end = text.length
  while (end > 0 && /[:.\s]/.test(text[end - 1])) end--
  return text.slice(0, end)
}

/** The first list of names after `Maybe you meant: `, with its brackets. */
function suggestionOf(message: string): string | undefined {
  const at = message.indexOf(MEANT)
  // Not a regular expression, which would look for the end again wherever the message quotes these words.
  const end = at < 0 ? -1 : message.indexOf(']', at)
  return end < 0 ? undefined : message.slice(at + MEANT.length - 1, end + 1)
}

function clean(message: string): string {
  const suggestion = suggestionOf(message)
  const shown = message
    .replace(/\.? Maybe you meant[\s\S]*$/, '')
    .replace(/:? In scope [\s\S]*$/i, '')
    .replace(/:? ?(In query|while executing|While processing) [\s\S]*$/i, '')
    .replace(/\. Expected one of: [\s\S]*$/, '')
    .replace(/ SELECT formatQuerySingleLine[\s\S]*$/, '')
    .replace(/\b__table\d+\./g, '')
  const text = withoutPunctuation(shown)
  const dynamic = /\bDynamic\b/.test(text) ? '; give it a type, as in payload.tokens.in::Float64' : ''
  const hint = suggestion === undefined ? '' : `${HINT}${suggestion}`
  const whole = `${text}${hint}${dynamic}`
  // Anything that still mentions internals is withheld.
  if (/workspace_id|PREWHERE|_scope\b|\bMergeTree/i.test(whole))
    return `${WITHHELD} (${message.length} characters of detail withheld)`
  return whole.length > MESSAGE_LENGTH_MAX ? `${whole.slice(0, MESSAGE_LENGTH_MAX)}…` : whole
}
