import { expect, spyOn, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { type OpenPartition, Ownership } from '../../src/tenants/partitions/shared/ownership.ts'
import { SharedPartitions } from '../../src/tenants/partitions/shared/partitions.ts'
import { NodeStore, PartitionStore } from '../../src/tenants/partitions/shared/tables.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase, movableClock } from '../support/postgres.ts'
import { atEnd } from '../support/teardown.ts'

/** Who owns which partition, on a real Postgres, without logs. */

const PARTITIONS = 6
const TIMES = { roundMs: 20, aliveMs: 60_000 }
const log = createLog('silent')

async function createTables(count: number) {
  const { url } = await freshDatabase()
  const stepClock = await movableClock(url)
  const sql = connectPostgres(url, { log, max: 4 })
  atEnd(() => sql.end({ timeout: 1 }))
  const partitions = new PartitionStore(sql)
  await partitions.create({ count, home: null, epochOf: () => crypto.randomUUID(), highestSeq: async () => 0 })
  return { sql, stepClock, tables: { nodes: new NodeStore(sql), partitions } }
}

async function startNodes(count: number) {
  const { stepClock, tables } = await createTables(PARTITIONS)
  let isAway = false
  const nodes = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const instanceId = crypto.randomUUID()
      const ownership = createOwnership({
        tables,
        node: { instanceId, url: `http://node-${index}`, version: '1' },
        isConnected: () => !isAway,
      })
      await ownership.start()
      atEnd(() => ownership.stop())
      return { instanceId, ownership }
    }),
  )
  /** Whether each has its share. One may not know yet that another node has claimed a partition from it. */
  const isShared = () => {
    const owned = nodes.map(({ ownership }) => ownership.all().map(({ id }) => id))
    return owned.every((ids) => ids.length === PARTITIONS / count) && new Set(owned.flat()).size === PARTITIONS
  }
  const generations = async () => (await tables.partitions.all()).map(({ generation }) => generation)
  const aliveCount = async () => (await tables.nodes.all()).filter(({ isAlive }) => isAlive).length
  const setAway = (now: boolean) => {
    isAway = now
  }
  const rounds = spyOn(tables.nodes, 'all')
  const someRounds = async () => {
    const before = rounds.mock.calls.length
    await eventually(() => rounds.mock.calls.length >= before + 10 * count)
  }
  return { nodes, isShared, generations, aliveCount, setAway, stepClock, someRounds }
}

type OwnershipDeps = ConstructorParameters<typeof Ownership>[0]

function createOwnership(given: Pick<OwnershipDeps, 'tables'> & Partial<OwnershipDeps>): Ownership {
  return new Ownership({
    node: { instanceId: crypto.randomUUID(), url: 'http://node', version: '1' },
    open: async ({ partition }) => partitionWithoutLog(partition),
    isConnected: () => true,
    onReleased: () => {},
    log,
    times: TIMES,
    ...given,
  })
}

/** What `Ownership` uses of a partition. */
function partitionWithoutLog(id: number): OpenPartition {
  const position = { endSeq: 0, oldestMs: null }
  return {
    id,
    journal: { ...position, recent: () => [], read: async () => [] },
    sink: { loadedSeq: () => 0 },
    stop: async () => {},
  } as unknown as OpenPartition
}

test('an outage that all nodes have changes no owner', async () => {
  const { nodes, isShared, generations, aliveCount, setAway, someRounds } = await startNodes(3)
  const now = performance.now.bind(performance)
  let aheadMs = 0
  using _clock = spyOn(performance, 'now').mockImplementation(() => now() + aheadMs)
  await eventually(isShared)
  const before = await generations()
  setAway(true)
  // Half of that counts between two looks.
  for (let i = 0; i < 3; i++) {
    await someRounds()
    aheadMs += TIMES.aliveMs
  }
  await someRounds()
  expect(await aliveCount()).toBe(0)
  setAway(false)
  await eventually(async () => (await aliveCount()) === 3)
  // Beyond the time that they give each other to return.
  for (let i = 0; i < 2; i++) {
    await someRounds()
    aheadMs += TIMES.aliveMs * 0.7
  }
  await someRounds()
  expect(await generations()).toEqual(before)
  expect(nodes.map(({ ownership }) => ownership.all().length)).toEqual([2, 2, 2])
})

