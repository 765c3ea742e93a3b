import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { createLog } from '../../src/base/log.ts'
import { takeBackup } from '../../src/cli/backup/backup.ts'
import { createReport } from '../../src/cli/backup/report.ts'
import { expectAcknowledged, Reporting } from '../crash/reporting.ts'
import { underLoad as loseUnderLoad } from '../crash/under-load.ts'
import { type Api, createApi, newAgent } from '../support/api.ts'
import { type ClusterState, ownedEvenly, stateOf } from '../support/cluster.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { childrenOf, isAlive } from '../support/processes.ts'
import { seededRandom } from '../support/random.ts'
import { OPERATOR_TOKEN, runMain, type SpawnedService, spawnService } from '../support/service.ts'
import { expectRunsGoOn, newAgentClient, sharedPartitionTests } from './shared-partitions.ts'

/** Several processes share a machine (docs/architecture.md#several-processes-on-one-machine), with real stores. */

const PARTITIONS = '4'
const WORKER = /workers\/worker\.ts/

interface TwoWorkers extends SpawnedService {
  readonly stores: Record<string, string>
}

/** With stores that are running already. */
async function startTwo(): Promise<TwoWorkers> {
  const [{ url: DATABASE_URL }, { url: CLICKHOUSE_URL }] = await Promise.all([freshDatabase(), freshColumnarDatabase()])
  const stores = { DATABASE_URL, CLICKHOUSE_URL, EGRESS_ALLOW: '127.0.0.1' }
  const service = await spawnService({ ...stores, WORKERS: '2', JOURNAL_PARTITIONS: PARTITIONS })
  await ownedEvenly(service, 2)
  return { ...service, stores }
}

function workersOf({ pid }: SpawnedService): number[] {
  return childrenOf(pid).flatMap(({ pid, command }) => (WORKER.test(command) ? [pid] : []))
}

const ownersOf = ({ partitions }: ClusterState) => partitions.map(({ owner }) => owner)

