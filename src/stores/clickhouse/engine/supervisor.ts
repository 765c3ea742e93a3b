import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { tryResolveLibchdb } from 'chdb/libchdb'
import { orAborted } from '../../../base/abort.ts'
import type { Log, LogLevel } from '../../../base/log.ts'
import { StartError } from '../../../base/start-error.ts'
import { type ColumnarBackend, DEFAULT_DATABASE } from '../backend.ts'
import { POOL_THREADS } from './lanes.ts'
import { linesOf } from './lines.ts'
import type { StuckAfter } from './query-deadline.ts'
import type { ServerOptions, ServerReady, ServerStuck } from './server.ts'

interface EmbeddedClickHouseOptions {
  /** Absolute. The engine's data is in `<dataDir>/clickhouse`. The caller holds the lock on `dataDir`. */
  readonly dataDir: string
  readonly log: Log
  /** Log level of the child, which logs to the service's standard error. */
  readonly logLevel?: LogLevel
  /** Maximum concurrent statements of one quota key (a workspace's id). */
  readonly statementsPerKey?: number
  /** When a tenant's statement is considered stuck after its cancellation; the engine then restarts. */
  readonly tenantStuckAfter?: StuckAfter
  /** Called when the engine restarts because a statement cannot be ended, with its quota key if it is a tenant's. */
  readonly onStuck?: (quotaKeys: readonly string[]) => void
  /** Called when the child process has been started for the first time. */
  readonly onLaunched?: () => void
}

/** The embedded engine. */
export interface EmbeddedClickHouse extends ColumnarBackend {
  /** Process id of the engine; undefined while it is down. */
  readonly pid: number | undefined
}

/** After a `kill -9` of the service the old engine needs a moment to notice and to release the directory. */
const FIRST_START_PATIENCE_MS = 10_000
const RESTART_DELAY_MIN_MS = 50
const RESTART_DELAY_MAX_MS = 5_000
const READY_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 8_000
const STATEMENTS_PER_KEY = 3
const TENANT_STUCK_AFTER = { busyMs: 2_500, latestMs: 4_500 }
/** An engine that does not respond for this long is restarted. */
const SILENCE_MAX_MS = 15_000
const PING_INTERVAL_MS = 1_000

/**
 * Starts the embedded ClickHouse: the engine in a child process that serves ClickHouse's HTTP protocol on loopback. It is
 * restarted when it crashes or hangs, with the same port and password, and it ends when this process ends in any way.
 *
 * @throws StartError when it does not start the first time
 */
export async function startEmbeddedClickHouse(options: EmbeddedClickHouseOptions): Promise<EmbeddedClickHouse> {
  if (tryResolveLibchdb() === undefined) {
    throw new StartError(
      `there is no embedded ClickHouse for this platform (${process.platform}-${process.arch}): set CLICKHOUSE_URL`,
    )
  }
  const directory = join(options.dataDir, 'clickhouse')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const password = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url')
  const { log, logLevel = 'warn', statementsPerKey = STATEMENTS_PER_KEY } = options
  const { tenantStuckAfter = TENANT_STUCK_AFTER, onStuck = () => {}, onLaunched = () => {} } = options
  const start = (port: number) =>
    startChild({ directory, port, password, logLevel, statementsPerKey, tenantStuckAfter }, onStuck)
  const starting = startPatiently(start)
  onLaunched()
  return supervise(await starting, start, password, log)
}

interface Child {
  readonly pid: number
  readonly port: number
  readonly exited: Promise<number>
  stop(): Promise<void>
  kill(): void
}

type Start = (port: number) => Promise<Child>