test("a step of the database's clock changes no owner", async () => {
  const { isShared, generations, aliveCount, stepClock, someRounds } = await startNodes(3)
  await eventually(isShared)
  const before = await generations()
  for (let step = 0; step < 5; step++) {
    await stepClock(3_600_000)
    expect(await aliveCount()).toBe(3)
    await someRounds()
  }
  expect(await generations()).toEqual(before)
})

test('`alive_until` is only for people: a wrong time keeps no dead node alive, and no live one from its partitions', async () => {
  const { sql, tables } = await createTables(1)
  const now = performance.now.bind(performance)
  let aheadMs = 0
  using _clock = spyOn(performance, 'now').mockImplementation(() => now() + aheadMs)
  const node = { instanceId: crypto.randomUUID(), url: 'http://node', version: '1' }
  const leaseMs = 60_000
  const claimed = async () => (await tables.partitions.claim(crypto.randomUUID(), 1, tables.nodes.gone(), [])).length
  const isAlive = async () => (await tables.nodes.all())[0].isAlive
  await tables.nodes.beat(node, leaseMs)
  const [{ left }] = await sql<{ left: number }[]>`
    select extract(epoch from alive_until - now())::float8 * 1000 as left from cluster_nodes`
  expect(left).toBeWithin(leaseMs - 30_000, leaseMs + 1)
  expect(await tables.partitions.claim(node.instanceId, 1, [], [])).toHaveLength(1)

  for (const wrong of [sql`now() - interval '1 year'`, sql`now() + interval '1 year'`, sql`null`]) {
    await tables.nodes.beat(node, leaseMs)
    await sql`update cluster_nodes set alive_until = ${wrong}`
    expect([await isAlive(), await claimed()]).toEqual([true, 0])
  }
  await sql`update cluster_nodes set alive_until = now() + interval '1 year'`
  // At most half of a lease counts between two looks.
  for (let look = 0; look < 4; look++) {
    aheadMs += leaseMs / 2
    await tables.nodes.all()
  }
  expect([await isAlive(), await claimed()]).toEqual([false, 1])
})

test('a node reads what the next owner of its partition has acknowledged, before its own next round', async () => {
  const { sql, tables } = await createTables(1)
  const ownership = createOwnership({
    tables,
    open: async ({ partition, generation }) => ({
      ...partitionWithoutLog(partition),
      generation,
      // Everything of its own log is loaded.
      sink: { epoch: 'e', loadedSeq: () => 3, waitFor: async () => true, waitForAll: async () => true },
    }),
    isConnected: () => true,
    onReleased: () => {},
    log,
    times: { ...TIMES, roundMs: 3_600_000 },
  })
  await ownership.start()
  atEnd(() => ownership.stop())
  await eventually(() => ownership.all().length === 1)
  const feeds = { endSeq: async () => 5 }
  const rows = tables.partitions
  const partitions = new SharedPartitions({ count: 1, sql, rows, ownership, feeds, isConnected: () => true })
  const isLoaded = () => partitions.of({ partition: 0 }).loading.waitForAll(0)
  expect(await isLoaded()).toBe(true)
  const owner = crypto.randomUUID()
  const [{ generation }] = await sql`
    update journal_partitions set owner = ${owner}, generation = generation + 1, loaded_seq = 4 returning generation`
  expect([ownership.all().length, await isLoaded()]).toEqual([1, false])
  await rows.setPosition(
    { partition: 0, owner, generation },
    { loadedSeq: 5, inFlightSeq: 5, reloads: 0, clearThroughSeq: 0 },
  )
  expect(await isLoaded()).toBe(true)
})

