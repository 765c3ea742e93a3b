import { lookup } from '../../base/lookup.ts'
import { EXCEPTION_TAG_HEADER, ExceptionScanner } from './exception-block.ts'
import { ClickHouseFailure } from './protocol.ts'

const ESCAPES = lookup<string>({
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  "'": "\\'",
  '\0': '\\0',
})

/**
 * The pieces of a streamed result, with backpressure, so that nothing is buffered beyond what is in flight. Ending the
 * iteration early ends the statement.
 *
 * @param explain turns a failure midway into the error that is thrown
 */
export async function* piecesOf(
  response: Response,
  explain: (error: unknown) => unknown,
): AsyncGenerator<Uint8Array, void, void> {
  if (response.body === null) return
  const scanner = new ExceptionScanner(response.headers.get(EXCEPTION_TAG_HEADER) ?? '')
  const reader = response.body.getReader()
  let problem: unknown
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const piece = scanner.push(value)
      if (piece.length > 0) yield piece
    }
  } catch (error) {
    problem = error
  } finally {
    reader.cancel().catch(() => {})
  }
  // A server may close the connection after it has sent the reason.
  const last = scanner.end()
  if (last instanceof ClickHouseFailure) throw explain(last)
  if (problem !== undefined) throw explain(problem)
  if (last.length > 0) yield last
}

/** A value in the text form that ClickHouse expects in `param_name`. */
export function parameterText(value: unknown): string {
  if (value === null || value === undefined) return '\\N'
  if (Array.isArray(value)) return `[${value.map(elementText).join(',')}]`
  if (typeof value === 'boolean') return value ? '1' : '0'
  return String(value).replace(/[\\\t\n\r'\0]/g, escaped)
}

function elementText(value: unknown): string {
  if (value === null) return 'NULL'
  if (typeof value === 'boolean') return value ? 'TRUE' : 'FALSE'
  return typeof value === 'string' ? `'${value.replace(/[\\\t\n\r'\0]/g, escaped)}'` : parameterText(value)
}

function escaped(character: string): string {
  return ESCAPES.get(character) ?? character
}