function supervise(first: Child, start: Start, password: string, log: Log): EmbeddedClickHouse {
  let child: Child | undefined = first
  let port = first.port
  let stopping = false
  let readiness = Promise.resolve()

  const restart = async () => {
    for (let delay = RESTART_DELAY_MIN_MS; !stopping; delay = Math.min(delay * 2, RESTART_DELAY_MAX_MS)) {
      try {
        const next = await start(port)
        if (stopping) return next.stop()
        log.info('embedded ClickHouse was restarted', { pid: next.pid })
        return watch(next)
      } catch (error) {
        log.error('embedded ClickHouse does not start', { error, retry_in_ms: delay })
        await Bun.sleep(delay)
      }
    }
  }
  const watch = (next: Child) => {
    child = next
    port = next.port
    const endPings = pingUntilSilent(next, () => {
      log.error('embedded ClickHouse does not respond', { pid: next.pid, for_ms: SILENCE_MAX_MS })
      next.kill()
    })
    void next.exited.then((exitCode) => {
      endPings()
      child = undefined
      if (stopping) return
      log.error('embedded ClickHouse ended unexpectedly', { pid: next.pid, exit_code: exitCode })
      readiness = restart()
    })
  }
  watch(first)

  return {
    get url() {
      return `http://127.0.0.1:${port}`
    },
    username: 'default',
    password,
    database: DEFAULT_DATABASE,
    get isRestarting() {
      return child === undefined && !stopping
    },
    get pid() {
      return child?.pid
    },
    async whenReady(signal) {
      while (child === undefined) {
        signal?.throwIfAborted()
        if (stopping) throw new Error('embedded ClickHouse was stopped')
        await (signal === undefined ? readiness : orAborted(readiness, signal))
      }
    },
    async stop() {
      stopping = true
      await child?.stop()
      await readiness
    },
  }
}

/** @returns a function that stops the pings */
function pingUntilSilent({ port }: Child, onSilent: () => void): () => void {
  let silentMs = 0
  let tickedAt = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    // While this process did not run, or its event loop was busy, no answer could be read.
    silentMs += Math.min(now - tickedAt, PING_INTERVAL_MS)
    tickedAt = now
    if (silentMs > SILENCE_MAX_MS) {
      clearInterval(timer)
      return onSilent()
    }
    fetch(`http://127.0.0.1:${port}/ping`, { signal: AbortSignal.timeout(SILENCE_MAX_MS) }).then(
      () => {
        silentMs = 0
      },
      () => {},
    )
  }, PING_INTERVAL_MS)
  return () => clearInterval(timer)
}

async function startPatiently(start: Start): Promise<Child> {
  const deadline = performance.now() + FIRST_START_PATIENCE_MS
  for (;;) {
    try {
      return await start(0)
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause)
      if (performance.now() > deadline)
        throw new StartError(`embedded ClickHouse does not start: ${message}`, { cause })
      await Bun.sleep(RESTART_DELAY_MIN_MS * 4)
    }
  }
}

/** @throws Error with the child's error if it does not become ready */
async function startChild(options: ServerOptions, onStuck: (quotaKeys: readonly string[]) => void): Promise<Child> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'server.ts')], {
    cwd: options.directory,
    // The service's environment is not passed on: SQL can read the environment, which may contain secrets.
    env: {
      HOME: options.directory,
      TZ: 'UTC',
      UV_THREADPOOL_SIZE: String(POOL_THREADS),
      // As `bun run start` sets it for the service.
      MIMALLOC_PURGE_DELAY: '10000',
    },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
    // Not detached: Linux may schedule by session first, and priorities apply only within a session: see `nice.ts`.
  })
  child.stdin.write(`${JSON.stringify(options)}\n`)
  await child.stdin.flush()
  const timer = setTimeout(() => child.kill('SIGKILL'), READY_TIMEOUT_MS)
  const lines = linesOf(child.stdout)
  const { value: line } = await lines.next()
  const ready: ServerReady | undefined = line === undefined ? undefined : JSON.parse(line)
  clearTimeout(timer)
  if (ready === undefined || 'error' in ready) {
    const exitCode = await child.exited
    throw new Error(ready?.error ?? `the engine's process ended with ${child.signalCode ?? exitCode}`)
  }
  void lines.next().then(({ value }) => {
    if (value !== undefined) onStuck((JSON.parse(value) as ServerStuck).stuck)
  })
  return {
    pid: child.pid,
    port: ready.port,
    exited: child.exited,
    kill: () => child.kill('SIGKILL'),
    async stop() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
      await child.exited
      clearTimeout(timer)
    },
  }
}