describe('two workers', () => {
  let service: TwoWorkers
  let apis: Api[]

  sharedPartitionTests(async () => {
    service = await startTwo()
    const { url, workspaceKey } = service
    apis = (await stateOf(service)).nodes.map((node) => createApi(node.url, workspaceKey))
    // The system chooses the worker of each connection.
    return { apis, feedUrls: Array.from({ length: 8 }, () => url), workspaceKey }
  })

  test('listen on one port', async () => {
    await eventually(async () => {
      const states = await Promise.all(Array.from({ length: 8 }, () => stateOf(service)))
      return new Set(states.map(({ nodes }) => nodes.find(({ is_this }) => is_this)?.instance_id)).size === 2
    })
  })

  test('any worker answers metrics of both', async () => {
    const names = async (api: Api) => {
      const { text } = await api('GET', '/metrics')
      const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
      expect(series.filter((line) => !/^\w+\{worker="[01]"[,}]/.test(line))).toEqual([])
      expect(text.match(/^# TYPE http_requests_total /gm)).toHaveLength(1)
      return new Set(series.map((line) => line.slice(0, line.lastIndexOf(' '))))
    }
    const [first, second] = await Promise.all(apis.map(names))
    expect(first.has('postgres_connections{worker="0"}') && first.has('postgres_connections{worker="1"}')).toBe(true)
    expect(second.has('postgres_connections{worker="0"}') && second.has('postgres_connections{worker="1"}')).toBe(true)
  })

  test('a backup is refused, and says what to do instead', async () => {
    const { dataDir } = service
    const folder = `${dataDir}/backup`
    const taken = takeBackup({
      config: { dataDir, databaseUrl: undefined, clickhouseUrl: undefined },
      folder,
      isVerified: false,
      log: createLog('silent'),
      report: createReport({ write: () => true }),
    })
    expect(taken).rejects.toThrow('a service with WORKERS is backed up by copying DATA_DIR while it is stopped')
  })

  test('a service without workers refuses the database', async () => {
    const env = { PORT: '0', DATA_DIR: `${service.dataDir}/other`, ...service.stores }
    const other = runMain(env)
    expect(await other.exited).toBe(1)
    expect(other.output().stderr).toContain('several processes write the journal of this database: set WORKERS')
  })
})

describe('losses of workers', () => {
  const random = seededRandom('losses of workers')

  /** All workers are behind one URL, so three feeds are spread over them. */
  const underLoad = ({ api, url, workspaceKey }: SpawnedService, lose: (reporting: Reporting) => Promise<void>) =>
    loseUnderLoad({ api: () => api, urls: [url, url, url], workspaceKey, random }, lose)

  test('a worker that is killed is started again, and nothing is lost, doubled or swapped', async () => {
    const service = await startTwo()
    await underLoad(service, async () => {
      for (const victim of workersOf(service)) {
        process.kill(victim, 'SIGKILL')
        await eventually(() => workersOf(service).length === 2 && !workersOf(service).includes(victim))
        await ownedEvenly(service, 2)
      }
    })
    const workers = workersOf(service)
    service.kill('SIGTERM')
    expect(await service.exited).toBe(0)
    expect(workers.filter(isAlive)).toEqual([])
  })

  test('a worker that is paused keeps its files: no other process writes them, and it goes on afterwards', async () => {
    const service = await startTwo()
    await underLoad(service, async () => {
      const owners = ownersOf(await stateOf(service))
      const [victim] = workersOf(service)
      process.kill(victim, 'SIGSTOP')
      await Bun.sleep(2_500)
      process.kill(victim, 'SIGCONT')
      await ownedEvenly(service, 2)
      expect(ownersOf(await stateOf(service))).toEqual(owners)
    })
  })

  test('workers end with their supervisor, and the next start has everything', async () => {
    const service = await startTwo()
    const { agentId, agentKey } = await newAgent(service.api)
    const { url, workspaceKey } = service
    const reporting = new Reporting({ url, agentId, agentKey, random, clients: 4 })
    await eventually(() => reporting.eventCount > 100)
    const workers = workersOf(service)
    service.kill('SIGKILL')
    await service.exited
    await eventually(() => workers.every((pid) => !isAlive(pid)))
    const PORT = new URL(url).port
    const { dataDir: DATA_DIR } = service
    const next = await spawnService({
      ...service.stores,
      PORT,
      DATA_DIR,
      WORKERS: '3',
      BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
    })
    await reporting.stop()
    await expectAcknowledged(next.api, agentId, reporting)
  })
})

/** Starts a run of a new agent. @returns a function that reports events of it */
async function newRun(api: Api) {
  const agent = await newAgentClient(api)
  const run_id = await agent.startRun(api)
  const events = Array.from({ length: 20 }, (_, n) => ({ type: 'step', payload: { n } }))
  return async (api: Api) => (await agent.report(api, run_id, events)).data
}

async function stopped(service: SpawnedService): Promise<void> {
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
  expect(service.output().stderr).not.toContain('gone back')
}

test('a service that ran without workers keeps its data with them', async () => {
  const single = await spawnService()
  const { dataDir: DATA_DIR, workspaceKey } = single
  let two = single
  let socket: LiveSocket | undefined
  await expectRunsGoOn(single, async ({ run_id, first_seq }) => {
    await stopped(single)
    const same = { DATA_DIR, BOOTSTRAP_WORKSPACE_KEY: workspaceKey }
    two = await spawnService({ ...same, WORKERS: '2', JOURNAL_PARTITIONS: PARTITIONS })
    expect((await ownedEvenly(two, 2)).partitions).toHaveLength(4)
    socket = await LiveSocket.open({ url: two.url, workspaceKey })
    const answer = await socket.subscribe('s', { filter: { kind: 'event', run_id }, after: String(first_seq) })
    expect(answer.recovered).toBe(true)
    return two.api
  })
  await eventually(() => socket!.items('s').length >= 50)
  await stopped(two)
})

test('a directory of workers is served by one without WORKERS, and each log of a restored one begins an epoch', async () => {
  const two = await startTwo()
  const { dataDir: DATA_DIR, workspaceKey, stores } = two
  const report = await newRun(two.api)
  await report(two.api)
  const made = await two.api('POST', '/api/v1/workspaces', { name: 'other' }, { key: OPERATOR_TOKEN })
  const other = createApi(two.url, made.data.key)
  await (await newRun(other))(other)
  await stopped(two)

  const same = { ...stores, DATA_DIR, BOOTSTRAP_WORKSPACE_KEY: workspaceKey }
  const one = await spawnService(same)
  const before = (await ownedEvenly(one, 1)).partitions
  expect(before).toHaveLength(4)
  expect(workersOf(one)).toHaveLength(1)
  const more = await report(one.api)
  await stopped(one)

  writeFileSync(`${DATA_DIR}/restored`, '')
  const restored = await spawnService({ ...same, WORKERS: '2' })
  const used = before.filter(({ end_seq }) => end_seq > 0)
  expect(used).toHaveLength(2)
  await eventually(async () => {
    const { partitions } = await stateOf(restored)
    return used.every(({ partition, epoch }) => partitions[partition].epoch !== epoch)
  })
  // While the logs are being opened, a busy machine may keep a call waiting for longer than the service does.
  const again = await eventually(() => report(restored.api).catch(() => false))
  expect(again.first_seq).toBeGreaterThan(more.last_seq + 1)
})
