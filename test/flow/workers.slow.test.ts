import { beforeAll, describe, expect, test } from 'bun:test'
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
import { type Activity, LiveSocket } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { childrenOf } from '../support/processes.ts'
import { seededRandom } from '../support/random.ts'
import { OPERATOR_TOKEN, runMain, type SpawnedService, spawnService } from '../support/service.ts'

/** Several processes share a machine (docs/architecture.md#several-processes-on-one-machine), with real stores. */

const PARTITIONS = '4'
const WORKER = /workers\/worker\.ts/

interface TwoWorkers extends SpawnedService {
  readonly stores: Record<string, string>
}

/** With stores that are running already. */
async function startTwo(): Promise<TwoWorkers> {
  const [{ url: DATABASE_URL }, { url: CLICKHOUSE_URL }] = await Promise.all([freshDatabase(), freshColumnarDatabase()])
  const stores = { DATABASE_URL, CLICKHOUSE_URL }
  const service = await spawnService({ ...stores, WORKERS: '2', JOURNAL_PARTITIONS: PARTITIONS })
  await ownedEvenly(service, 2)
  return { ...service, stores }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function workersOf({ pid }: SpawnedService): number[] {
  return childrenOf(pid).flatMap(({ pid, command }) => (WORKER.test(command) ? [pid] : []))
}

/** A client of each worker, by its own address. */
async function apisOf(service: SpawnedService, key: string): Promise<Api[]> {
  return (await stateOf(service)).nodes.map(({ url }) => createApi(url, key))
}

const ownersOf = ({ partitions }: ClusterState) => partitions.map(({ owner }) => owner)

describe('two workers', () => {
  let service: TwoWorkers
  let apis: Api[]
  let agentId: string
  let agentKey: string

  beforeAll(async () => {
    service = await startTwo()
    const agent = await newAgent(service.api)
    agentId = agent.agentId
    agentKey = agent.agentKey
    apis = await apisOf(service, service.workspaceKey)
  })

  const startRun = async (api: Api): Promise<string> => {
    const { data, text } = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
    if (data === null) throw new Error(text)
    return data.run_id
  }
  const report = (api: Api, run_id: string, events: object[], headers: Record<string, string> = {}) =>
    api('POST', '/api/ingest/v1/events', { run_id, events }, { key: agentKey, headers })

  test('listen on one port', async () => {
    await eventually(async () => {
      const states = await Promise.all(Array.from({ length: 8 }, () => stateOf(service)))
      return new Set(states.map(({ nodes }) => nodes.find(({ is_this }) => is_this)?.instance_id)).size === 2
    })
  })

  test('any worker takes reports, and any worker has them at once', async () => {
    const run_id = await startRun(service.api)
    let sent = 0
    for (const api of [...apis, service.api]) {
      const { status, data } = await report(api, run_id, [{ type: 'step', payload: { n: sent++ } }])
      expect([status, data.accepted]).toEqual([200, 1])
      for (const reader of apis) {
        const page = await reader('GET', `/api/v1/runs/${run_id}/events`)
        expect(page.data.items.map(({ payload }: { payload: { n: number } }) => payload.n)).toEqual(
          Array.from({ length: sent }, (_, n) => n),
        )
        const query = 'select count() as n from events where run_id = {run:UUID}'
        const params = { run: run_id }
        const answer = await reader('POST', '/api/v1/query', { query, params, wait_for: data.last_seq })
        expect(answer.data.rows).toEqual([{ n: sent }])
      }
    }
  })

  test('an event id or an Idempotency-Key is one, whichever worker gets it', async () => {
    const run_id = await startRun(apis[0])
    const accepted = []
    const positions = new Set()
    for (const api of apis) {
      accepted.push((await report(api, run_id, [{ id: 'same', type: 'step' }])).data.accepted)
      const keyed = await report(api, run_id, [{ type: 'step' }], { 'idempotency-key': `key of ${run_id}` })
      positions.add(keyed.data.last_seq)
    }
    expect(accepted).toEqual([1, 0])
    expect(positions.size).toBe(1)
  })

  test('feeds show the same whichever worker serves them, and a cursor of one resumes at every other', async () => {
    const run_id = await startRun(apis[0])
    const { url, workspaceKey } = service
    // The system chooses the worker of each connection.
    const sockets = await Promise.all(Array.from({ length: 8 }, () => LiveSocket.open({ url, workspaceKey })))
    for (const socket of sockets) await socket.subscribe('s', { filter: { kind: 'event', run_id } })
    for (let n = 0; n < 9; n++) await report(apis[n % 2], run_id, [{ type: 'step', payload: { n } }])
    const numbersOf = (items: readonly Activity[]) => items.map(({ event }) => event?.payload.n)
    const all = Array.from({ length: 9 }, (_, n) => n)
    const cursors = []
    for (const socket of sockets) {
      await eventually(() => socket.items('s').length >= 9)
      expect(numbersOf(socket.items('s'))).toEqual(all)
      cursors.push(socket.items('s').map(({ cursor }) => cursor))
    }
    for (const each of cursors) expect(each).toEqual(cursors[0])
    // The newest position, a moment after it was acknowledged.
    const { data } = await report(apis[1], run_id, [{ type: 'step', payload: { n: 9 } }])
    for (const socket of sockets) {
      const answer = await socket.subscribe('resumed', { filter: { kind: 'event', run_id }, after: cursors[0][4] })
      const newest = await socket.subscribe('newest', { filter: { run_id }, after: String(data.last_seq) })
      expect([answer.recovered, newest.recovered]).toEqual([true, true])
      await eventually(() => socket.items('resumed').length >= 5)
      expect(numbersOf(socket.items('resumed'))).toEqual([...all, 9].slice(5))
    }
  })

  test('workspaces are spread over the workers, and erased through any of them', async () => {
    const operator = { key: OPERATOR_TOKEN }
    const workspaceIds = []
    for (const api of apis) {
      const made = await api('POST', '/api/v1/workspaces', { name: 'w' }, operator)
      const agent = await newAgent(createApi(service.url, made.data.key))
      const as = { key: agent.agentKey }
      const run = await api('POST', '/api/ingest/v1/run/start', { agent_id: agent.agentId }, as)
      const events = Array.from({ length: 50 }, () => ({ type: 'step' }))
      await api('POST', '/api/ingest/v1/events', { run_id: run.data.run_id, events }, as)
      workspaceIds.push(made.data.workspace_id)
    }
    await eventually(async () => {
      const { partitions } = await stateOf(service)
      const used = partitions.filter(({ end_seq }) => end_seq > 0)
      return used.length === 3 && new Set(used.map(({ owner }) => owner)).size === 2
    })
    for (const [index, workspaceId] of workspaceIds.entries()) {
      const erased = await apis[1 - index]('DELETE', `/api/v1/workspaces/${workspaceId}`, undefined, operator)
      expect([erased.status, erased.data?.deleted.events]).toEqual([200, 50])
    }
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

  test('nobody but a worker can name the caller of a request', async () => {
    const run_id = await startRun(service.api)
    for (const api of apis) {
      const { status } = await report(api, run_id, [{ type: 'step' }], { 'x-cluster-forwarded': 'x' })
      expect(status).toBe(401)
    }
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

  test('a worker that is paused keeps its files: nobody else writes them, and it goes on afterwards', async () => {
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

const EVENTS = Array.from({ length: 20 }, (_, n) => ({ type: 'step', payload: { n } }))

interface Reported {
  readonly run_id: string
  readonly key: string
  readonly first_seq: number
  readonly last_seq: number
}

/** Reports a run of a new agent. */
async function reportRun(api: Api): Promise<Reported> {
  const { agentId: agent_id, agentKey: key } = await newAgent(api)
  const run = await api('POST', '/api/ingest/v1/run/start', { agent_id }, { key })
  return reportMore(api, { run_id: run.data.run_id, key })
}

async function reportMore(api: Api, { run_id, key }: Pick<Reported, 'run_id' | 'key'>): Promise<Reported> {
  const { data, text } = await api('POST', '/api/ingest/v1/events', { run_id, events: EVENTS }, { key })
  if (data === null) throw new Error(text)
  return { run_id, key, first_seq: data.first_seq, last_seq: data.last_seq }
}

async function stopped(service: SpawnedService): Promise<void> {
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
  expect(service.output().stderr).not.toContain('gone back')
}

test('a service that ran without workers keeps its data with them', async () => {
  const single = await spawnService()
  const { dataDir: DATA_DIR, workspaceKey } = single
  const first = await reportRun(single.api)
  await stopped(single)

  const same = { DATA_DIR, BOOTSTRAP_WORKSPACE_KEY: workspaceKey }
  const two = await spawnService({ ...same, WORKERS: '2', JOURNAL_PARTITIONS: PARTITIONS })
  expect((await ownedEvenly(two, 2)).partitions).toHaveLength(4)
  const { run_id } = first
  const socket = await LiveSocket.open({ url: two.url, workspaceKey })
  const answer = await socket.subscribe('s', { filter: { kind: 'event', run_id }, after: String(first.first_seq) })
  expect(answer.recovered).toBe(true)
  const second = await reportMore(two.api, first)
  expect(second.first_seq).toBeGreaterThan(first.last_seq)
  await eventually(() => socket.items('s').length >= 39)
  const query = 'select count() as n, uniqExact(seq) as seqs from events where run_id = {run:UUID}'
  const counted = await two.api('POST', '/api/v1/query', { query, params: { run: run_id }, wait_for: second.last_seq })
  expect(counted.data.rows).toEqual([{ n: 40, seqs: 40 }])
  await stopped(two)
})

test('a directory of workers is served by one without WORKERS, and each log of a restored one begins an epoch', async () => {
  const two = await startTwo()
  const { dataDir: DATA_DIR, workspaceKey, stores } = two
  const reported = await reportRun(two.api)
  const made = await two.api('POST', '/api/v1/workspaces', { name: 'other' }, { key: OPERATOR_TOKEN })
  await reportRun(createApi(two.url, made.data.key))
  await stopped(two)

  const same = { ...stores, DATA_DIR, BOOTSTRAP_WORKSPACE_KEY: workspaceKey }
  const one = await spawnService(same)
  const before = (await ownedEvenly(one, 1)).partitions
  expect(before).toHaveLength(4)
  expect(workersOf(one)).toHaveLength(1)
  const more = await reportMore(one.api, reported)
  await stopped(one)

  writeFileSync(`${DATA_DIR}/restored`, '')
  const restored = await spawnService({ ...same, WORKERS: '2' })
  const used = before.filter(({ end_seq }) => end_seq > 0)
  expect(used).toHaveLength(2)
  await eventually(async () => {
    const { partitions } = await stateOf(restored)
    return used.every(({ partition, epoch }) => partitions[partition].epoch !== epoch)
  })
  const again = await reportMore(restored.api, reported)
  expect(again.first_seq).toBeGreaterThan(more.last_seq + 1)
})
