import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { mintToken } from '../../src/tenants/keys/token.ts'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/postgres.ts'
import { descendantsOf, isAlive, openTerminal } from '../support/processes.ts'
import { freePort, runMain, spawnService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** One data directory for most tests in turn: a first start takes longest. */
const dataDir = await temporaryDirectory()
const workspaceKey = mintToken('workspace').text
const ROOT = join(import.meta.dir, '..', '..')

const again = (env: Record<string, string> = {}) =>
  spawnService({ DATA_DIR: dataDir, BOOTSTRAP_WORKSPACE_KEY: workspaceKey, ...env })

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
}

/** `main.ts` in a pseudo-terminal. */
const openMain = (env: Record<string, string>) =>
  openTerminal([process.execPath, join(ROOT, 'src', 'main.ts')], { env: { TERM: 'xterm', ...env } })

/** A start that must fail and leave no process running. @returns its standard error */
async function failedStart(env: Record<string, string>): Promise<string> {
  const child = runMain({ PORT: '0', LOG_LEVEL: 'silent', ...env })
  const descendants = new Set<number>()
  const watch = setInterval(() => {
    for (const pid of descendantsOf(child.pid)) descendants.add(pid)
  }, 50)
  expect(await child.exited).toBe(1)
  clearInterval(watch)
  await eventually(() => ![...descendants].some(isAlive))
  expect(child.output().stdout).not.toContain('ready')
  return child.output().stderr
}

test('the first start prints an address, a key and a working curl command; the second finds all data and hides the key', async () => {
  const env = { PORT: '0', DATA_DIR: await temporaryDirectory(), LOG_LEVEL: 'silent' }
  const first = runMain(env)
  const curl = (await first.printed(/^ {2}(curl [\s\S]*?\n[\s\S]*?)\n/m)).trim()
  const key = await first.printed(/keep it\): (svc_ws_\w+)/)
  const pasted = Bun.spawn(['sh', '-c', `${curl} --silent`], { stdout: 'pipe' })
  expect(JSON.parse(await new Response(pasted.stdout).text())).toMatchObject({ data: { name: 'my first agent' } })
  first.kill('SIGTERM')
  expect(await first.exited).toBe(0)

  const second = await spawnService(env)
  const agents = await second.api('GET', '/api/v1/agents', undefined, { key })
  expect(agents.data.items).toHaveLength(1)
  expect(second.output().stdout).not.toContain('svc_ws_')
  second.kill('SIGTERM')
  expect(await second.exited).toBe(0)
})

test('on a terminal, the first start is one progress line, then the welcome, without JSON', async () => {
  const terminal = openMain({ PORT: '0', DATA_DIR: await temporaryDirectory() })
  await eventually(() => terminal.shown().includes('keep it): svc_ws_'))
  const before = terminal.shown().split('Agent Run Service is ready')[0] ?? ''
  expect(before).toContain('creating the Postgres database')
  // A warning gets its own line; everything else was cleared.
  const lines = before.split('\n').map((line) => line.split('\x1b[K').at(-1)?.trim() ?? '')
  expect(lines.filter((line) => line !== '' && !/ warn /.test(line))).toEqual([])
  terminal.type('\x03')
  expect(await terminal.exited).toBe(0)
})

test.each([['creating the Postgres database'], ['migrating'], ['opening the journal']])(
  'Ctrl-C while %s prints no stack trace and leaves no process',
  async (step) => {
    const terminal = openMain({ PORT: '0', DATA_DIR: await temporaryDirectory() })
    await eventually(() => terminal.shown().includes(step))
    const descendants = descendantsOf(terminal.pid)
    terminal.type('\x03')
    expect(await terminal.exited).toBe(0)
    expect(terminal.shown()).not.toMatch(/EPIPE|Error|\n\s+at /)
    await eventually(() => !descendants.some(isAlive))
  },
)

