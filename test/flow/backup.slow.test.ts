import { expect, test } from 'bun:test'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket } from '../support/feeds.ts'
import { runProgram } from '../support/processes.ts'
import { allInSql, rowsInSql, type SpawnedService, spawnService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

const MAIN = join(import.meta.dir, '..', '..', 'src', 'cli', 'backup', 'main.ts')

const command = (args: readonly string[], dataDir: string) =>
  runProgram([process.execPath, MAIN, ...args], { env: { DATA_DIR: dataDir } })

interface Acknowledged {
  readonly id: string
  readonly seq: number
}

/** Agents that report continuously, and repeat what was not answered. */
class Load {
  readonly acknowledged: Acknowledged[] = []
  readonly runs: string[] = []
  private readonly stopping = new AbortController()
  private readonly clients: Promise<void>[]

  constructor(
    private readonly service: SpawnedService,
    private readonly agent: { agentId: string; agentKey: string },
    clients = 4,
  ) {
    this.clients = Array.from({ length: clients }, (_, index) => this.report(index))
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    await Promise.all(this.clients)
  }

  private async report(client: number): Promise<void> {
    const { agentId, agentKey } = this.agent
    for (let round = 0; !this.stopping.signal.aborted; round++) {
      const { run_id } = await this.call('run/start', { agent_id: agentId }, agentKey)
      this.runs.push(run_id)
      const ids = Array.from({ length: 20 }, (_, index) => `${client}-${round}-${index}`)
      const events = ids.map((id) => ({ id, type: 'mark' }))
      const { first_seq } = await this.call('events', { run_id, events }, agentKey)
      ids.forEach((id, index) => {
        this.acknowledged.push({ id, seq: first_seq + index })
      })
      await this.call('run/complete', { run_id }, agentKey)
      // Leaves time on a small machine for what is under test.
      await Bun.sleep(10)
    }
  }

  private async call(path: string, body: object, key: string) {
    for (;;) {
      const answer = await this.service.api('POST', `/api/ingest/v1/${path}`, body, { key }).catch(() => undefined)
      if (answer?.status === 200) return answer.data
      if (answer !== undefined && answer.status < 500) throw new Error(answer.text)
      await Bun.sleep(20)
    }
  }
}

test('a backup of a running service under load contains every event acknowledged up to its position, once, and restores into a new epoch', async () => {
  const parent = await temporaryDirectory()
  const folder = join(parent, 'backup')
  const service = await spawnService()
  const agent = await newAgent(service.api)
  const load = new Load(service, agent)
  await eventually(() => load.acknowledged.length > 2_000, { timeoutMs: 60_000 })
  const before = load.acknowledged.at(-1)!
  const runsBefore = [...load.runs.slice(0, -8)]
  const taken = await command(['backup', folder], service.dataDir)
  expect(taken.stderr).toContain('opening the stores')
  expect({ code: taken.code, stdout: taken.stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining('verified by'),
  })
  await load.stop()
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'))
  createLog('info').info('backup: reporting was held up', { ms: manifest.held_ms })
  expect(manifest.end_seq).toBeGreaterThanOrEqual(before.seq)
  expect(load.acknowledged.some(({ seq }) => seq > manifest.end_seq)).toBe(true)
  const { data: ready } = await service.api('GET', '/readyz', undefined, { key: null })
  const lostCursor = `${manifest.epoch}.${ready.journal.end_seq}`
  // A backup contains secrets.
  expect(statSync(folder).mode & 0o077).toBe(0)
  for (const { path } of manifest.files) expect(statSync(join(folder, path)).mode & 0o077).toBe(0)
  service.kill('SIGTERM')
  await service.exited
  // The backup leaves nothing in the directory of the service.
  expect(new Bun.Glob('**/backup_*').scanSync({ cwd: service.dataDir, onlyFiles: false }).next().done).toBe(true)

  const dataDir = join(parent, 'restored')
  const restored = await command(['restore', folder], dataDir)
  expect({ code: restored.code, stderr: restored.stderr }).toEqual({ code: 0, stderr: expect.any(String) })
  const again = await spawnService({ DATA_DIR: dataDir, BOOTSTRAP_WORKSPACE_KEY: service.workspaceKey })
  await allInSql(again.api)
  const { data: health } = await again.api('GET', '/readyz', undefined, { key: null })
  expect(health).toMatchObject({ status: 'ready', set_back: [] })
  expect(health.journal.epoch).not.toBe(manifest.epoch)
  const rows = await rowsInSql(again.api, 'select event_id, count() as n from events group by event_id limit 100000')
  const expected = load.acknowledged.filter(({ seq }) => seq <= manifest.end_seq).map(({ id }) => id)
  expect(rows.filter(({ n }) => n !== 1)).toEqual([])
  const found = new Set(rows.map(({ event_id }) => event_id))
  expect(expected.filter((id) => !found.has(id))).toEqual([])
  expect(found.size).toBe(expected.length)
  // Runs and their counts match.
  const known = await rowsInSql(again.api, 'select run_id from runs limit 100000')
  const knownRuns = new Set(known.map(({ run_id }) => run_id))
  expect(runsBefore.filter((id) => !knownRuns.has(id))).toEqual([])
  const { data: run } = await again.api('GET', `/api/v1/runs/${runsBefore[0]}`)
  expect(run).toMatchObject({ status: 'completed', event_count: 20 })
  // SQL and feeds report where the gap is.
  expect(await rowsInSql(again.api, 'select after_seq, reason from gaps')).toEqual([
    { after_seq: manifest.end_seq, reason: 'restored from a backup' },
  ])
  const socket = await LiveSocket.open(again)
  socket.send({ op: 'subscribe', id: 'a', after: lostCursor })
  await eventually(() => socket.messages.some(({ op }) => op === 'gap'))
  expect(socket.messages.find(({ op }) => op === 'gap')).toMatchObject({ id: 'a', after: lostCursor })
  await socket.close()
  // The service accepts reports, at new positions.
  const more = new Load(again, agent, 1)
  await eventually(() => more.acknowledged.length > 0, { timeoutMs: 30_000 })
  await more.stop()
  expect(more.acknowledged[0]!.seq).toBeGreaterThan(manifest.end_seq)
  again.kill('SIGTERM')
  await again.exited
})

test('a stopped or killed service can be backed up; errors are one line each', async () => {
  const parent = await temporaryDirectory()
  const folder = join(parent, 'backup')
  const service = await spawnService()
  const load = new Load(service, await newAgent(service.api), 2)
  await eventually(() => load.acknowledged.length > 200, { timeoutMs: 60_000 })
  await load.stop()
  service.kill('SIGKILL')
  await service.exited
  const taken = await eventually(
    async () => {
      const tried = await command(['backup', folder, '--no-check'], service.dataDir)
      expect(tried).toMatchObject({ code: 0 })
      return tried
    },
    { timeoutMs: 60_000 },
  )
  expect(taken.stdout).toContain(`backed up to ${folder}`)
  expect(await command(['backup', folder], service.dataDir)).toMatchObject({
    code: 1,
    stderr: `${folder} is not empty: choose a new folder\n`,
  })
  expect(await command(['restore', folder], service.dataDir)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not empty'),
  })
  expect(await command(['restore', parent], join(parent, 'x'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not a complete backup'),
  })
  expect(await command(['backup', join(parent, 'b')], join(parent, 'nothing'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no service in DATA_DIR'),
  })
  expect(await command(['backup'], service.dataDir)).toMatchObject({ code: 2 })
  expect(await command(['restore', '--help'], service.dataDir)).toMatchObject({ code: 0, stderr: '' })

  const dataDir = join(parent, 'restored')
  expect(await command(['restore', folder], dataDir)).toMatchObject({ code: 0 })
  const again = await spawnService({ DATA_DIR: dataDir, BOOTSTRAP_WORKSPACE_KEY: service.workspaceKey })
  await allInSql(again.api)
  const rows = await rowsInSql(again.api, 'select count() as n, uniqExact(event_id) as distinct from events')
  expect(rows).toEqual([{ n: load.acknowledged.length, distinct: load.acknowledged.length }])
  again.kill('SIGTERM')
  await again.exited

  const segment = [...new Bun.Glob('journal/*.segment').scanSync(folder)][0]!
  appendFileSync(join(folder, segment), 'x')
  const damaged = join(parent, 'damaged')
  expect(await command(['restore', folder], damaged)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`the backup is damaged: ${segment} has changed since it was written`),
  })
  expect(existsSync(damaged)).toBe(false)
})

