import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { createProgress } from '../../src/base/progress.ts'
import { type Config, parseConfig } from '../../src/service/config/config.ts'
import type { ServiceOptions } from '../../src/service/lifecycle.ts'
import { startService } from '../../src/service/service.ts'
import { mintToken } from '../../src/tenants/keys/token.ts'
import { type Api, createApi } from './api.ts'
import { freshColumnarDatabase } from './columnar.ts'
import { eventually } from './eventually.ts'
import { freshDatabase } from './postgres.ts'
import { collectOutput, freePorts } from './processes.ts'
import { freshDataDir } from './stores.ts'
import { atEnd, temporaryDirectory } from './teardown.ts'

export const OPERATOR_TOKEN = 'operator-token-of-the-tests'
/**
 * For tests that are not about limits: on a busy machine a query gets enough time, and on an idle one waiting for a
 * condition does not use up the budget of the key.
 */
const GENEROUS = {
  QUERY_CAPS: '{"seconds": 120}',
  RATE_LIMIT_QUERIES_PER_MINUTE: '600000',
  RATE_LIMIT_READS_PER_MINUTE: '600000',
}

/** Variables that lift the limits of keys. */
export const UNLIMITED = {
  RATE_LIMIT_INGEST_REQUESTS_PER_MINUTE: '0',
  RATE_LIMIT_EVENTS_PER_SECOND: '0',
  RATE_LIMIT_INVOKES_PER_MINUTE: '0',
  RATE_LIMIT_READS_PER_MINUTE: '0',
  RATE_LIMIT_QUERIES_PER_MINUTE: '0',
}

export interface TestService {
  readonly url: string
  readonly workspaceKey: string
  readonly dataDir: string
  readonly databaseUrl: string
  readonly clickhouseUrl: string
  readonly api: Api
  /** Resolves when Postgres was restored to an earlier state. */
  readonly outdated: Promise<void>
  stop(): Promise<void>
}

/**
 * The whole service in this process, on its own port, with its own database in each of the shared stores: about
 * 200 ms. Stopped after the last test file at the latest.
 *
 * @param env variables to set, as `config.ts` names them
 * @param bounds replace those of the configuration, also ones that no variable sets
 */
export async function startTestService(
  env: Record<string, string> = {},
  {
    bounds = {},
    ...options
  }: Pick<ServiceOptions, 'clock' | 'storeMarkIntervalMs' | 'alertSecondMs' | 'webhooks'> & { bounds?: Bounds } = {},
): Promise<TestService> {
  const [dataDir, databaseUrl, clickhouseUrl] = await Promise.all([
    env.DATA_DIR ?? temporaryDirectory(),
    env.DATABASE_URL ?? freshDatabase().then(({ url }) => url),
    env.CLICKHOUSE_URL ?? freshColumnarDatabase().then(({ url }) => url),
  ])
  const workspaceKey = env.BOOTSTRAP_WORKSPACE_KEY ?? mintToken('workspace').text
  const parsed = parseConfig({
    PORT: '0',
    LOG_LEVEL: 'error',
    ...GENEROUS,
    OPERATOR_TOKEN,
    ...env,
    DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
  })
  const config = withBounds(parsed, bounds)
  const progress = createProgress(() => {})
  const service = await startService(config, { log: createLog(config.logLevel), progress, ...options })
  atEnd(() => service.stop())
  const api = createApi(service.url, workspaceKey)
  const { url, outdated, stop } = service
  return { url, workspaceKey, dataDir, databaseUrl, clickhouseUrl, api, outdated, stop }
}

/** The variables that start a service again with the data and the key of one that has stopped. */
export function dataOf({ dataDir, databaseUrl, clickhouseUrl, workspaceKey }: TestService): Record<string, string> {
  return {
    DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
  }
}

type Section = 'feeds' | 'guessing' | 'hosted' | 'limits' | 'queries'
type Bounds = Partial<Pick<Config, 'bodyTimeoutMs' | 'idleSeconds'>> & { [Name in Section]?: Partial<Config[Name]> }

