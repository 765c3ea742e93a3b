import { timingSafeEqual } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { setPriority, totalmem } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { LogLevel } from '../../config.ts'
import { createLog, type Log } from '../../log.ts'
import {
  answerHeaders,
  authenticationFailed,
  bodyStream,
  ClickHouseFailure,
  failureResponse,
  outputFormat,
  readCredentials,
  readStatement,
  type Statement,
} from '../protocol.ts'
import { type Engine, openEngine } from './chdb.ts'
import { createGate } from './gate.ts'
import { serverConfig } from './server-config.ts'

/** First line of standard input: what the parent wants. Standard input then stays open for as long as the parent lives. */
export interface ServerOptions {
  readonly directory: string
  /** 0: any free one. */
  readonly port: number
  readonly password: string
  readonly logLevel: LogLevel
}

/** The one line on standard output, once the engine answers; or why it never will. */
export type ServerReady = { readonly port: number } | { readonly error: string }

/** Threads of the pool that statements run on; the parent sets it in the environment, because Bun reads it there. */
export const POOL_THREADS = 24

/** The rest of the pool is for cancelling and for classifying, which must not wait behind slow statements. */
const STATEMENTS_AT_ONCE = 16
const STATEMENTS_WAITING_MAX = 256
const DATA_BYTES_MAX = 512 * 1024 * 1024
const KILL_RETRY_MS = 50
const DRAIN_MS = 5_000
/** Answers to ingest calls come first: the engine may lag, an acknowledgement may not. */
const NICE = 15

const compress = promisify(gzip)

if (import.meta.main) await main()

/** Entry of the engine's process: see `supervisor.ts` for the other end. */
async function main(): Promise<void> {
  setPriority(NICE)
  const lines = standardInput()
  const options = JSON.parse((await lines.next()).value ?? '{}') as ServerOptions
  const log = createLog(options.logLevel)
  try {
    const server = await startServer(options, log)
    process.stdout.write(`${JSON.stringify({ port: server.port } satisfies ServerReady)}\n`)
    const stop = () => void server.stop().then(() => process.exit(0))
    process.on('SIGTERM', stop)
    // The terminal's Ctrl-C reaches the whole process group; the parent decides what follows from it.
    process.on('SIGINT', () => {})
    await lines.next()
    process.exit(0)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    process.stdout.write(`${JSON.stringify({ error: message } satisfies ServerReady)}\n`)
    process.exit(1)
  }
}

async function startServer(options: ServerOptions, log: Log): Promise<{ port: number; stop(): Promise<void> }> {
  const { directory } = options
  const uploads = join(directory, 'uploads')
  await rm(uploads, { recursive: true, force: true })
  await mkdir(uploads, { recursive: true })
  const configFile = join(directory, 'server.xml')
  await writeFile(configFile, serverConfig(totalmem()))
  const engine = openEngine(directory, configFile)
  const gate = createGate(STATEMENTS_AT_ONCE, STATEMENTS_WAITING_MAX)

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: options.port,
    // A statement may be silent for as long as it runs.
    idleTimeout: 0,
    maxRequestBodySize: DATA_BYTES_MAX,
    fetch: (request) => answer(request, { engine, gate, uploads, password: options.password, log }),
  })
  return {
    port: server.port ?? 0,
    stop: async () => {
      void server.stop()
      await Promise.race([gate.idle(), Bun.sleep(DRAIN_MS)])
    },
  }
}

interface Context {
  readonly engine: Engine
  readonly gate: ReturnType<typeof createGate>
  readonly uploads: string
  readonly password: string
  readonly log: Log
}

async function answer(request: Request, context: Context): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  if (request.method === 'GET' && (pathname === '/ping' || search === '')) return new Response('Ok.\n')
  let queryId: string | undefined
  try {
    const { username, password } = readCredentials(request)
    if (!sameText(password, context.password)) throw authenticationFailed(username)
    const statement = await readStatement(request, () => Bun.randomUUIDv7())
    queryId = statement.queryId
    return await context.gate.run(request.signal, () => execute(request, statement, context))
  } catch (error) {
    if (!(error instanceof ClickHouseFailure)) context.log.error('engine request failed', { error })
    const failure =
      error instanceof ClickHouseFailure ? error : ClickHouseFailure.fromText(String((error as Error).message ?? error))
    return failureResponse(failure, context.engine.version, queryId)
  }
}

async function execute(request: Request, statement: Statement, context: Context): Promise<Response> {
  const { engine } = context
  const { text, queryId } = statement
  const format = outputFormat(text, statement.defaultFormat)
  const dataFile = statement.hasData ? await receive(request, context.uploads) : undefined
  try {
    const running = engine.run({ ...statement, database: statement.database ?? 'default', format, dataFile })
    // An INSERT whose data is here is finished even if its client is gone: the repeat is then recognised and cheap.
    if (dataFile === undefined) void killWhenAbandoned(request.signal, running, () => engine.kill(queryId))
    const outcome = await running
    const headers = answerHeaders(queryId, format, {
      readRows: outcome.rowsRead,
      readBytes: outcome.bytesRead,
      writtenRows: outcome.rowsWritten,
      writtenBytes: outcome.bytesWritten,
      elapsedSeconds: outcome.elapsedSeconds,
    })
    if (!statement.acceptsGzip) return new Response(outcome.bytes, { headers })
    return new Response(await compress(outcome.bytes), { headers: { ...headers, 'Content-Encoding': 'gzip' } })
  } finally {
    if (dataFile !== undefined) await rm(dataFile, { force: true })
  }
}

/** Stores the data of an INSERT as it comes in: the engine reads binary formats from files only. */
async function receive(request: Request, uploads: string): Promise<string> {
  const path = join(uploads, Bun.randomUUIDv7())
  try {
    await Bun.write(path, new Response(bodyStream(request)))
    return path
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
}

/** The kill may come before the engine knows the query, so it is repeated until the query has ended. */
async function killWhenAbandoned(signal: AbortSignal, running: Promise<unknown>, kill: () => Promise<void>) {
  let ended = false
  const end = running.then(
    () => {},
    () => {},
  )
  void end.then(() => {
    ended = true
  })
  const abandoned = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  if (!signal.aborted) await Promise.race([abandoned, end])
  while (!ended) {
    await kill().catch(() => {})
    await Promise.race([end, Bun.sleep(KILL_RETRY_MS)])
  }
}

/** Lines of standard input; ends when the parent closes it or dies. */
async function* standardInput(): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of Bun.stdin.stream()) {
    rest += Buffer.from(chunk).toString('utf8')
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      yield rest.slice(0, end)
      rest = rest.slice(end + 1)
    }
  }
}

/** Compares in a time that tells nothing about where the texts differ. */
function sameText(a: string, b: string): boolean {
  const digest = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
