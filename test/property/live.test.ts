import { beforeAll, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { parseFilter } from '../../src/feeds/live/filter.ts'
import { createHistory } from '../../src/feeds/live/history.ts'
import { Hub } from '../../src/feeds/live/hub.ts'
import type { Outlet } from '../../src/feeds/live/packet.ts'
import type { Journal } from '../../src/stores/journal/journal.ts'
import { type LocalJournal, openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import { type FreshColumnarDatabase, freshColumnarDatabase } from '../support/columnar.ts'
import { CONDITION_TIMEOUT_MS, eventually } from '../support/eventually.ts'
import { noSessions } from '../support/matching.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { startSink } from '../support/sink.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'
import { Workload } from './live-model.ts'
import { type Rig, type RigSizes, startRig } from './live-rig.ts'
import { type Link, openSocketLink, openStreamLink, randomStart, type Start, Watch } from './live-watches.ts'

const STEPS = 50
/** Runs world after world for about this long; with a given SEED only that world. */
const SEARCH_MS = 5_000

let columnar: FreshColumnarDatabase['client']
beforeAll(async () => {
  columnar = (await freshColumnarDatabase()).client
})

test('every watcher gets every matching activity after its start once, in order', async () => {
  const first = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  const endMs = performance.now() + (process.env.SEED === undefined ? SEARCH_MS : 0)
  for (let seed = first; seed === first || performance.now() < endMs; seed++) {
    const world = await World.create(seededRandom('live feeds', seed))
    for (let step = 0; step < STEPS; step++) await world.step()
    await world.settle()
  }
})

test('a subscriber that joins while feeds lag behind the journal takes nothing from live subscribers', async () => {
  const { journal, workload, hub } = await hubOn({
    segmentBytes: 100_000,
    tailBytes: 10_000_000,
    keepBytes: 10_000_000,
  })
  const [workspaceId] = workload.workspaces
  const subscribe = (spinMs: number) => {
    const seqs: number[] = []
    const afterSeq = journal.endSeq
    const outlet = outletOf((seq) => seqs.push(seq), spinMs)
    return { afterSeq, seqs, subscription: hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq, outlet }) }
  }
  // Delivery takes so long that the hub yields after every round, and commits get ahead of it.
  const watchers = [subscribe(6)]
  const reporting = Promise.all(
    [0, 1, 2].map(async () => {
      for (let i = 0; i < 40; i++) await workload.report(journal)
    }),
  )
  const repeats: number[] = []
  let isOver = false
  void reporting.finally(() => {
    isOver = true
  })
  while (!isOver) {
    if (hub.lag() > 0 && watchers.length < 100) watchers.push(subscribe(0))
    // If the service closed now, this is where each would be asked to resume.
    for (const { seqs, subscription } of watchers.slice(0, 5))
      if (hub.positionOf(subscription) < (seqs.at(-1) ?? 0)) repeats.push(subscription.position)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await reporting
  const all = workload.facts.filter((fact) => fact.workspaceId === workspaceId).map(({ seq }) => seq)
  expect(watchers.length).toBeGreaterThan(3)
  expect(repeats).toEqual([])
  await eventually(() => watchers.every(({ seqs }) => seqs.at(-1) === all.at(-1)))
  for (const { afterSeq, seqs } of watchers) expect(seqs).toEqual(all.filter((seq) => seq > afterSeq))
})

test('a subscriber that is almost up to date does not wait for those far behind', async () => {
  let reads = 0
  const arrived = Promise.withResolvers<void>()
  const sizes = { segmentBytes: 1, tailBytes: 1, keepBytes: 2 ** 30 }
  const { journal, workload, hub } = await hubOn(sizes, (journal) => ({
    async read(afterSeq, maxBytes) {
      if (++reads === 3) await arrived.promise
      return journal.read(afterSeq, maxBytes)
    },
  }))
  const [workspaceId] = workload.workspaces
  for (let i = 0; i < 10; i++) await workload.flood(journal, workspaceId)
  const far = { ...EVERYTHING, key: 'far', types: ['no match'] }
  hub.subscribe({ workspaceId, filter: far, afterSeq: 0, outlet: outletOf(() => {}, 0) })
  await eventually(() => reads === 3)
  let readsBefore = 0
  const outlet = outletOf(() => {
    readsBefore = reads
  }, 0)
  hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq: journal.endSeq - 1, outlet })
  arrived.resolve()
  await eventually(() => readsBefore > 0 && hub.counts().behind === 0)
  expect(readsBefore).toBeLessThan(6)
  expect(reads).toBeGreaterThan(15)
})

