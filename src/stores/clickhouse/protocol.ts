/**
 * The server side of ClickHouse's HTTP protocol: parses requests and formats responses and errors. It is independent of
 * the engine, so that the embedded engine and the public ClickHouse-compatible endpoint use the same dialect.
 */

/**
 * Value of ClickHouse's setting `workload` for statements of tenants; other statements are the service's. On a remote
 * server it has no effect unless the operator defines that workload.
 */
export const TENANT_WORKLOAD = 'tenants'

/** Formats whose answer is one JSON document, which ends with statistics of the statement. */
export const JSON_DOCUMENTS = new Set(['JSON', 'JSONStrings', 'JSONCompact', 'JSONCompactStrings'])

/** Largest statement text, bytes. Data of an INSERT that comes as the body is not part of it. */
export const STATEMENT_BYTES_MAX = 16 * 1024 * 1024

/**
 * URL parameters of the protocol that are not settings. Those of sessions have no effect: a session would hold temporary tables
 * and settings for later statements, which nothing here can make. Clients such as Python's send them with every query.
 */
const PROTOCOL_PARAMETERS = new Set(
  `query database default_format query_id user password quota_key stacktrace wait_end_of_query buffer_size compress
   decompress client_protocol_version session_id session_timeout session_check close_session`.split(/\s+/),
)

/** Unsupported parameters. They are refused, because ignoring them would change the meaning of a request. */
const UNSUPPORTED_PARAMETERS = ['role']
const UNKNOWN_EXCEPTION = 1002

/** HTTP status by error code; every other error is a 500, as in ClickHouse. */
const HTTP_STATUS: Readonly<Record<number, number>> = {
  ...statusOf(400, [6, 25, 26, 27, 36, 38, 41, 43, 53, 62, 72, 117, 182, 321, 386, 456, 457]),
  ...statusOf(401, [194]),
  ...statusOf(403, [164, 192, 193, 497, 516]),
  ...statusOf(404, [46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 149]),
  ...statusOf(413, [307]),
  ...statusOf(501, [48]),
  ...statusOf(503, [202, 209]),
}

/** One statement as a client sent it. */
export interface Statement {
  /** The SQL text, without the data of an INSERT when `hasData` is set. */
  readonly text: string
  readonly hasData: boolean
  /** Undefined: the server's default database. */
  readonly database: string | undefined
  /** The client's query id, or a generated one. Identifies the query in `KILL QUERY` and in the response. */
  readonly queryId: string
  /** Whose limits the statement counts against (ClickHouse's quota key): the workspace. */
  readonly quotaKey: string | undefined
  /** Output format of a query that has no FORMAT clause. */
  readonly defaultFormat: string
  readonly settings: Readonly<Record<string, string>>
  /** Values of `{name:Type}` placeholders in ClickHouse's escaped text form, as they come in `param_name`. */
  readonly parameters: Readonly<Record<string, string>>
  /** The client accepts a gzip-compressed response. */
  readonly acceptsGzip: boolean
  /** The response starts after the statement has ended, so that its status reports the outcome. */
  readonly waitsForEnd: boolean
}

/** Statistics of a statement for the `X-ClickHouse-Summary` header. */
interface Summary {
  readonly rowsRead: number
  readonly bytesRead: number
  readonly elapsedSeconds: number
}

const NOTHING_YET: Summary = { rowsRead: 0, bytesRead: 0, elapsedSeconds: 0 }

/** A failure as ClickHouse reports it: numeric code, its name, and a message without either. */
export class ClickHouseFailure extends Error {
  constructor(
    readonly code: number,
    readonly type: string,
    message: string,
  ) {
    super(message)
    this.name = 'ClickHouseFailure'
  }

