import { lookup } from '../base/lookup.ts'
import type { ColumnarBackend } from './backend.ts'
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

/** A statement whose result is streamed. */
export interface StreamedStatement {
  readonly sql: string
  /** ClickHouse's name of the format. */
  readonly format: string
  readonly database: string
  readonly settings: Readonly<Record<string, string | number>>
  /** Values of `{name:Type}` placeholders, in ClickHouse's text form: see {@link parameterText}. */
  readonly parameters: Readonly<Record<string, string>>
}

/**
 * Runs a statement and streams its result with backpressure, so that nothing is buffered beyond what is in flight. (The
 * official client streams through `node:http`, which has no such backpressure.)
 *
 * @returns the pieces of the result; they throw if it fails midway. Ending the iteration early ends the statement
 * @throws ClickHouseFailure an error of the server; any other error means that it was not reached
 */
export async function openAnswer(
  backend: ColumnarBackend,
  { sql, format, database, settings, parameters }: StreamedStatement,
  signal: AbortSignal,
): Promise<AsyncGenerator<Uint8Array, void, void>> {
  const search = { database, default_format: format, ...settings }
  const body = new FormData()
  body.set('query', sql)
  for (const [name, value] of Object.entries(parameters)) body.set(`param_${name}`, value)
  const response = await fetch(
    `${backend.url}/?${new URLSearchParams(Object.entries(search).map(([name, value]) => [name, String(value)]))}`,
    {
      method: 'POST',
      headers: { 'X-ClickHouse-User': backend.username, 'X-ClickHouse-Key': backend.password },
      body,
      signal,
    },
  )
  if (!response.ok) throw ClickHouseFailure.fromText(await response.text())
  return pieces(response)
}

async function* pieces(response: Response): AsyncGenerator<Uint8Array, void, void> {
  if (response.body === null) return
  const scanner = new ExceptionScanner(response.headers.get(EXCEPTION_TAG_HEADER) ?? '')
  const reader = response.body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const piece = scanner.push(value)
      if (piece.length > 0) yield piece
    }
  } catch (error) {
    // A server may close the connection after it has sent the reason.
    const reason = scanner.end()
    throw reason instanceof ClickHouseFailure ? reason : error
  } finally {
    reader.cancel().catch(() => {})
  }
  const last = scanner.end()
  if (last instanceof ClickHouseFailure) throw last
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