test('a subscriber far behind is served although another is never up to date', async () => {
  let reads = 0
  const sizes = { segmentBytes: 1, tailBytes: 1, keepBytes: 2 ** 30 }
  // The journal grows with every read, by more than is read.
  const { journal, workload, hub } = await hubOn(sizes, (journal) => ({
    async read(afterSeq, maxBytes) {
      if (++reads <= 40) await workload.flood(journal, workspaceId)
      return journal.read(afterSeq, maxBytes)
    },
  }))
  const [workspaceId, other] = workload.workspaces
  await workload.flood(journal, workspaceId)
  hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: outletOf(() => {}, 0) })
  await eventually(() => reads >= 5)
  let readsBefore = 0
  const outlet = outletOf(() => {
    readsBefore ||= reads
  }, 0)
  await workload.flood(journal, other)
  const late = { ...EVERYTHING, key: 'late' }
  hub.subscribe({ workspaceId, filter: late, afterSeq: 0, outlet })
  await eventually(() => readsBefore > 0 && hub.counts().behind === 0)
  expect(readsBefore).toBeLessThan(30)
})

test('a file dropped just before it is read is replayed from ClickHouse', async () => {
  // Another consumer holds the files, and releases some whenever a feed is about to open one.
  const { journal, workload, hub } = await hubOn({ segmentBytes: 1, tailBytes: 1, keepBytes: 0 }, (journal, dir) => {
    journal.release('holder', 0)
    return {
      async read(afterSeq, maxBytes) {
        const [oldest] = readdirSync(dir)
          .filter((name) => name.endsWith('.segment'))
          .sort()
        journal.release('holder', journal.startSeq + 50)
        if (afterSeq + 1 < journal.startSeq) await stat(join(dir, oldest))
        return journal.read(afterSeq, maxBytes)
      },
    }
  })
  for (let i = 0; i < 40; i++) await workload.report(journal)
  const [workspaceId] = workload.workspaces
  const all = workload.facts.filter((fact) => fact.workspaceId === workspaceId).map(({ seq }) => seq)
  for (let trial = 0; trial < 15; trial++) {
    const seqs: number[] = []
    const afterSeq = journal.startSeq - 1
    // Empty once the released files include the workspace's last.
    const missed = all.filter((seq) => seq > afterSeq)
    const outlet = outletOf((seq) => seqs.push(seq), 0)
    hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq, outlet })
    await eventually(() => seqs.at(-1) === missed.at(-1))
    expect(seqs).toEqual(missed)
  }
})

const EVERYTHING = parseFilter({}, 'filter', { agentId: null, runId: null })

