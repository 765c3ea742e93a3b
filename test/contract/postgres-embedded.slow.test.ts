import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres, isUnavailable, type Sql } from '../../src/stores/postgres/connect.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/stores/postgres/embedded.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf, isAlive } from '../support/processes.ts'
import { temporaryDirectory } from '../support/teardown.ts'

const log = createLog('silent')
const dataDir = await temporaryDirectory()
/** A cluster to copy: creating one takes a second, a copy of a stopped one some milliseconds. */
const template = join(dataDir, 'template')
const ends: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const end of ends.reverse()) await end()
})

async function start(directory: string): Promise<{ server: EmbeddedPostgres; sql: Sql }> {
  const server = await startEmbeddedPostgres({ dataDir: directory, log })
  const sql = connectPostgres(server.url, { log, max: 2 })
  ends.push(
    () => server.stop(),
    () => sql.end({ timeout: 1 }),
  )
  return { server, sql }
}

function postmasterPid(directory: string): number {
  return Number(readFileSync(join(directory, 'postgres', 'cluster', 'postmaster.pid'), 'utf8').split('\n')[0])
}

/** A zombie is not running: PID 1 of a container may not reap it. */
function isRunning(pid: number): boolean {
  const { stdout } = Bun.spawnSync(['ps', '-o', 'stat=', '-p', String(pid)])
  return /^[^Z]/.test(stdout.toString())
}

test('keeps committed rows and its URL across a restart', async () => {
  await mkdir(template, { mode: 0o711 })
  const first = await start(template)
  await first.sql`create table kept (n int)`
  await first.sql`insert into kept values (1)`
  await first.sql.end()
  const pid = postmasterPid(template)
  await first.server.stop()
  expect(isAlive(pid)).toBe(false)

  const second = await start(template)
  expect(second.server.url).toBe(first.server.url)
  expect([...(await second.sql`select n from kept`)]).toEqual([{ n: 1 }])
  await second.sql.end()
  await second.server.stop()
})

test('restarts Postgres when it dies, and the pool reconnects', async () => {
  const directory = await copyOfTemplate('dies')
  const { sql } = await start(directory)
  const pid = postmasterPid(directory)
  process.kill(pid, 'SIGKILL')
  await eventually(() => postmasterPid(directory) !== pid)
  await eventually(async () => {
    await sql`insert into kept values (2)`
  })
})

test('statements fail quickly as unavailable while the database is down', async () => {
  const { server, sql } = await start(await copyOfTemplate('away'))
  await sql`select 1`
  await server.stop()
  const results = await Promise.allSettled(Array.from({ length: 50 }, () => sql`select 1`))
  for (const result of results) expect(result.status === 'rejected' && isUnavailable(result.reason)).toBe(true)
})

test('a server whose service was killed exits by itself', async () => {
  const directory = await copyOfTemplate('orphan')
  const service = await spawnHolder(directory)
  const pid = postmasterPid(directory)
  service.kill('SIGKILL')
  await eventually(() => !isAlive(pid))
})

test('the next start stops an orphaned server, without losing data', async () => {
  const directory = await copyOfTemplate('stale')
  const service = await spawnHolder(directory)
  const pid = postmasterPid(directory)
  // The stopped orphan does not notice that its service died, as under heavy load.
  process.kill(pid, 'SIGSTOP')
  service.kill('SIGKILL')
  await service.exited
  setTimeout(() => process.kill(pid, 'SIGCONT'), 100)
  const { sql } = await start(directory)
  expect(postmasterPid(directory)).not.toBe(pid)
  expect([...(await sql`select n from held`)]).toEqual([{ n: 7 }])
})

