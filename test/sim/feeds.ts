import { createLog } from '../../src/base/log.ts'
import type { FeedSource } from '../../src/feeds/live/feed-source.ts'
import { parseFilter } from '../../src/feeds/live/filter.ts'
import { Hub } from '../../src/feeds/live/hub.ts'
import { openNatsReader } from '../../src/stores/journal/nats/reader.ts'
import { SharedFeeds } from '../../src/tenants/partitions/shared/feeds.ts'
import { noSessions } from '../support/matching.ts'
import type { Part, Surroundings } from './part.ts'
import type { Row } from './stores.ts'
import type { MemoryStream } from './stream.ts'
import { type FeedNode, Subscriber } from './subscriber.ts'
import { SimulatedProcess, time } from './virtual-time.ts'

/** The types of events that the world reports. */
export const EVENT_TYPES = ['a', 'b'] as const

const NODES = 2
const SUBSCRIBERS_MAX = 5
const FILTERS = [{}, { type: ['a'] }].map((input) => parseFilter(input, 'filter', { agentId: null, runId: null }))
const TYPES_OF = new Map(FILTERS.map((filter) => [filter, filter.types ?? EVENT_TYPES]))
/** Longer than a reader waits for a log that lags. */
const PAUSE_MS_MAX = 20_000
const STALL_MS_MAX = 5_000
const CAUGHT_UP_WITHIN_MS = 60_000
const POLL_MS = 50

/** Feeds of one log on several nodes: their readers follow it while it is written, and subscribers move between them. */
export class SimulatedFeeds implements Part {
  private readonly nodes: FeedNode[] = []
  private readonly subscribers: Subscriber[] = []
  private started = 0

  constructor(
    private readonly world: Surroundings,
    private readonly stream: MemoryStream,
  ) {
    for (let node = 0; node < NODES; node++) this.nodes.push(this.startNode())
  }

  /** Something happens to a node or to a subscriber. */
  step(): void {
    const { world } = this
    const { random } = time
    const { faults } = world
    const lacks = random.int(0, 3)
    this.stream.replicaLacks = lacks > 0 && faults.happens('replica lags') ? lacks : 0
    const pick = random.next()
    if (this.subscribers.length < SUBSCRIBERS_MAX && (pick < 0.3 || this.subscribers.length === 0)) {
      const isFromBeginning = random.chance(0.3)
      const name = `subscriber ${this.subscribers.length + 1}`
      world.trace(name, `begins ${isFromBeginning ? 'with the oldest row' : 'with new rows'}`)
      const deps = { ...world, pickNode: () => time.random.pick(this.nodes) }
      this.subscribers.push(new Subscriber(name, random.pick(FILTERS), deps, isFromBeginning))
    } else if (pick < 0.6) {
      const subscriber = random.pick(this.subscribers)
      if (faults.happens('connection breaks')) subscriber.cut('its connection breaks')
    } else if (pick < 0.75) {
      const subscriber = random.pick(this.subscribers)
      const ms = random.next() * STALL_MS_MAX
      if (!faults.happens('subscriber stalls')) return
      subscriber.stalledUntilMs = time.nowMs + ms
      world.trace(subscriber.name, `reads nothing for ${Math.round(ms)} ms`)
    } else if (pick < 0.9) {
      const node = random.pick(this.nodes)
      const ms = random.next() ** 2 * PAUSE_MS_MAX
      if (!faults.happens('node paused')) return
      node.process.pausedUntilMs = time.nowMs + ms
      world.trace(node.name, `is paused for ${Math.round(ms)} ms`)
    } else {
      const index = random.int(0, NODES - 1)
      if (faults.happens('node dies')) this.restart(index)
    }
  }

  /** Ends every pause. */
  heal(): void {
    for (const { process } of this.nodes) process.pausedUntilMs = 0
    for (const subscriber of this.subscribers) subscriber.stalledUntilMs = 0
  }

  /** Compares what each subscriber has got with what is in the log, once they have had the time to catch up. */
  async check(rows: readonly Row[]): Promise<void> {
    const wantedBy = ({ filter, startSeq }: Subscriber) =>
      rows.filter(
        ({ seq, type }) => seq > (startSeq ?? 0) && type !== undefined && TYPES_OF.get(filter)?.includes(type),
      )
    const isBehind = (each: Subscriber) => each.startSeq === undefined || each.got.length < wantedBy(each).length
    const deadlineMs = time.nowMs + CAUGHT_UP_WITHIN_MS
    while (this.subscribers.some(isBehind) && time.nowMs < deadlineMs) await Bun.sleep(POLL_MS)
    for (const subscriber of this.subscribers) {
      const { name, got, promises } = subscriber
      const wanted = wantedBy(subscriber).map(({ seq }) => seq)
      if (got.join() !== wanted.join())
        this.world.problem(`${name}: begins after ${subscriber.startSeq}, gets ${got.join()} of ${wanted.join()}`)
      for (const { afterSeq, promisedSeq, sent } of promises) {
        const due = wanted.filter((seq) => seq > afterSeq && seq <= promisedSeq).length
        if (sent < due) this.world.problem(`${name}: caught up with ${sent} of ${due} rows up to ${promisedSeq}`)
      }
    }
  }

  /** Ends the nodes. */
  end(): void {
    for (const { process } of this.nodes) process.isDead = true
  }

  private restart(index: number): void {
    const node = this.nodes[index]!
    this.world.trace(node.name, 'dies')
    node.process.isDead = true
    this.nodes[index] = this.startNode()
    for (const subscriber of this.subscribers) if (subscriber.node === node) subscriber.cut('it has died')
  }

  private startNode(): FeedNode {
    const name = `node ${++this.started}`
    const process = new SimulatedProcess(name)
    const silent = createLog('silent')
    const options = { ...this.world.log, ...(process.random.chance(0.5) && { tailBytes: 1 }) }
    const history = { read: () => Promise.reject(new Error('nothing is old enough')) }
    const deps = { history, lookUpSessions: noSessions, log: silent, filtersPerWorkspace: FILTERS.length }
    const feeds = time.within(
      process,
      () =>
        new SharedFeeds<FeedSource>({
          log: silent,
          openReader: () => openNatsReader(options),
          openSource: async (journal, life) => ({
            ...{ journal, hub: new Hub({ ...deps, journal }), retentionFloorOf: () => 0 },
            ...life,
          }),
        }),
    )
    return { name, process, feeds }
  }
}