/** A hub without connections, on a journal with some methods replaced by `faults`. */
async function hubOn(
  sizes: Omit<RigSizes, 'pageBytes'>,
  faults: (journal: LocalJournal, dir: string) => Partial<Journal> = () => ({}),
) {
  const random = seededRandom('live hub')
  const log = createLog('error')
  const dir = await temporaryDirectory()
  const journal = await openLocalJournal({ dir, maxBytes: 2 ** 40, ...sizes, clock: systemClock, log })
  const sink = await startSink({ journal, client: columnar, dir, log, intervalMs: 5 })
  const own = faults(journal, dir)
  const faulty = new Proxy<Journal>(journal, {
    get(target, name) {
      const value = Reflect.get(name in own ? own : target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const hub = new Hub({
    journal: faulty,
    history: createHistory({ columnar, epoch: journal.epoch, lookUpSessions: noSessions }),
    lookUpSessions: noSessions,
    log,
    filtersPerWorkspace: 10_000,
  })
  atEnd(async () => {
    await hub.stop()
    await sink.stop(0)
    await journal.close()
  })
  return { journal, workload: new Workload(random), hub }
}

/** @param spinMs time to take a packet */
function outletOf(show: (seq: number) => void, spinMs: number): Outlet {
  return {
    send({ items }) {
      for (const endMs = performance.now() + spinMs; performance.now() < endMs; );
      for (const { seq } of items) show(seq)
      return true
    },
    gap: (afterSeq, resumedSeq) => {
      throw new Error(`a gap from ${afterSeq} to ${resumedSeq}`)
    },
    caughtUp: () => {},
    failed: (error) => {
      throw error
    },
  }
}

/** A workload that reports, and watchers that arrive, leave, stall and return, on a service that restarts now and then. */
class World {
  private readonly workload: Workload
  private readonly watches: Watch[] = []
  private readonly violations: string[] = []
  private links: Link[] = []
  /** Watchers without a connection. */
  private away: Watch[] = []

  private constructor(
    private readonly random: Random,
    private readonly dir: string,
    private readonly sizes: RigSizes,
    private rig: Rig,
  ) {
    this.workload = new Workload(random)
  }

  static async create(random: Random): Promise<World> {
    const dir = await temporaryDirectory()
    const sizes = {
      segmentBytes: random.pick([1, 10_000, 50_000]),
      tailBytes: random.pick([1, 30_000, 1_000_000]),
      keepBytes: random.pick([0, 50_000, 200_000]),
      pageBytes: random.pick([500_000, 4_000_000]),
    }
    return new World(random, dir, sizes, await startRig(columnar, dir, sizes))
  }

  /** One random action while the workload reports. */
  async step(): Promise<void> {
    const { random } = this
    const reported = this.workload.report(this.rig.journal)
    const action = random.next()
    if (action < 0.15) await this.arrive(random.int(1, 3))
    else if (action < 0.4) await this.comeBack()
    else if (action < 0.55) this.cut()
    else if (action < 0.6) await this.unsubscribe()
    else if (action < 0.64) await this.stall()
    else if (action < 0.7) this.readOn()
    else if (action < 0.78) await this.rush()
    await reported
    if (action > 0.95) await this.restart()
  }

  /** All watchers reconnect and read; then each must have exactly what it should. */
  async settle(): Promise<void> {
    for (const link of this.links) this.resume(link)
    while (this.away.length > 0) await this.comeBack()
    await this.allHaveAll()
    await this.crowd()
    await this.workload.report(this.rig.journal)
    await this.allHaveAll()
    expect(this.watches.filter((watch) => !watch.gapsAreRight).map(({ options }) => options)).toEqual([])
    expect(this.violations).toEqual([])
    for (const { feed } of this.links) feed.destroy()
    await this.rig.stop()
  }

  private async allHaveAll(): Promise<void> {
    const { facts } = this.workload
    const check = () => {
      // Only a restart closes connections. A watcher whose connection is closed would wait in vain.
      const closed = this.links.filter(({ feed }) => feed.isClosed).flatMap(({ watches }) => watches)
      expect(closed.map(({ options }) => options)).toEqual([])
      expect(this.watches.flatMap((watch) => differences(watch, watch.expected(facts)))).toEqual([])
    }
    await eventually(check, { intervalMs: 50, timeoutMs: CONDITION_TIMEOUT_MS })
  }

  /** New watchers, on their own connection. */
  private async arrive(count: number): Promise<void> {
    const workspaceId = this.random.pick(this.workload.workspaces)
    const starts = Array.from({ length: count }, () => randomStart(this.rig, this.random))
    await this.connect(starts.map((start) => this.watch(workspaceId, start, this.random.bool(0.2))))
  }

  /** As many watchers on one connection as allowed. */
  private async crowd(): Promise<void> {
    const workspaceId = this.random.pick(this.workload.workspaces)
    await this.connect(Array.from({ length: 100 }, () => this.watch(workspaceId, { at: 'now' }, false)))
    await this.links.at(-1)?.socket?.settled()
  }

  /** Watchers with the same filter share its matches. */
  private watch(workspaceId: string, start: Start, all: boolean): Watch {
    const others = this.watches.filter(({ options }) => options.workspaceId === workspaceId)
    const isSame = others.length > 0 && this.random.bool(0.4)
    const wanted = isSame ? this.random.pick(others).options.wanted : this.workload.filter(workspaceId)
    const watch = new Watch({
      name: `watch ${this.watches.length}`,
      workspaceId,
      wanted: all ? {} : wanted,
      start,
      usesClosingCursor: this.random.bool(),
      onViolation: (fault) => this.violations.push(fault),
    })
    this.watches.push(watch)
    return watch
  }

  /** A single watcher may use either protocol; several share a WebSocket. */
  private async connect(watches: readonly Watch[], url?: string): Promise<void> {
    const { rig, random } = this
    const to = url ?? random.pick([rig.url, rig.unixUrl])
    const [first, ...others] = watches
    const link =
      others.length === 0 && random.bool(0.7)
        ? await openStreamLink(rig, to, first, random.bool())
        : await openSocketLink(rig, to, watches)
    this.links.push(link)
  }

  /** Some of the disconnected watchers reconnect, grouped at random. */
  private async comeBack(): Promise<void> {
    const [first] = this.away
    if (first === undefined) return
    const together = this.away.filter(({ options }) => options.workspaceId === first.options.workspaceId)
    const coming = new Set(together.slice(0, this.random.int(1, 6)))
    this.away = this.away.filter((watch) => !coming.has(watch))
    await this.connect([...coming])
  }

  /** A client disconnects without notice, in the middle of a transfer. */
  private cut(): void {
    if (this.links.length > 0) this.drop(this.random.pick(this.links))
  }

  private drop(link: Link): void {
    link.feed.destroy()
    this.links = this.links.filter((other) => other !== link)
    this.away.push(...link.watches)
  }

  private async unsubscribe(): Promise<void> {
    const links = this.links.filter(({ socket, isPaused }) => socket !== undefined && !isPaused)
    if (links.length === 0) return
    const link = this.random.pick(links)
    link.socket?.unsubscribe()
    await link.socket?.settled()
    this.drop(link)
  }

  /** A client stops reading while more is sent than its socket and its queue can hold. */
  private async stall(): Promise<void> {
    const workspaceId = this.random.pick(this.workload.workspaces)
    await this.connect([this.watch(workspaceId, { at: 'now' }, true)], this.rig.unixUrl)
    const link = this.links[this.links.length - 1]
    await link.socket?.settled()
    link.feed.pause()
    link.isPaused = true
    await this.workload.flood(this.rig.journal, workspaceId)
  }

  /** Commits follow each other while clients connect, so that the feeds sometimes lag behind the journal. */
  private async rush(): Promise<void> {
    const report = async () => {
      for (let i = 0; i < 8; i++) await this.workload.report(this.rig.journal)
    }
    const arrive = async () => {
      for (let i = 0; i < 3; i++) await this.arrive(1)
    }
    await Promise.all([report(), report(), arrive(), arrive()])
  }

  private readOn(): void {
    const link = this.links.find(({ isPaused }) => isPaused)
    if (link !== undefined) this.resume(link)
  }

  private resume(link: Link): void {
    link.isPaused = false
    link.feed.resume()
  }

  private async restart(): Promise<void> {
    const { links } = this
    for (const link of links) this.resume(link)
    await this.rig.stop()
    await eventually(() => links.every(({ feed }) => feed.isClosed))
    this.links = []
    this.away.push(...links.flatMap(({ watches }) => watches))
    this.rig = await startRig(columnar, this.dir, this.sizes)
  }
}

/** Where the received positions differ from the expected ones; empty if they do not. */
function differences({ received, options }: Watch, expected: readonly number[]): object[] {
  const at = received.findIndex((seq, i) => seq !== expected[i])
  if (at < 0 && received.length === expected.length) return []
  const from = at < 0 ? received.length : at
  const { name, wanted, start } = options
  return [
    { name, wanted, start, from, shown: received.slice(from, from + 5), expected: expected.slice(from, from + 5) },
  ]
}