test('keeps running without a stack trace when the reader of its output exits', async () => {
  const port = String(freePort())
  const env = { PATH: process.env.PATH ?? '', PORT: port, DATA_DIR: await temporaryDirectory() }
  const main = join(ROOT, 'src', 'main.ts')
  const script = '{ "$0" "$1" 2>&3; echo "exit code $?" >&3; } 3>&2 | true'
  const shell = Bun.spawn(['sh', '-c', script, process.execPath, main], { env, stdout: 'ignore', stderr: 'pipe' })
  atEnd(async () => {
    for (const pid of descendantsOf(shell.pid).filter(isAlive)) process.kill(pid, 'SIGKILL')
  })
  await eventually(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok)
  const service = descendantsOf(shell.pid).find((pid) => commandOf(pid).startsWith(process.execPath))
  expect(service).toBeDefined()
  process.kill(service ?? Number.NaN, 'SIGTERM')
  const output = await new Response(shell.stderr).text()
  expect(output).toContain('exit code 0')
  expect(output).not.toContain('EPIPE')
})

test('a second instance on the same data directory exits and names the first; a killed one does not block it', async () => {
  const first = await again()
  const refusal = await failedStart({ DATA_DIR: dataDir })
  expect(refusal).toBe(
    `agent-run-service: DATA_DIR ${dataDir} is in use by process ${first.pid}: stop it, or set another DATA_DIR\n`,
  )
  const descendants = descendantsOf(first.pid)
  expect(descendants.length).toBeGreaterThan(2)
  first.kill('SIGKILL')
  const second = await again()
  await eventually(() => !descendants.some(isAlive))
  second.kill('SIGTERM')
  expect(await second.exited).toBe(0)
})

test('a data directory of an unreleased version is refused in one line', async () => {
  const old = await temporaryDirectory()
  await writeFile(join(old, 'holder'), '{}')
  expect(await failedStart({ DATA_DIR: old })).toBe(
    `agent-run-service: DATA_DIR ${old} was written by an earlier, unreleased version: move it away or start with an empty directory. Nothing was changed.\n`,
  )
})

test('SIGTERM: accepted requests are answered, acknowledged data is kept, no process is left', async () => {
  const service = await again()
  const { agentId, agentKey } = await newAgent(service.api)
  const body = JSON.stringify({ agent_id: agentId })
  const accepted = halfSent(service.url, agentKey, body)
  await accepted.started
  const descendants = descendantsOf(service.pid)
  service.kill('SIGTERM')
  await eventually(() => refusesConnections(service.url))
  accepted.finish()
  expect(await accepted.answer).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*"run_id"/)
  expect(await service.exited).toBe(0)
  await eventually(() => !descendants.some(isAlive))
})

test('SIGTERM during startup stops it at once and cleanly', async () => {
  const env = { PORT: '0', DATA_DIR: await temporaryDirectory(), DATABASE_URL: 'postgres://u:p@127.0.0.1:1/db' }
  const child = runMain(env)
  await child.printed(/(waiting for DATABASE_URL)/)
  const descendants = descendantsOf(child.pid)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  await eventually(() => !descendants.some(isAlive))
})

test('a second signal ends the process and its children at once', async () => {
  const service = await again()
  const { agentId, agentKey } = await newAgent(service.api)
  const accepted = halfSent(service.url, agentKey, JSON.stringify({ agent_id: agentId }))
  await accepted.started
  const descendants = descendantsOf(service.pid)
  service.kill('SIGTERM')
  await eventually(() => refusesConnections(service.url))
  service.kill('SIGINT')
  expect(await service.exited).toBe(1)
  await accepted.answer
  await eventually(() => !descendants.some(isAlive))
})

test('a port in use is reported in one line, and the data directory is released', async () => {
  const other = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => {} } })
  const line = await failedStart({ DATA_DIR: dataDir, PORT: String(other.port) })
  expect(line).toBe(`agent-run-service: port ${other.port} on 127.0.0.1 is in use: stop what uses it, or set PORT\n`)
  other.stop(true)
})

test('a data directory that is a file, or inside one, is reported in one line', async () => {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, 'file'), '')
  for (const path of ['file', 'file/below']) {
    const line = await failedStart({ DATA_DIR: join(directory, path) })
    expect(line).toBe(
      `agent-run-service: DATA_DIR ${join(directory, path)} cannot be used: it, or a part of its path, is a file\n`,
    )
  }
})

