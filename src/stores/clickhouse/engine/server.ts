import { mkdir, rm, writeFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { releaseCode, releaseCodeWhenIdle } from '../../../base/code-pages.ts'
import type { LogLevel } from '../../../base/log.ts'
import { createLog, type Log } from '../../../base/log.ts'
import { answer } from './answer.ts'
import { openEngine } from './chdb.ts'
import { createLanes } from './lanes.ts'
import { linesOf } from './lines.ts'
import { setProcessNice } from './nice.ts'
import type { StuckAfter } from './query-deadline.ts'
import { serverConfig } from './server-config.ts'
import { Statements } from './statements.ts'

/** The first line of standard input. Standard input then stays open for as long as the parent lives. */
export interface ServerOptions {
  readonly directory: string
  /** 0: any free port. */
  readonly port: number
  readonly password: string
  readonly logLevel: LogLevel
  /** Maximum concurrent statements of one quota key. */
  readonly statementsPerKey: number
  /** When a tenant's statement is considered stuck after its cancellation. */
  readonly tenantStuckAfter: StuckAfter
}

/** The first line on standard output: the engine is ready, or the reason why it cannot start. */
export type ServerReady = { readonly port: number } | { readonly error: string }

/** The last line on standard output: the process ends, because statements of these quota keys cannot be stopped. */
export interface ServerStuck {
  readonly stuck: readonly string[]
}

const DATA_BYTES_MAX = 512 * 1024 * 1024
const DRAIN_MS = 5_000
/** Time to send pending responses before the process is killed. */
const LAST_ANSWERS_MS = 100

if (import.meta.main) await main()

/** Entry point of the engine's process; `supervisor.ts` is the parent's side. */
async function main(): Promise<void> {
  setProcessNice()
  // Ctrl-C in a terminal reaches all processes of the service; the service itself decides when this one ends.
  process.on('SIGINT', () => {})
  // The service has ended.
  process.stdout.on('error', () => process.exit(1))
  const lines = linesOf(Bun.stdin.stream())
  const options = JSON.parse((await lines.next()).value ?? '{}') as ServerOptions
  const log = createLog(options.logLevel, undefined, process.stderr.isTTY === true ? 'text' : 'json')
  try {
    const server = await startServer(options, log)
    process.stdout.write(`${JSON.stringify({ port: server.port } satisfies ServerReady)}\n`)
    releaseCode()
    releaseCodeWhenIdle()
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
  const lanes = createLanes(options.statementsPerKey)
  const statements = new Statements((stuck) => {
    log.error('embedded ClickHouse cannot stop a statement; its process exits and is restarted')
    process.stdout.write(`${JSON.stringify({ stuck } satisfies ServerStuck)}\n`)
    // Only SIGKILL ends a process whose threads are busy. Stored data is not affected.
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_ANSWERS_MS)
  })
  const { password, tenantStuckAfter } = options
  const context = { engine, lanes, statements, uploads, password, tenantStuckAfter, log }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: options.port,
    // Development mode prints the error that aborts a response.
    development: false,
    // A statement may send nothing for as long as it runs.
    idleTimeout: 0,
    maxRequestBodySize: DATA_BYTES_MAX,
    fetch: (request) => answer(request, context),
  })
  return {
    port: server.port ?? 0,
    stop: async () => {
      void server.stop()
      await Promise.race([lanes.idle(), Bun.sleep(DRAIN_MS)])
    },
  }
}