  /**
   * Reads the engine's own text, `Code: 60. DB::Exception: … (UNKNOWN_TABLE) (version …)`. In linear time: it may quote a
   * tenant's query, with white space of any length.
   */
  static fromText(text: string): ClickHouseFailure {
    const plain = text
      .trimEnd()
      .replace(/\(version [^()]*(\([^()]*\))?\)$/, '')
      .trimEnd()
    // Layers of the engine may repeat the prefix.
    const prefix = /^(?:(?:Query failed: )?Code: (\d+)\. DB::Exception:(?: |$))+/.exec(plain)
    if (prefix === null) return new ClickHouseFailure(UNKNOWN_EXCEPTION, 'UNKNOWN_EXCEPTION', text.trim())
    const said = plain.slice(prefix[0].length)
    const type = /\(([A-Z0-9_]+)\)$/.exec(said)
    const message = said.slice(0, type?.index).trimEnd()
    return new ClickHouseFailure(Number(prefix[1]), type?.[1] ?? 'UNKNOWN_EXCEPTION', message)
  }

  get status(): number {
    return HTTP_STATUS[this.code] ?? 500
  }

  toText(version: string): string {
    return `Code: ${this.code}. DB::Exception: ${this.message} (${this.type}) (version ${version} (official build))\n`
  }
}

interface Credentials {
  readonly username: string
  readonly password: string
}

/** The client's credentials, from headers or URL, as ClickHouse accepts them. */
export function readCredentials(request: Request): Credentials {
  const url = new URL(request.url)
  const basic = /^Basic\s+(\S+)$/i.exec(request.headers.get('authorization') ?? '')
  if (basic !== null) {
    const [username, ...rest] = Buffer.from(basic[1], 'base64').toString('utf8').split(':')
    return { username, password: rest.join(':') }
  }
  return {
    username: request.headers.get('x-clickhouse-user') ?? url.searchParams.get('user') ?? 'default',
    password: request.headers.get('x-clickhouse-key') ?? url.searchParams.get('password') ?? '',
  }
}

/**
 * Parses a request. The body stays unread when it is the data of an INSERT (`hasData`).
 *
 * @param mintQueryId generates an id for a query without `query_id`
 * @throws ClickHouseFailure when the request does not follow the protocol
 */
export async function readStatement(request: Request, mintQueryId: () => string): Promise<Statement> {
  const search = new URL(request.url).searchParams
  refuseUnsupported(search)
  const fields = await readForm(request)
  const inUrl = search.get('query') ?? ''
  const hasData = fields === undefined && request.body !== null && /^\s*INSERT\b/i.test(inUrl)
  const inBody = fields?.get('query') ?? (hasData || fields !== undefined ? '' : await readText(request))
  const named = [...search, ...(fields ?? [])]
  return {
    text: inUrl !== '' && inBody !== '' ? `${inUrl}\n${inBody}` : inUrl + inBody,
    hasData,
    database: search.get('database') ?? request.headers.get('x-clickhouse-database') ?? undefined,
    queryId: search.get('query_id') || mintQueryId(),
    quotaKey: search.get('quota_key') ?? undefined,
    defaultFormat: request.headers.get('x-clickhouse-format') ?? search.get('default_format') ?? 'TabSeparated',
    settings: Object.fromEntries(
      [...search].filter(([name]) => !PROTOCOL_PARAMETERS.has(name) && !name.startsWith('param_')),
    ),
    parameters: Object.fromEntries(
      named.flatMap(([name, value]) => (name.startsWith('param_') ? [[name.slice('param_'.length), value]] : [])),
    ),
    acceptsGzip: acceptsGzip(request),
    waitsForEnd: (search.get('wait_end_of_query') ?? '0') !== '0',
  }
}

/** Whether the client accepts a compressed response and requests one. */
export function acceptsGzip(request: Request): boolean {
  const isAskedFor = new URL(request.url).searchParams.get('enable_http_compression') === '1'
  return isAskedFor && /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '')
}

/** The output format of `text`: its FORMAT clause overrides the default. */
export function outputFormat(text: string, defaultFormat: string): string {
  const statement = text.trimEnd().replace(/;$/, '')
  // In linear time, as the texts of tenants are in it: nothing after FORMAT has a semicolon.
  const last = statement.slice(statement.lastIndexOf(';') + 1)
  return /\bFORMAT\s+([A-Za-z0-9]+)\s*(?:SETTINGS\b[\s\S]*)?$/i.exec(last)?.[1] ?? defaultFormat
}