test('a list of gaps that is stored late forgets none; an earlier owner stores none', async () => {
  const { tables } = await createTables(1)
  const { partitions } = tables
  const [first] = await partitions.claim(crypto.randomUUID(), 1, [], [])
  const gap = (afterSeq: number, throughSeq: number) => ({ afterSeq, throughSeq, loadedSeq: 0 })
  const stored = async () => (await partitions.all())[0]!.gaps
  await partitions.setGaps(first!, [gap(1, 2)])
  await partitions.setGaps(first!, [gap(1, 2), gap(5, 9)])
  await partitions.setGaps(first!, [gap(1, 2)])
  expect(await stored()).toEqual([gap(1, 2), gap(5, 9)])
  await partitions.setGaps(first!, [gap(0, 9)])
  expect(await stored()).toEqual([gap(0, 9)])
  await partitions.release(first!)
  await partitions.claim(crypto.randomUUID(), 1, [], [])
  await partitions.setGaps(first!, [gap(0, 10)])
  expect(await stored()).toEqual([gap(0, 9)])
})

test('a partition that could not be released, or was lost while it was being opened, is claimed again', async () => {
  const { tables } = await createTables(2)
  const releaseFails = spyOn(tables.partitions, 'release').mockRejectedValueOnce(new Error('the database is away'))
  const opened: number[] = []
  const ownership = createOwnership({
    tables,
    open: async ({ partition }, onLost) => {
      opened.push(partition)
      if (opened.filter((each) => each === partition).length === 1) {
        if (partition === 0) throw new Error('the log cannot be opened')
        onLost('fenced')
      }
      return partitionWithoutLog(partition)
    },
  })
  await ownership.start()
  atEnd(() => ownership.stop())
  await eventually(() => ownership.all().length === 2)
  expect(opened.toSorted()).toEqual([0, 0, 1, 1])
  expect(releaseFails).toHaveBeenCalled()
})

test('a partition is claimed again if the answer to the claim was lost', async () => {
  const { tables } = await createTables(2)
  const claim = tables.partitions.claim.bind(tables.partitions)
  const claims = spyOn(tables.partitions, 'claim').mockImplementationOnce(async (...asked) => {
    expect(await claim(...asked)).toHaveLength(2)
    return []
  })
  const ownership = createOwnership({ tables })
  await ownership.start()
  atEnd(() => ownership.stop())
  await eventually(() => ownership.all().length === 2)
  expect(claims.mock.calls.length).toBeGreaterThan(1)
})

test('a partition that could not be released is given to another node, also by one that has its share of others', async () => {
  const { tables } = await createTables(4)
  const start = async () => {
    const ownership = createOwnership({ tables })
    await ownership.start()
    atEnd(() => ownership.stop())
    return ownership
  }
  const first = await start()
  await eventually(() => first.all().length === 4)
  const away = new Error('the database is away')
  const release = spyOn(tables.partitions, 'release').mockRejectedValueOnce(away).mockRejectedValueOnce(away)
  const second = await start()
  await eventually(() => first.all().length === 2 && second.all().length === 2)
  expect(release.mock.calls.length).toBeGreaterThan(2)
})

test('a partition that was lost is not claimed again before it is closed', async () => {
  const { sql, tables } = await createTables(1)
  const closing = Promise.withResolvers<void>()
  const ended: number[] = []
  const ownership = createOwnership({
    tables,
    open: async ({ partition, generation }) => ({
      ...partitionWithoutLog(partition),
      async stop() {
        if (generation === 1) await closing.promise
        ended.push(generation)
      },
    }),
  })
  await ownership.start()
  await eventually(() => ownership.all().length === 1)
  // Another node takes it over, and dies.
  await sql`update journal_partitions set owner = ${crypto.randomUUID()}, generation = generation + 1`
  await eventually(() => ownership.all().length === 0)
  await Bun.sleep(TIMES.roundMs * 5)
  const [row] = await tables.partitions.all()
  expect(row.generation).toBe(2)
  closing.resolve()
  await eventually(() => ownership.all().length === 1)
  await ownership.stop()
  expect(ended).toEqual([1, 3])
})