test('stops backends that outlived a killed server before the next start', async () => {
  const directory = await copyOfTemplate('backends')
  const service = await spawnHolder(directory)
  const postmaster = postmasterPid(directory)
  const backends = childrenOf(postmaster).map(({ pid }) => pid)
  expect(backends.length).toBeGreaterThan(0)
  // Stopped backends do not notice the death of their server, like ones that are busy with a long query.
  for (const pid of backends) process.kill(pid, 'SIGSTOP')
  service.kill('SIGKILL')
  process.kill(postmaster, 'SIGKILL')
  await service.exited
  const { sql } = await start(directory)
  for (const pid of backends) expect(isRunning(pid)).toBe(false)
  expect([...(await sql`select n from held`)]).toEqual([{ n: 7 }])
})

test('a lock file that names another process does not prevent a start', async () => {
  const directory = await copyOfTemplate('lying')
  // As after a reboot, or when the killed server is not reaped: the pid belongs to a process that is not Postgres.
  await writeFile(join(directory, 'postgres', 'cluster', 'postmaster.pid'), `${process.pid}\n`)
  await writeFile(join(directory, 'postgres', '.s.PGSQL.5432.lock'), `${process.pid}\n`)
  const { sql } = await start(directory)
  expect([...(await sql`select 1 as n`)]).toEqual([{ n: 1 }])
})

test('starts after a first start that was killed half-way', async () => {
  const directory = join(dataDir, 'half')
  await mkdir(directory, { mode: 0o711 })
  await mkdir(join(directory, 'postgres', 'cluster.new', 'base'), { recursive: true })
  const { sql } = await start(directory)
  expect([...(await sql`select 1 as n`)]).toEqual([{ n: 1 }])
})

test('works in a directory whose path is too long for a unix socket', async () => {
  const directory = await copyOfTemplate('d'.repeat(100))
  const { sql } = await start(directory)
  expect([...(await sql`select 1 as n`)]).toEqual([{ n: 1 }])
})

test('only the owner can read the password and the data', async () => {
  const home = join(template, 'postgres')
  expect(statSync(home).mode & 0o777).toBe(0o700)
  expect(statSync(join(home, 'password')).mode & 0o777).toBe(0o600)
})

test.skipIf(process.getuid?.() !== 0)('root can keep it in a directory that only root can enter', async () => {
  const directory = await copyOfTemplate('private', 0o700)
  const { sql } = await start(directory)
  expect([...(await sql`select 1 as n`)]).toEqual([{ n: 1 }])
  expect(statSync(join(directory, 'postgres')).uid).not.toBe(0)
})

test('reports the message of Postgres when it does not start', async () => {
  const directory = await copyOfTemplate('broken')
  await writeFile(join(directory, 'postgres', 'cluster', 'PG_VERSION'), '9\n')
  expect(start(directory)).rejects.toThrow(/did not start: .*database files are incompatible/)
})

async function copyOfTemplate(name: string, mode = 0o711): Promise<string> {
  const path = join(dataDir, name)
  await mkdir(path, { mode })
  await Bun.$`cp -a ${join(template, 'postgres')} ${path}`
  return path
}

/** A process that starts the database, writes a row and stays until it is killed. */
async function spawnHolder(directory: string): Promise<Bun.Subprocess> {
  const root = join(import.meta.dir, '..', '..', 'src')
  const script = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(join(root, 'stores', 'postgres', 'embedded.ts'))})
    const { connectPostgres } = await import(${JSON.stringify(join(root, 'stores', 'postgres', 'connect.ts'))})
    const { createLog } = await import(${JSON.stringify(join(root, 'base', 'log.ts'))})
    const log = createLog('silent')
    const server = await startEmbeddedPostgres({ dataDir: process.argv[1], log })
    const sql = connectPostgres(server.url, { log })
    await sql\`create table held (n int)\`
    await sql\`insert into held values (7)\`
    await Bun.write(process.argv[1] + '/held', '')
    await new Promise(() => {})`
  const child = Bun.spawn([process.execPath, '-e', script, directory], { stdout: 'ignore', stderr: 'inherit' })
  ends.push(async () => child.kill('SIGKILL'))
  await eventually(() => existsSync(join(directory, 'held')))
  return child
}
