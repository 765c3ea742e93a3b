import { describe, expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { Metrics } from '../../src/base/metrics.ts'
import type { HistoryPage } from '../../src/feeds/live/history.ts'
import { RetentionClock } from '../../src/service/retention/retention-clock.ts'
import { RetentionFloors, withinRetention } from '../../src/service/retention/retention-floors.ts'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { createApi } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import {
  gauge,
  LiveSocket,
  LiveStream,
  newReporter,
  newTenant,
  numbered,
  numbersOf,
  type Tenant,
} from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { OPERATOR_TOKEN, rowsInSql, startTestService, type TestService } from '../support/service.ts'

/** The end of retention, as seen by SQL and feeds: a service that is restarted days later. */

const DAY_MS = 86_400_000
/** Noon, so that no day ends during a test. */
const NOON = Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2

/** One service and its stores, restarted for each day. */
class Days {
  private service: TestService | undefined
  private stores: Record<string, string> = {}

  /** Also starts on each day in between, because the service would not trust a jump of several days. */
  async startAfter(from: number, day: number, env: Record<string, string> = {}): Promise<TestService> {
    for (let between = from + 1; between < day; between++) await this.start(between, env)
    return this.start(day, env)
  }

  async start(day: number, env: Record<string, string> = {}): Promise<TestService> {
    await this.service?.stop()
    const atMs = NOON + day * DAY_MS
    const clock = { now: () => atMs }
    const service = await startTestService({ ...env, ...this.stores }, { clock })
    this.service = service
    this.stores = {
      DATA_DIR: service.dataDir,
      DATABASE_URL: service.databaseUrl,
      CLICKHOUSE_URL: service.clickhouseUrl,
      BOOTSTRAP_WORKSPACE_KEY: service.workspaceKey,
    }
    return service
  }

  stop = () => this.service?.stop()
}

type Caller = Pick<Tenant, 'api'>

/** The numbers of the events in SQL, once it has everything that was reported. */
async function numbersInSql(caller: Caller): Promise<number[]> {
  const rows = await rowsInSql(caller.api, 'select toInt32(payload.n) as n from events order by seq')
  return rows.map((row: { n: number }) => row.n)
}

/** Files of the journal that contain the text. */
function filesWith({ dataDir }: TestService, text: string): string[] {
  const dir = join(dataDir, 'journal')
  return fs.readdirSync(dir).filter((name) => fs.readFileSync(join(dir, name)).includes(text))
}

async function reportDay(caller: Caller, day: number): Promise<{ runId: string; lastSeq: number }> {
  const agent = await newReporter(caller.api)
  const runId = await agent.start()
  await agent.task(runId, { status: 'completed' })
  const { last_seq } = await agent.events(runId, numbered(3, day * 10))
  await agent.end(runId)
  const loaded = () =>
    rowsInSql(caller.api, `select seq from events where seq >= ${last_seq}`).then((rows) => rows.length > 0)
  await eventually(loaded)
  await eventually(
    async () =>
      (await rowsInSql(caller.api, `select 1 from runs where run_id = '${runId}' and status = 'completed'`)).length ===
      1,
  )
  return { runId, lastSeq: last_seq }
}

/** Adds deliveries that were accepted on this day. */
async function addDeliveries({ clickhouseUrl }: TestService, day: number, seq: number): Promise<void> {
  await createColumnarClient(remoteClickHouse(clickhouseUrl)).command(
    `insert into deliveries (workspace_id, activity_seq, attempt, seq, received_at, epoch)
     select distinct workspace_id, {day:UInt64}, 1, {seq:UInt64}, fromUnixTimestamp64Milli({at:Int64}), epoch from events`,
    { params: { day, seq, at: NOON + day * DAY_MS } },
  )
}

test('events beyond EVENT_RETENTION_DAYS are deleted from SQL and the journal; runs and tasks stay, and feeds report the gap', async () => {
  const days = new Days()
  const limit = { EVENT_RETENTION_DAYS: '2' }
  let service = await days.start(0, limit)
  const first = await reportDay(service, 0)
  const { data: limits } = await service.api('GET', '/readyz', undefined, { key: null })
  const { epoch } = limits.journal
  service = await days.start(1, limit)
  const second = await reportDay(service, 1)
  // Feeds do not miss deliveries: those of the first day have a position that must not become the retention floor.
  for (const day of [0, 1]) await addDeliveries(service, day, second.lastSeq)
  // The end of the second day is within retention.
  service = await days.start(2, limit)
  expect(await numbersInSql(service)).toEqual([0, 1, 2, 10, 11, 12])
  service = await days.start(3, limit)
  await eventually(async () => expect(await numbersInSql(service)).toEqual([10, 11, 12]))
  expect(await rowsInSql(service.api, 'select status from runs')).toEqual([
    { status: 'completed' },
    { status: 'completed' },
  ])
  expect(await rowsInSql(service.api, 'select status from tasks')).toHaveLength(2)
  expect(await rowsInSql(service.api, 'select seq as day from deliveries')).toEqual([{ day: 1 }])
  const { data: run } = await service.api('GET', `/api/v1/runs/${first.runId}`)
  expect(run).toMatchObject({ status: 'completed', event_count: 3 })

  const socket = await LiveSocket.open(service)
  const after = `${epoch}.${first.lastSeq - 1}`
  const subscribed = await socket.ask({ op: 'subscribe', id: 'old', filter: { kind: 'event' }, after })
  const [, floor] = subscribed[0].cursor!.split('.')
  expect(Number(floor)).toBeGreaterThanOrEqual(first.lastSeq)
  expect(subscribed).toEqual([
    { op: 'subscribed', id: 'old', cursor: `${epoch}.${floor}`, recovered: false },
    { op: 'gap', id: 'old', after, resumed_at: `${epoch}.${floor}` },
  ])
  const fresh = await socket.subscribe('fresh', { filter: { kind: 'event' }, after: `${epoch}.${floor}` })
  expect(fresh.recovered).toBe(true)
  const all = await socket.subscribe('all', { filter: { kind: 'event' }, after: 0 })
  expect(all.recovered).toBe(true)
  for (const id of ['old', 'fresh', 'all']) {
    await socket.until(() => socket.items(id).length >= 3)
    expect(numbersOf(socket.items(id))).toEqual([10, 11, 12])
  }
  expect(socket.messagesOf('gap')).toHaveLength(1)
  const stream = await LiveStream.open(service, `/api/v1/stream?kind=event&after=${first.lastSeq}`)
  await stream.until(() => stream.items.length >= 3)
  expect(stream.frames.filter(({ event }) => event === 'gap')).toEqual([
    {
      id: `${epoch}.${floor}`,
      event: 'gap',
      data: JSON.stringify({ after: `${first.lastSeq}`, resumed_at: `${epoch}.${floor}` }),
    },
  ])
  await Promise.all([socket.close(), stream.close()])

  await eventually(() => filesWith(service, '"n":0}').length === 0)
  expect(filesWith(service, '"n":10}')).toHaveLength(1)

  // Long after the last write.
  service = await days.startAfter(3, 6, limit)
  await eventually(async () => expect(await numbersInSql(service)).toEqual([]))
  await eventually(() => filesWith(service, '"n":10}').length === 0)
  const late = await LiveSocket.open(service)
  const lost = await late.ask({ op: 'subscribe', id: 'late', after: `${epoch}.${floor}` })
  expect(lost.map(({ op, recovered }) => [op, recovered])).toEqual([
    ['subscribed', false],
    ['gap', undefined],
  ])
  await late.close()
  await days.stop()
})

test("a workspace's shorter retention deletes its events only, and only its feeds report a gap", async () => {
  const days = new Days()
  let service = await days.start(0)
  const [short, other] = [await newTenant(service), await newTenant(service)]
  const at = (tenant: Tenant) => ({ ...tenant, url: service.url, api: createApi(service.url, tenant.workspaceKey) })
  const tenants = () => [at(short), at(other)]
  for (const tenant of tenants()) await reportDay(tenant, 0)
  service = await days.start(1)
  for (const tenant of tenants()) await reportDay(tenant, 1)
  const limit = { retention_days: 5 }
  const edited = await service.api('PATCH', `/api/v1/workspaces/${short.workspaceId}`, limit, { key: OPERATOR_TOKEN })
  expect(edited.data.retention_days).toBe(5)

  service = await days.startAfter(1, 6)
  const [shortNow, otherNow] = tenants()
  await eventually(async () => expect(await numbersInSql(shortNow)).toEqual([10, 11, 12]))
  expect(await numbersInSql(otherNow)).toEqual([0, 1, 2, 10, 11, 12])
  expect(await rowsInSql(shortNow.api, 'select run_id from runs')).toHaveLength(2)

  for (const [tenant, numbers, gaps] of [
    [shortNow, [10, 11, 12], 1],
    [otherNow, [0, 1, 2, 10, 11, 12], 0],
  ] as const) {
    const socket = await LiveSocket.open(tenant)
    const { recovered } = (await socket.ask({ op: 'subscribe', id: 'f', filter: { kind: 'event' }, after: 1 }))[0]
    expect(recovered).toBe(gaps === 0)
    await socket.until(() => socket.items('f').length >= numbers.length)
    expect(numbersOf(socket.items('f'))).toEqual([...numbers])
    expect(socket.messagesOf('gap')).toHaveLength(gaps)
    await socket.close()
  }

  // Now the global limit is the shorter one.
  service = await days.start(6, { EVENT_RETENTION_DAYS: '3' })
  for (const tenant of tenants()) await eventually(async () => expect(await numbersInSql(tenant)).toEqual([]))
  await days.stop()
})

test('a clock that jumps ahead deletes at most one more day, also for a workspace with a shorter limit and in the journal', async () => {
  const days = new Days()
  const limit = { EVENT_RETENTION_DAYS: '3' }
  let service = await days.start(0, limit)
  const short = await newTenant(service)
  await service.api('PATCH', `/api/v1/workspaces/${short.workspaceId}`, { retention_days: 1 }, { key: OPERATOR_TOKEN })
  const ofShort = () => ({ ...short, url: service.url, api: createApi(service.url, short.workspaceKey) })
  for (let day = 0; day < 3; day++) {
    service = await days.start(day, limit)
    for (const caller of [service, ofShort()]) await reportDay(caller, day)
  }
  await eventually(async () => expect(await numbersInSql(ofShort())).toEqual([10, 11, 12, 20, 21, 22]))
  await eventually(() => filesWith(service, '"n":0}').length === 0)
  const lag = () => gauge(service, 'retention_clock_lag_seconds')
  expect(await lag()).toBe(0)

  // Four years ahead, twice, counts as the third day only.
  for (let start = 0; start < 2; start++) {
    service = await days.start(1_500, limit)
    await eventually(async () => expect(await numbersInSql(ofShort())).toEqual([20, 21, 22]))
    await eventually(() => filesWith(service, '"n":10}').length === 0)
    expect(await numbersInSql(service)).toEqual([0, 1, 2, 10, 11, 12, 20, 21, 22])
    expect(filesWith(service, '"n":20}')).toHaveLength(1)
    expect(await lag()).toBeGreaterThan((1_496 * DAY_MS) / 1000)
  }

  // After the correction it continues as if nothing had happened.
  service = await days.start(3, limit)
  expect(await lag()).toBe(0)
  expect(await numbersInSql(service)).toEqual([0, 1, 2, 10, 11, 12, 20, 21, 22])
  service = await days.start(4, limit)
  await eventually(async () => expect(await numbersInSql(service)).toEqual([10, 11, 12, 20, 21, 22]))
  await eventually(async () => expect(await numbersInSql(ofShort())).toEqual([]))
  await days.stop()
})

describe('the retention clock', () => {
  /** Processes that share a database, each with a clock that can be set and a monotonic one. */
  async function retentionClocks() {
    const { sql } = await freshDatabase()
    const lines: string[] = []
    const log = createLog('info', (line) => lines.push(JSON.parse(line).message))
    const open = async (clock: { ms: number; monotonicMs: number }) =>
      RetentionClock.open({
        ...{ sql, log, metrics: new Metrics() },
        clock: { now: () => clock.ms },
        monotonic: () => clock.monotonicMs,
      })
    return { open, lines }
  }
  const HOUR_MS = 3_600_000

  test('follows the clock at its normal pace, and after a night without the service', async () => {
    const { open, lines } = await retentionClocks()
    const clock = { ms: NOON, monotonicMs: 0 }
    let retentionClock = await open(clock)
    expect(retentionClock.now()).toBe(NOON)
    for (let hour = 0; hour < 30; hour++) {
      clock.ms += HOUR_MS
      clock.monotonicMs += HOUR_MS
      expect(retentionClock.now()).toBe(clock.ms)
      expect(await retentionClock.advance()).toBe(clock.ms)
    }
    clock.ms += 12 * HOUR_MS
    retentionClock = await open(clock)
    expect(retentionClock.now()).toBe(clock.ms)
    expect(lines).toEqual([])
  })

  test('does not follow a jump at run time, logs it, and catches up slowly if the jump was real', async () => {
    const { open, lines } = await retentionClocks()
    const clock = { ms: NOON, monotonicMs: 0 }
    const retentionClock = await open(clock)
    clock.ms += 10 * DAY_MS
    expect(retentionClock.now()).toBe(NOON)
    expect(await retentionClock.advance()).toBe(NOON)
    expect(lines).toEqual([expect.stringContaining('the system clock is far ahead')])
    for (let hour = 1; hour <= 24; hour++) {
      clock.ms += HOUR_MS
      clock.monotonicMs += HOUR_MS
      expect(await retentionClock.advance()).toBe(NOON + 2 * hour * HOUR_MS)
    }
    for (let hour = 1; hour <= 10 * 24; hour++) {
      clock.ms += HOUR_MS
      clock.monotonicMs += HOUR_MS
      await retentionClock.advance()
    }
    expect(retentionClock.now()).toBe(clock.ms)
    expect(lines).toHaveLength(2)
    expect(lines[1]).toContain('caught up')
  })

  test('moves no faster with many processes, or with one whose clock is wrong', async () => {
    const { open } = await retentionClocks()
    const right = { ms: NOON, monotonicMs: 0 }
    const wrong = { ms: NOON + 1_000 * DAY_MS, monotonicMs: 0 }
    const all = [await open(right), await open(right), await open(wrong)]
    const afterStart = all[2]!.now()
    expect(afterStart).toBeLessThanOrEqual(NOON + DAY_MS)
    for (let hour = 0; hour < 24; hour++) {
      for (const clock of [right, wrong]) {
        clock.ms += HOUR_MS
        clock.monotonicMs += HOUR_MS
      }
      for (const retentionClock of all) await retentionClock.advance()
    }
    expect(all[2]!.now()).toBeLessThanOrEqual(afterStart + 2 * DAY_MS)
    expect(all[0]!.now()).toBe(right.ms)
  })

  test('never goes back, and never exceeds the clock', async () => {
    const { open } = await retentionClocks()
    const clock = { ms: NOON, monotonicMs: 0 }
    const retentionClock = await open(clock)
    clock.ms -= 5 * DAY_MS
    expect(await retentionClock.advance()).toBe(clock.ms)
    clock.ms = NOON
    expect(await retentionClock.advance()).toBe(NOON)
  })
})

test('a page read while retention deletes reports where the gap ends, and contains nothing below', async () => {
  const { sql } = await freshDatabase()
  const [own, elsewhere] = [new RetentionFloors(sql, 'e'), new RetentionFloors(sql, 'e')]
  const workspaceId = crypto.randomUUID()
  const item = (seq: number) => ({ seq, kind: 'event' as const, text: `${seq}`, endsRun: false, isRecount: false })
  // Another process deletes up to 7 while this one reads; 4 and 6 were already deleted then.
  const read = async (): Promise<HistoryPage> => {
    await elsewhere.raise([{ epoch: 'e', workspaceId: null, seq: 7 }])
    return { items: [item(5), item(7), item(9)], throughSeq: 10 }
  }
  const history = withinRetention({ read }, own)
  const query = { workspaceId, filter: {} as never, untilSeq: 20, signal: new AbortController().signal }
  expect(own.known(workspaceId)).toBe(0)
  expect(await history.read({ ...query, afterSeq: 3 })).toEqual({ items: [item(9)], throughSeq: 10, resumedSeq: 7 })
  expect(own.known(workspaceId)).toBe(7)
  expect(await history.read({ ...query, afterSeq: 7 })).not.toHaveProperty('resumedSeq')

  await elsewhere.raise([{ epoch: 'e', workspaceId, seq: 50 }])
  await elsewhere.raise([
    { epoch: 'e', workspaceId, seq: 40 },
    { epoch: 'another', workspaceId: null, seq: 99 },
  ])
  expect(await own.read(workspaceId)).toBe(50)
  expect(await own.read(crypto.randomUUID())).toBe(7)
})