function withBounds(config: Config, { feeds, guessing, hosted, limits, queries, ...rest }: Bounds): Config {
  return {
    ...config,
    ...rest,
    feeds: { ...config.feeds, ...feeds },
    guessing: { ...config.guessing, ...guessing },
    hosted: { ...config.hosted, ...hosted },
    limits: { ...config.limits, ...limits },
    queries: { ...config.queries, ...queries },
  }
}

export interface SpawnedService {
  readonly pid: number
  readonly url: string
  readonly workspaceKey: string
  readonly dataDir: string
  readonly api: Api
  /** Everything it has printed so far. */
  output(): { readonly stdout: string; readonly stderr: string }
  kill(signal?: NodeJS.Signals): void
  /** Resolves with the exit code; null if a signal ended it. */
  readonly exited: Promise<number | null>
}

const MAIN = join(import.meta.dir, '..', '..', 'src', 'main.ts')

/**
 * The whole service as a real process, for tests that kill it. Its stores are the embedded ones in `DATA_DIR` unless
 * `env` says otherwise. Pass the `DATA_DIR`, `PORT` and `BOOTSTRAP_WORKSPACE_KEY` of an earlier one to restart it.
 *
 * @throws Error with its output if it exits before it is ready
 */
export async function spawnService(
  env: Record<string, string> = {},
  options: RunOptions = {},
): Promise<SpawnedService> {
  const dataDir = env.DATA_DIR ?? (await freshDataDir())
  const workspaceKey = env.BOOTSTRAP_WORKSPACE_KEY ?? mintToken('workspace').text
  const own = { DATA_DIR: dataDir, BOOTSTRAP_WORKSPACE_KEY: workspaceKey }
  const child = runMain({ PORT: '0', OPERATOR_TOKEN, ...GENEROUS, ...env, ...own }, options)
  const url = await Promise.race([
    child.printed(/ready at (\S+)/),
    child.exited.then((code) => {
      throw new Error(`the service exited with ${code} before it was ready:\n${child.output().stderr}`)
    }),
  ])
  return { ...child, url, workspaceKey, dataDir, api: createApi(url, workspaceKey) }
}

export interface RunOptions {
  /** The limit of open files for the process, as with `ulimit -n`. */
  readonly openFiles?: number
  /** A module that the process loads before the service. */
  readonly preload?: string
  /** The program; by default that of the work tree. */
  readonly main?: string
}

/** Runs `main.ts` with these variables only; also for tests of failing starts. */
export function runMain(env: Record<string, string>, { openFiles, preload, main = MAIN }: RunOptions = {}) {
  const limited = openFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`]
  const preloaded = preload === undefined ? [] : ['--preload', preload]
  const child = Bun.spawn([...limited, process.execPath, ...preloaded, main], {
    // As `bun run start` sets it.
    env: { PATH: process.env.PATH ?? '', MIMALLOC_PURGE_DELAY: '10000', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const { printed, read, change } = collectOutput(child)
  atEnd(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await child.exited
  })
  return {
    pid: child.pid,
    output: () => ({ ...printed }),
    kill: (signal: NodeJS.Signals = 'SIGKILL') => child.kill(signal),
    exited: child.exited.then(async () => {
      await read
      return child.exitCode
    }),
    /** The first group of `pattern`, once standard output matches. */
    async printed(pattern: RegExp): Promise<string> {
      for (;;) {
        const found = pattern.exec(printed.stdout)?.[1]
        if (found !== undefined) return found
        await change()
      }
    },
  }
}

/** A port that was free a moment ago. */
export function freePort(): number {
  return freePorts(1)[0]!
}

/** The rows of a query. @param more other members of the request */
export async function rowsInSql(api: Api, query: string, more: object = {}) {
  const { data, error } = await api('POST', '/api/v1/query', { query, ...more })
  if (error !== null) throw new Error(error.message)
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  return data.rows as any[]
}

/** Waits until SQL has everything acknowledged so far. */
export async function allInSql(api: Api): Promise<void> {
  const isDone = async () => {
    const { data } = await api('GET', '/readyz', undefined, { key: null })
    return data.consumers.clickhouse.lag === 0 && data.consumers.outbox.lag === 0
  }
  // Each check asks all stores, so it is not made too often.
  await eventually(isDone, { intervalMs: 50, timeoutMs: 60_000 })
}
