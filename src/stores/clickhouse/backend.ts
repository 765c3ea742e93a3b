/** The database of the service, unless `CLICKHOUSE_URL` names another. */
export const DEFAULT_DATABASE = 'ars'
const PROBE_INTERVAL_MS = 250
const PROBE_TIMEOUT_MS = 5_000

/**
 * A ClickHouse that may be temporarily unavailable: a remote server, or the embedded engine in a child process. The
 * service accesses both only through `client.ts`.
 */
export interface ColumnarBackend {
  /** `http(s)://host:port`. May change when the embedded engine restarts on another port. */
  readonly url: string
  readonly username: string
  readonly password: string
  /** The database of the service's tables. */
  readonly database: string
  /** The cluster of ClickHouse servers on which tables are replicated; undefined: a single server. */
  readonly cluster?: string | undefined
  /** The embedded engine has ended and is being started again, which takes about a second. */
  readonly isRestarting: boolean
  /** Resolves once it responds; rejects with the signal's reason if that aborts first. */
  whenReady(signal?: AbortSignal): Promise<void>
  /** Stops the embedded engine; a remote server is not affected. */
  stop(): Promise<void>
}

/**
 * A ClickHouse server that the operator runs.
 *
 * @param clickhouseUrl `http(s)://user:password@host:port/database`; user, password and database may be missing
 * @param cluster the name of its cluster, if it is one of several replicas
 */
export function remoteClickHouse(clickhouseUrl: string, cluster?: string): ColumnarBackend {
  const parsed = new URL(clickhouseUrl)
  return {
    url: parsed.origin,
    username: decodeURIComponent(parsed.username) || 'default',
    password: decodeURIComponent(parsed.password),
    database: decodeURIComponent(parsed.pathname.slice(1)) || DEFAULT_DATABASE,
    cluster,
    isRestarting: false,
    async whenReady(signal) {
      while (!(await answersPing(parsed.origin))) {
        signal?.throwIfAborted()
        await Bun.sleep(PROBE_INTERVAL_MS)
      }
    },
    async stop() {},
  }
}

async function answersPing(origin: string): Promise<boolean> {
  try {
    return (await fetch(`${origin}/ping`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })).ok
  } catch {
    return false
  }
}
