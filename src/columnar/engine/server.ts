import { writeFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { setPriority, totalmem } from 'node:os'
import { join } from 'node:path'
import type { LogLevel } from '../../config.ts'
import { createLog, type Log } from '../../log.ts'
import { answer } from './answer.ts'
import { openEngine } from './chdb.ts'
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
export const POOL_THREADS = 32

/** The rest of the pool is for cancelling and for classifying, which must not wait behind slow statements. */
const STATEMENTS_AT_ONCE = 16
const STATEMENTS_WAITING_MAX = 256
/** Results on their way to a reader, who may be slow: they must not take the places of short statements. */
const STREAMS_AT_ONCE = 8
const STREAMS_WAITING_MAX = 64
const DATA_BYTES_MAX = 512 * 1024 * 1024
const DRAIN_MS = 5_000
/** Answers to ingest calls come first: the engine may lag, an acknowledgement may not. */
const NICE = 10

if (import.meta.main) await main()

/** Where Linux groups processes by session (autogroup), a nice value counts within the group only, and each group has its own. */
function yieldToOthers(): void {
  setPriority(NICE)
  try {
    writeFileSync('/proc/self/autogroup', String(NICE))
  } catch {
    // Elsewhere there are no groups.
  }
}

/** Entry of the engine's process: see `supervisor.ts` for the other end. */
async function main(): Promise<void> {
  yieldToOthers()
  const lines = standardInput()
  const options = JSON.parse((await lines.next()).value ?? '{}') as ServerOptions
  const log = createLog(options.logLevel)
  try {
    const server = await startServer(options, log)
    process.stdout.write(`${JSON.stringify({ port: server.port } satisfies ServerReady)}\n`)
    const stop = () => void server.stop().then(() => process.exit(0))
    process.on('SIGTERM', stop)
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
  const engine = openEngine({ directory, configFile })
  const gate = createGate(STATEMENTS_AT_ONCE, STATEMENTS_WAITING_MAX)
  const streamGate = createGate(STREAMS_AT_ONCE, STREAMS_WAITING_MAX)
  const context = { engine, gate, streamGate, uploads, password: options.password, log }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: options.port,
    // It would print the error that cuts off an answer.
    development: false,
    // A statement may be silent for as long as it runs.
    idleTimeout: 0,
    maxRequestBodySize: DATA_BYTES_MAX,
    fetch: (request) => answer(request, context),
  })
  return {
    port: server.port ?? 0,
    stop: async () => {
      void server.stop()
      await Promise.race([Promise.all([gate.idle(), streamGate.idle()]), Bun.sleep(DRAIN_MS)])
    },
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