test('a data directory whose parts are links, to another disk too, is backed up and restored through links', async () => {
  const parent = await temporaryDirectory()
  const service = await spawnService()
  const agent = await newAgent(service.api)
  const load = new Load(service, agent, 1)
  await eventually(() => load.acknowledged.length > 100, { timeoutMs: 60_000 })
  await load.stop()
  service.kill('SIGTERM')
  await service.exited
  // Another file system, where the machine has one.
  const otherDisk = existsSync('/dev/shm') ? await temporaryDirectory('/dev/shm') : parent
  for (const [name, to] of [
    ['journal', join(otherDisk, 'journal')],
    ['clickhouse', join(parent, 'clickhouse')],
    ['secrets.key', join(parent, 'secret')],
  ] as const) {
    const from = join(service.dataDir, name)
    if (!existsSync(from)) continue
    cpSync(from, to, { recursive: true, verbatimSymlinks: true })
    rmSync(from, { recursive: true })
    symlinkSync(to, from)
  }
  const dataDir = join(parent, 'data-link')
  symlinkSync(service.dataDir, dataDir)
  mkdirSync(join(parent, 'elsewhere'))
  const folder = join(parent, 'backup-link')
  symlinkSync(join(parent, 'elsewhere'), folder)

  const taken = await command(['backup', folder], dataDir)
  const { signature } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'))
  expect(taken).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`verified by restoring it\nsignature, to keep elsewhere: ${signature}\n`),
  })
  expect(readdirSync(join(otherDisk, 'journal')).filter((name) => name.startsWith('backup_'))).toEqual([])

  const dangling = join(parent, 'dangling')
  symlinkSync(join(parent, 'nowhere', 'at-all'), dangling)
  expect(await command(['backup', dangling], dataDir)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${dangling} cannot be created`),
  })

  mkdirSync(join(parent, 'restored'))
  const target = join(parent, 'restored-link')
  symlinkSync(join(parent, 'restored'), target)
  expect(await command(['restore', folder, '--signature', '0'.repeat(64)], target)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`this is another backup: its signature is ${signature}`),
  })
  expect(await command(['restore', folder, '--signature', signature], target)).toMatchObject({ code: 0 })
  const again = await spawnService({ DATA_DIR: target, BOOTSTRAP_WORKSPACE_KEY: service.workspaceKey })
  await allInSql(again.api)
  expect(await rowsInSql(again.api, 'select count() as n from events')).toEqual([{ n: load.acknowledged.length }])
  again.kill('SIGTERM')
  await again.exited
})