test('a full disk is reported in one line', async () => {
  const directory = await temporaryDirectory()
  const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', directory]).exitCode === 0
  // Only root can mount a full disk; the test is skipped otherwise.
  if (!mounted) return
  const line = await failedStart({ DATA_DIR: directory })
  Bun.spawnSync(['umount', directory])
  expect(line).toBe(`agent-run-service: the disk of DATA_DIR ${directory} is full\n`)
})

test('all configuration problems are reported at once, one per line, and nothing is started', async () => {
  const lines = await failedStart({ DATA_DIR: dataDir, PORT: 'http', LOG_LEVEL: 'loud', NATS_URL: 'nats://localhost' })
  expect(lines.trimEnd().split('\n')).toEqual([
    'agent-run-service: PORT must be a whole number from 0 to 65535; got "http"',
    'agent-run-service: LOG_LEVEL must be one of debug, info, warn, error, silent; got "loud"',
    'agent-run-service: DATABASE_URL must be set together with NATS_URL: all nodes share it',
    'agent-run-service: CLICKHOUSE_URL must be set together with NATS_URL: all nodes share it',
    'agent-run-service: CLUSTER_SECRET must be set together with NATS_URL: all nodes share it',
  ])
})

test('a database that rejects the password is reported in one line, at once, without the password', async () => {
  const url = new URL((await freshDatabase()).url)
  url.password = 'mistaken'
  const directory = await temporaryDirectory()
  // It does not wait for the unreachable ClickHouse, which would take 30 s.
  const env = { DATA_DIR: directory, DATABASE_URL: url.href, CLICKHOUSE_URL: 'http://127.0.0.1:1' }
  const startedAt = performance.now()
  const line = await failedStart(env)
  expect(line).toMatch(/^agent-run-service: DATABASE_URL cannot be used: password authentication failed[^\n]*\n$/)
  expect(line).not.toContain('mistaken')
  expect(performance.now() - startedAt).toBeLessThan(25_000)
})

test.skipIf(process.platform !== 'linux')('all processes together take less than 450 MB when idle', async () => {
  const service = await again()
  await eventually(async () => (await service.api('GET', '/readyz')).data.status === 'ready')
  // What the start took is given back within seconds, and the connections that it needed are closed.
  await eventually(async () => {
    const pids = [service.pid, ...descendantsOf(service.pid)]
    const megabytes = await Promise.all(pids.map(residentMegabytes))
    expect(megabytes.reduce((sum, each) => sum + each, 0)).toBeLessThan(450)
  })
  service.kill('SIGTERM')
  await service.exited
})

test.skipIf(Bun.which('npx') === null)('a service started by npx ends with npx', async () => {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '',
    PORT: String(freePort()),
    DATA_DIR: dataDir,
  }
  const npx = Bun.spawn(['npx', '--yes', 'bun', 'run', 'start'], {
    cwd: ROOT,
    env,
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const url = `http://127.0.0.1:${env.PORT}`
  await eventually(async () => (await fetch(`${url}/readyz`)).ok)
  const descendants = descendantsOf(npx.pid)
  expect(descendants.length).toBeGreaterThan(4)
  npx.kill('SIGTERM')
  await eventually(() => !descendants.some(isAlive))
})

/** A call that has sent its header and half of its body. */
function halfSent(url: string, key: string, body: string) {
  const started = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<string>()
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
    socket.write(
      `POST /api/ingest/v1/run/start HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
      () => started.resolve(),
    )
  })
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
    if (received.includes('\r\n\r\n')) answer.resolve(received)
  })
  socket.on('error', () => answer.resolve(received))
  socket.on('close', () => answer.resolve(received))
  return { started: started.promise, answer: answer.promise, finish: () => socket.write(body.slice(5)) }
}

async function refusesConnections(url: string): Promise<boolean> {
  const refused = Promise.withResolvers<boolean>()
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () => refused.resolve(false))
  socket.on('error', () => refused.resolve(true))
  return refused.promise.finally(() => socket.destroy())
}

async function residentMegabytes(pid: number): Promise<number> {
  const status = await Bun.file(`/proc/${pid}/status`).text()
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024
}
