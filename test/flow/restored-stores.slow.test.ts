import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { newAgent } from '../support/api.ts'
import { copyColumnarDatabase, freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket } from '../support/feeds.ts'
import { copyDatabase, freshDatabase } from '../support/postgres.ts'
import { allInSql, startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** The stores of a service: the journal by its data directory, the others by their URLs. */
interface Stores {
  readonly postgres: string
  readonly journal: string
  readonly clickhouse: string
}
type Store = keyof Stores

const ALL: readonly Store[] = ['postgres', 'journal', 'clickhouse']
const SUBSETS: readonly (readonly Store[])[] = [
  ['postgres'],
  ['journal'],
  ['clickhouse'],
  ['postgres', 'journal'],
  ['postgres', 'clickhouse'],
  ['journal', 'clickhouse'],
]

/** A service that is stopped, copied, restored and restarted, with one run that gets reports throughout. */
class Lives {
  service!: TestService
  agentId = ''
  agentKey = ''
  runId = ''
  /** Ids of acknowledged events, by life of the service. */
  readonly acknowledged: string[][] = []
  private stores: Stores | undefined
  private workspaceKey = ''
  /** How far the service's clock is ahead. */
  laterMs = 0

  constructor(private readonly env: Record<string, string> = {}) {}

  async start(stores = this.stores): Promise<TestService> {
    const found = stores && {
      DATA_DIR: stores.journal,
      DATABASE_URL: stores.postgres,
      CLICKHOUSE_URL: stores.clickhouse,
    }
    const env: Record<string, string> = { ...this.env, ...found }
    if (this.workspaceKey !== '') env.BOOTSTRAP_WORKSPACE_KEY = this.workspaceKey
    const clock = { now: () => Date.now() + this.laterMs }
    this.service = await startTestService(env, { clock, storeMarkIntervalMs: 100 })
    const { databaseUrl, dataDir, clickhouseUrl, workspaceKey } = this.service
    this.workspaceKey = workspaceKey
    this.stores = { postgres: databaseUrl, journal: dataDir, clickhouse: clickhouseUrl }
    if (this.runId === '') {
      Object.assign(this, await newAgent(this.service.api))
      this.runId = await this.startRun()
    }
    return this.service
  }

  async startRun(): Promise<string> {
    const { agentId, agentKey } = this
    const { data } = await this.service.api(
      'POST',
      '/api/ingest/v1/run/start',
      { agent_id: agentId },
      { key: agentKey },
    )
    return data.run_id
  }

  async report(ids: readonly string[], run_id = this.runId) {
    const body = { run_id, events: ids.map((id) => ({ id, type: 'mark' })) }
    const answer = await eventually(async () => {
      const tried = await this.service.api('POST', '/api/ingest/v1/events', body, { key: this.agentKey })
      return tried.status !== 503 && tried
    })
    expect(answer.error).toBeNull()
    return answer.data
  }

  /** Reports events with new ids, in several calls. */
  async live(count = 60): Promise<void> {
    const life = this.acknowledged.length
    const ids = Array.from({ length: count }, (_, index) => `${life}-${index}`)
    this.acknowledged.push(ids)
    for (let from = 0; from < count; from += 20) await this.report(ids.slice(from, from + 20))
    await allInSql(this.service.api)
  }

  async sql<Row>(query: string): Promise<Row[]> {
    const { data, error } = await this.service.api('POST', '/api/v1/query', { query })
    expect(error).toBeNull()
    return data.rows
  }

  /** The number of times each event id is in SQL. */
  async idsInSql(): Promise<Map<string, number>> {
    const rows = await this.sql<{ event_id: string; n: number }>(
      'select event_id, count() as n from events group by event_id limit 5000',
    )
    return new Map(rows.map(({ event_id, n }) => [event_id, n]))
  }

  setBack(): Promise<string[]> {
    // On a busy machine a check may take too long, which is reported.
    return eventually(async () => {
      const { data } = await this.service.api('GET', '/readyz', undefined, { key: null })
      expect(data.status).toBe(data.set_back.length > 0 ? 'degraded' : 'ready')
      return data.set_back.map(({ store }: { store: string }) => store)
    })
  }

  async journal(): Promise<{ epoch: string; end_seq: number }> {
    const { data } = await this.service.api('GET', '/readyz', undefined, { key: null })
    return data.journal
  }

  journalFiles(): number {
    return readdirSync(join(this.service.dataDir, 'journal')).filter((name) => name.endsWith('.segment')).length
  }

  /** Stops the service once each store has recorded how far the others are. */
  async stop(): Promise<void> {
    const sql = connectPostgres(this.service.databaseUrl, { log: createLog('silent'), max: 1 })
    const { end_seq } = await this.journal()
    await eventually(async () => {
      const rows = await sql`
          select from store_marks where end_seq >= ${end_seq} and loaded_seq >= ${end_seq} and columnar_beat >= beat - 1`
      return rows.length > 0
    })
    await sql.end()
    await this.service.stop()
  }

  /** Stops the service and copies its stores. */
  async copy(): Promise<Stores> {
    await this.stop()
    const journal = await temporaryDirectory()
    const { postgres, clickhouse, journal: dataDir } = this.stores!
    await cp(dataDir, journal, { recursive: true })
    return { postgres: await copyDatabase(postgres), clickhouse: await copyColumnarDatabase(clickhouse), journal }
  }

  /** Starts the service with some of the stores of a copy. */
  restart(back: Partial<Stores>): Promise<TestService> {
    return this.start({ ...this.stores!, ...back })
  }
}

function pick(stores: Stores, wanted: readonly Store[]): Partial<Stores> {
  return Object.fromEntries(wanted.map((store) => [store, stores[store]]))
}

const once = (ids: readonly string[]) => ids.map((id) => [id, 1] as const)

for (const back of SUBSETS) {
  test(`${back.join(' and ')} restored to an earlier state: the service reports it, and loses and duplicates nothing that is still stored`, async () => {
    const lives = new Lives()
    await lives.start()
    await lives.live()
    const copy = await lives.copy()
    await lives.restart({})
    const runOfNow = await lives.startRun()
    await lives.live()
    const epoch = (await lives.journal()).epoch
    const [{ seq }] = await lives.sql<{ seq: number }>('select max(seq) as seq from events')
    await lives.stop()

    await lives.restart(pick(copy, back))
    expect((await lives.setBack()).sort()).toEqual([...back].sort())
    const isJournalBack = back.includes('journal')
    expect((await lives.journal()).epoch !== epoch).toBe(isJournalBack)
    // Positions are never reused.
    const id = 'after'
    await lives.report([id])
    await allInSql(lives.service.api)
    const [after] = await lives.sql<{ seq: number }>(`select seq from events where event_id = '${id}'`)
    expect(after.seq).toBeGreaterThan(seq)
    // Acknowledged events are lost only if both the journal and ClickHouse were restored.
    const areEventsGone = isJournalBack && back.includes('clickhouse')
    const [first, second] = lives.acknowledged
    const expected = areEventsGone ? [...first, id] : [...first, ...second, id]
    expect(new Map([...(await lives.idsInSql())].sort())).toEqual(new Map([...once(expected)].sort()))
    // Repeated events are recognised, and lost ones can be sent again.
    await lives.report(first)
    await lives.report(second)
    await allInSql(lives.service.api)
    expect(new Map([...(await lives.idsInSql())].sort())).toEqual(new Map([...once([...first, ...second, id])].sort()))
    // New runs are in SQL, and SQL reports where rows are lost.
    const started = [await lives.startRun(), await lives.startRun(), await lives.startRun()]
    await allInSql(lives.service.api)
    const runs = await lives.sql<{ run_id: string }>('select run_id from runs')
    expect(runs.map(({ run_id }) => run_id)).toEqual(expect.arrayContaining(started))
    if (!areEventsGone) expect(runs.map(({ run_id }) => run_id)).toContain(runOfNow)
    expect(await lives.sql('select reason from gaps')).toEqual(isJournalBack ? [{ reason: 'journal' }] : [])

    // It is reported once, and then all stores match again.
    await lives.service.stop()
    await lives.restart({})
    expect(await lives.setBack()).toEqual([])
    expect(new Map([...(await lives.idsInSql())].sort())).toEqual(new Map([...once([...first, ...second, id])].sort()))
    await lives.service.stop()
  })
}

for (const back of [['clickhouse'], ['journal']] as const) {
  test(`runs and scores that were deleted since the earlier state of the ${back[0]} are deleted again`, async () => {
    const lives = new Lives()
    await lives.start()
    const [doomed, kept] = [await lives.startRun(), await lives.startRun()]
    await lives.report(['doomed'], doomed)
    await lives.report(['kept'], kept)
    const scores = ['doomed', 'kept'].map((id) => ({ run_id: kept, id, name: 'good', value: 1 }))
    await lives.service.api('POST', '/api/ingest/v1/scores', { scores })
    await lives.service.api('POST', `/api/v1/runs/${doomed}/cancel`, {})
    await allInSql(lives.service.api)
    const copy = await lives.copy()
    const { api } = await lives.restart({})
    const paths = [`/api/v1/runs/${doomed}`, `/api/v1/runs/${kept}/scores/doomed`]
    const erasures = await Promise.all(paths.map(async (path) => (await api('DELETE', path)).data.erasure_id))
    const isDone = async () => {
      const found = erasures.map((id) => lives.service.api('GET', `/api/v1/erasures/${id}`))
      return (await Promise.all(found)).every(({ data }) => data.status === 'done')
    }
    await eventually(isDone)
    await lives.report(['second'], kept)
    await allInSql(lives.service.api)
    await lives.stop()

    await lives.restart(pick(copy, back))
    expect(await lives.setBack()).toEqual([...back])
    await eventually(isDone)
    expect([...(await lives.idsInSql()).keys()].sort()).toEqual(['kept', 'second'])
    const query = 'select score_id from scores'
    expect((await lives.service.api('POST', '/api/v1/query', { query })).data.rows).toEqual([{ score_id: 'kept' }])
    await lives.service.stop()
  })
}

test('all three stores restored to the same earlier state match: none is reported as set back', async () => {
  const lives = new Lives()
  await lives.start()
  await lives.live()
  const copy = await lives.copy()
  await lives.restart({})
  await lives.live()
  await lives.service.stop()
  await lives.restart(pick(copy, ALL))
  expect(await lives.setBack()).toEqual([])
  await lives.live()
  const [first, , third] = lives.acknowledged
  expect(new Map([...(await lives.idsInSql())].sort())).toEqual(new Map([...once([...first, ...third])].sort()))
  await lives.service.stop()
})

test('a lost ClickHouse is reloaded from the journal; the rest is a gap in feeds and SQL, and can be sent again', async () => {
  const lives = new Lives({ JOURNAL_KEEP_BYTES: '0' })
  await lives.start()
  await lives.live()
  const lostSeq = (await lives.journal()).end_seq
  // A journal file holds the rows of one day, and is deleted once ClickHouse has them.
  lives.laterMs = 86_400_000
  await lives.live()
  await eventually(() => lives.journalFiles() === 1)
  await lives.stop()

  await lives.restart({ clickhouse: (await freshColumnarDatabase()).url })
  expect(await lives.setBack()).toEqual(['clickhouse'])
  await allInSql(lives.service.api)
  const [first, second] = lives.acknowledged
  expect(new Map([...(await lives.idsInSql())].sort())).toEqual(new Map([...once(second)].sort()))
  expect(await lives.sql('select after_seq, through_seq, reason from gaps')).toEqual([
    { after_seq: 0, through_seq: lostSeq, reason: 'clickhouse' },
  ])
  const { epoch } = await lives.journal()
  // A feed that resumes within the gap gets a gap message, and continues after it.
  const socket = await LiveSocket.open(lives.service)
  socket.send({ op: 'subscribe', id: 'a', filter: { kind: 'event' }, after: `${epoch}.5` })
  await eventually(() => itemsOf(socket).length === second.length)
  expect(socket.messages.filter(({ op }) => op === 'gap')).toEqual([
    { op: 'gap', id: 'a', after: `${epoch}.5`, resumed_at: `${epoch}.${lostSeq}` },
  ])
  socket.close()
  // Stored events are recognised; lost ones are stored when they are sent again.
  expect(await lives.report(second)).toMatchObject({ accepted: 0, duplicates: second.length })
  expect(await lives.report(first)).toMatchObject({ accepted: first.length })
  await allInSql(lives.service.api)
  expect(new Map([...(await lives.idsInSql())].sort())).toEqual(new Map([...once([...first, ...second])].sort()))
  await lives.service.stop()
})

test('tables that ClickHouse loses at run time are recreated and reloaded, without duplicates', async () => {
  const lives = new Lives()
  await lives.start()
  await lives.live()
  await lives.stop()
  // The restart clears what was cached about the run.
  await lives.restart({})
  const { database, client } = clientOf(lives.service.clickhouseUrl)
  await client(`drop database ${database}`)
  // While it cannot tell what is new, the service rejects events rather than store them twice.
  const [first] = lives.acknowledged
  expect(await lives.report(first)).toMatchObject({ accepted: 0, duplicates: first.length })
  expect(await lives.setBack()).toEqual(['clickhouse'])
  await lives.live()
  const [, second] = lives.acknowledged
  expect(new Map([...(await lives.idsInSql())].sort())).toEqual(new Map([...once([...first, ...second])].sort()))
  await lives.service.stop()
})

test('recovers from the loss of the whole journal, and of all of Postgres', async () => {
  const lives = new Lives()
  await lives.start()
  await lives.live()
  await lives.stop()
  await rm(join(lives.service.dataDir, 'journal'), { recursive: true })
  await lives.restart({})
  expect(await lives.setBack()).toEqual(['journal'])
  await lives.live()
  const [first, second] = lives.acknowledged
  expect(new Map([...(await lives.idsInSql())].sort())).toEqual(new Map([...once([...first, ...second])].sort()))
  expect(await lives.sql('select reason from gaps')).toEqual([{ reason: 'journal' }])
  await lives.service.stop()

  await lives.restart({ postgres: (await freshDatabase()).url })
  expect(await lives.setBack()).toEqual(['postgres'])
  await lives.service.stop()
})

test('restarts when Postgres is restored to an earlier state at run time', async () => {
  const lives = new Lives()
  const { databaseUrl, outdated } = await lives.start()
  await lives.live()
  const sql = connectPostgres(databaseUrl, { log: createLog('silent'), max: 1 })
  await sql`update store_marks set beat = 0`
  await outdated
  await sql.end()
  await lives.service.stop()
  await lives.restart({})
  expect(await lives.setBack()).toEqual(['postgres'])
  await lives.service.stop()
})

test('processes that share the databases, each with its own journal, are not reported as set back', async () => {
  const one = new Lives()
  const { databaseUrl, clickhouseUrl, workspaceKey } = await one.start()
  const shared = { DATABASE_URL: databaseUrl, CLICKHOUSE_URL: clickhouseUrl, BOOTSTRAP_WORKSPACE_KEY: workspaceKey }
  const other = new Lives(shared)
  await other.start()
  await Promise.all([one.live(), other.live(100)])
  await other.service.stop()
  await one.live()
  await one.service.stop()
  await other.restart({})
  expect(await other.setBack()).toEqual([])
  await other.live()
  await one.restart({})
  expect(await one.setBack()).toEqual([])
  expect(await one.sql('select count() as n from events')).toEqual([{ n: 60 + 100 + 60 + 60 }])
  await Promise.all([one.service.stop(), other.service.stop()])
})

function itemsOf(socket: LiveSocket) {
  return socket.messages.flatMap(({ items }) => items ?? [])
}

function clientOf(url: string) {
  const { origin, username, password, pathname } = new URL(url)
  const client = async (query: string) => {
    const headers = { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password }
    const response = await fetch(origin, { method: 'POST', headers, body: query })
    expect(await response.text()).toBe('')
  }
  return { database: pathname.slice(1), client }
}

test('a journal that is whole is not declared lost because the mark beside it could not be written for a while', async () => {
  const DATA_DIR = await temporaryDirectory()
  const start = (env: Record<string, string>) => startTestService({ DATA_DIR, ...env }, { storeMarkIntervalMs: 20 })
  const first = await start({})
  const { agentId, agentKey: key } = await newAgent(first.api)
  const { data } = await first.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key })
  const sql = connectPostgres(first.databaseUrl, { log: createLog('silent') })
  const seen = async () => (await sql<{ end_seq: number }[]>`select end_seq from store_marks`)[0]!.end_seq
  const epochs = () => JSON.parse(readFileSync(join(DATA_DIR, 'journal', 'epoch'), 'utf8').split('\n')[0]!).epochs
  const before = epochs()
  const path = join(DATA_DIR, 'journal', 'store-mark')
  await eventually(() => existsSync(path))
  const kept = readFileSync(path)
  rmSync(path)
  mkdirSync(path)
  for (let n = 0; n < 4; n++) {
    const body = { run_id: data.run_id, events: [{ type: 'mark' }] }
    const appended = await eventually(async () => {
      const answer = await first.api('POST', '/api/ingest/v1/events', body, { key })
      return answer.status === 200 && answer.data
    })
    await eventually(async () => (await seen()) >= appended.last_seq)
  }
  await first.stop()
  rmSync(path, { recursive: true })
  writeFileSync(path, kept)
  const second = await start({ DATABASE_URL: first.databaseUrl, CLICKHOUSE_URL: first.clickhouseUrl })
  expect(epochs()).toEqual(before)
  await second.stop()
  await sql.end()
})
