import { CliError } from '../cli/error.ts'
import { type Answer, type Column, readAnswer } from './answer.ts'
import type { Format } from './args.ts'

/** Values of `{name:Type}` placeholders. Those that came as text are read by the service as the type says. */
export type Params = Readonly<Record<string, unknown>>

export interface Question {
  readonly query: string
  /** May hold more than the query asks for. */
  readonly params: Params
}

/** What there is to ask. */
export interface Schema {
  readonly tables: readonly {
    readonly name: string
    readonly description: string
    readonly columns: readonly (Column & { readonly description: string })[]
  }[]
  readonly examples: readonly {
    readonly title: string
    readonly description: string
    readonly query: string
    readonly params?: Params
  }[]
}

/**
 * SQL of the service (docs/specification.md#sql). Everything it says no to is a CliError; so is a service that is not
 * there.
 */
export interface SqlService {
  /** @throws CliError; what `signal` was aborted with */
  ask(question: Question, signal?: AbortSignal): Promise<Answer>
  /** The answer in a format of the service's. The stream ends in an CliError when the answer breaks off. */
  download(question: Question, format: Format, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  /** Null from a service that does not describe its tables. */
  schema(): Promise<Schema | null>
}

export interface SqlServiceOptions {
  readonly url: string
  readonly key: string
  readonly waitFor: string | number | undefined
}

export function createSqlService({ url, key, waitFor }: SqlServiceOptions): SqlService {
  const authorization = `Bearer ${key}`
  const call = async (path: string, init: RequestInit): Promise<Response> => {
    try {
      return await fetch(url + path, { ...init, redirect: 'manual' })
    } catch (error) {
      init.signal?.throwIfAborted()
      throw new CliError(unreachable(url, error as NodeJS.ErrnoException), 1, { cause: error })
    }
  }
  const post = async ({ query, params }: Question, format: Format, signal?: AbortSignal): Promise<Response> => {
    const response = await call('/api/v1/query', {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ query, params, format, ...(waitFor === undefined ? {} : { wait_for: waitFor }) }),
      signal,
    })
    if (!response.ok) throw await refusal(response, query)
    return response
  }
  return {
    async ask(question, signal) {
      const response = await post(question, 'json', signal)
      return readAnswer(await unbroken(response.text(), signal))
    },
    async download(question, format, signal) {
      const response = await post(question, format, signal)
      return chunks(response, signal)
    },
    async schema() {
      const response = await call('/api/v1/query/schema', { headers: { authorization } })
      if (response.status === 404) return null
      if (!response.ok) throw await refusal(response, '')
      const { data } = (await unbroken(response.json())) as { data: Schema }
      return data
    },
  }
}

async function* chunks(response: Response, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader()
  if (reader === undefined) return
  for (;;) {
    const { done, value } = await unbroken(reader.read(), signal)
    if (done) return
    yield value
  }
}

async function unbroken<T>(part: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await part
  } catch (error) {
    signal?.throwIfAborted()
    throw new CliError(`the answer broke off: ${messageOf(error)}`, 1, { cause: error })
  }
}

function unreachable(url: string, { code, message }: NodeJS.ErrnoException): string {
  return (
    `no service answers at ${url} (${code ?? message})\n` +
    'Is it running? `bun run start` starts it; --url or AGENT_RUN_URL says where it is.'
  )
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function refusal(response: Response, query: string): Promise<CliError> {
  const { status, headers } = response
  const { code, message } = await errorOf(response)
  if (code === undefined) return new CliError(`answered ${status}, not as the service would: is that its address?`)
  const seconds = headers.get('retry-after')
  const later = seconds === null ? '' : `\nTry again in ${seconds} s.`
  if (status === 401) return new CliError(`the service does not take this key: ${message}`)
  if (status === 400) return new CliError(pointOut(message, query))
  return new CliError(`${message} (${code})${later}`)
}

async function errorOf(response: Response): Promise<{ code?: string; message: string }> {
  try {
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    return { code: error.code, message: error.message }
  } catch {
    return { message: '' }
  }
}

/** Characters of the line that are shown on either side of what the message is about. */
const SHOWN_MAX = 50

/** Puts the place in sight that a message on the query names: `failed at position 15` counts characters from 1. */
export function pointOut(message: string, query: string): string {
  const said = message.replace(/^query: /, '')
  const position = Number(/\bposition (\d+)/.exec(said)?.[1])
  const characters = [...query]
  if (!(position >= 1 && position <= characters.length + 1)) return said
  const before = characters.slice(0, position - 1).join('')
  const lineStart = before.lastIndexOf('\n') + 1
  const line = query.slice(lineStart).split('\n', 1)[0]!.replaceAll('\t', ' ')
  const at = before.length - lineStart
  const from = Math.max(0, at - SHOWN_MAX)
  const indent = ' '.repeat(Bun.stringWidth(line.slice(from, at)))
  return `${said}\n  ${line.slice(from, at + SHOWN_MAX)}\n  ${indent}^`
}