/** The response headers. A streamed response has no statistics, because they are not known when it starts. */
export function answerHeaders(queryId: string, format: string, summary = NOTHING_YET): Record<string, string> {
  return {
    'Content-Type': contentType(format),
    'X-ClickHouse-Query-Id': queryId,
    'X-ClickHouse-Format': format,
    'X-ClickHouse-Timezone': 'UTC',
    'X-ClickHouse-Summary': JSON.stringify({
      read_rows: String(summary.rowsRead),
      read_bytes: String(summary.bytesRead),
      written_rows: '0',
      written_bytes: '0',
      elapsed_ns: String(Math.round(summary.elapsedSeconds * 1e9)),
    }),
  }
}

/** An error as every ClickHouse client parses it. */
export function failureResponse(failure: ClickHouseFailure, version: string, queryId?: string): Response {
  const headers = new Headers({
    'Content-Type': 'text/plain; charset=UTF-8',
    'X-ClickHouse-Exception-Code': String(failure.code),
  })
  if (queryId !== undefined) headers.set('X-ClickHouse-Query-Id', queryId)
  return new Response(failure.toText(version), { status: failure.status, headers })
}

export function resultTooLarge(bytesMax: number): ClickHouseFailure {
  return new ClickHouseFailure(396, 'TOO_MANY_ROWS_OR_BYTES', `Limit for result exceeded, max bytes: ${bytesMax}.`)
}

function notImplemented(what: string): ClickHouseFailure {
  return new ClickHouseFailure(48, 'NOT_IMPLEMENTED', `${what} is not supported by this server.`)
}

export function authenticationFailed(username: string): ClickHouseFailure {
  return new ClickHouseFailure(
    516,
    'AUTHENTICATION_FAILED',
    `${username}: Authentication failed: password is incorrect, or there is no user with such name.`,
  )
}

function refuseUnsupported(search: URLSearchParams): void {
  for (const name of UNSUPPORTED_PARAMETERS) if (search.has(name)) throw notImplemented(`Parameter ${name}`)
  for (const name of ['compress', 'decompress']) {
    if ((search.get(name) ?? '0') !== '0') throw notImplemented(`Parameter ${name} (use HTTP compression)`)
  }
}

/** Fields of a multipart body, which clients use for queries and parameters that are too long for a URL. */
async function readForm(request: Request): Promise<Map<string, string> | undefined> {
  if (!/^multipart\/form-data\b/i.test(request.headers.get('content-type') ?? '')) return undefined
  refuseTooLarge(Number(request.headers.get('content-length') ?? 0))
  const fields = new Map<string, string>()
  const form = await request.formData().catch(() => {
    throw new ClickHouseFailure(36, 'BAD_ARGUMENTS', 'The body is not valid multipart/form-data.')
  })
  for (const [name, value] of form) {
    if (typeof value !== 'string') throw notImplemented('External data (a file in a multipart body)')
    fields.set(name, value)
  }
  return fields
}

async function readText(request: Request): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.length
    refuseTooLarge(size)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function refuseTooLarge(bytes: number): void {
  if (bytes <= STATEMENT_BYTES_MAX) return
  throw new ClickHouseFailure(307, 'TOO_MANY_BYTES', `The statement is longer than ${STATEMENT_BYTES_MAX} bytes.`)
}

function contentType(format: string): string {
  if (/^JSON.*EachRow|^JSONLines|^NDJSON|^PrettyJSON/.test(format)) return 'application/x-ndjson; charset=UTF-8'
  if (format.startsWith('JSON')) return 'application/json; charset=UTF-8'
  if (/^CSV/.test(format)) return `text/csv; charset=UTF-8; header=${format.includes('Names') ? 'present' : 'absent'}`
  if (/^(TSV|TabSeparated)/.test(format)) return 'text/tab-separated-values; charset=UTF-8'
  if (format === 'XML') return 'application/xml; charset=UTF-8'
  if (/^(Native|RowBinary|Parquet|Arrow|ORC|Avro|Protobuf|MsgPack|BSON|Npy)/.test(format))
    return 'application/octet-stream'
  return 'text/plain; charset=UTF-8'
}

function statusOf(status: number, codes: readonly number[]): Record<number, number> {
  return Object.fromEntries(codes.map((code) => [code, status]))
}
