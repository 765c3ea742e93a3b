import { type FeedSource, startOf } from '../../src/feeds/live/feed-source.ts'
import type { Filter } from '../../src/feeds/live/filter.ts'
import type { Outlet, Packet } from '../../src/feeds/live/packet.ts'
import { encodeCursor } from '../../src/stores/journal/cursor.ts'
import type { SharedFeeds } from '../../src/tenants/partitions/shared/feeds.ts'
import type { Trace } from './faults.ts'
import { SimulatedProcess, time } from './virtual-time.ts'

/** A process that shows the log to subscribers, as each node of a cluster does. */
export interface FeedNode {
  readonly name: string
  readonly process: SimulatedProcess
  readonly feeds: SharedFeeds<FeedSource>
}

/** What a subscriber meets. */
export interface SubscriberWorld {
  readonly workspaceId: string
  /** A node to connect to. */
  pickNode(): FeedNode
  delay(): Promise<void>
  readonly trace: Trace
  problem(text: string): void
}

/** A connection has been told that it has everything from before it began. */
interface Promised {
  readonly afterSeq: number
  readonly promisedSeq: number
  /** How many rows it had been sent by then. */
  readonly sent: number
}

/** Packets on their way to a subscriber. */
const QUEUE_MAX = 2
const RECONNECT_MS = 100

interface Connection {
  readonly node: FeedNode
  readonly queue: Packet[]
  isOpen: boolean
  /** The rows sent. */
  sent: number
  end(): void
}

/** A client of a feed: it reads, and whenever it is cut off, it resumes at its cursor, at any node. */
export class Subscriber {
  /** The positions that it has got, in order. */
  readonly got: number[] = []
  readonly promises: Promised[] = []
  /** It begins after this position; undefined until it is connected for the first time. */
  startSeq: number | undefined
  /** It reads nothing until then. */
  stalledUntilMs = 0
  private readonly process: SimulatedProcess
  private cursor: string | undefined
  private connection: Connection | undefined

  constructor(
    readonly name: string,
    readonly filter: Filter,
    private readonly world: SubscriberWorld,
    isFromBeginning: boolean,
  ) {
    this.process = new SimulatedProcess(name)
    if (isFromBeginning) [this.cursor, this.startSeq] = ['0', 0]
    this.connectSoon()
  }

  get node(): FeedNode | undefined {
    return this.connection?.node
  }

  /** Loses its connection, and what is on the way to it. */
  cut(why: string): void {
    const { connection } = this
    if (connection === undefined) return
    this.connection = undefined
    connection.isOpen = false
    this.world.trace(this.name, `is cut off by ${connection.node.name} (${why})`, `its cursor is ${this.cursor}`)
    time.within(connection.node.process, () => time.after(0, connection.end))
    this.connectSoon()
  }

  private connectSoon(): void {
    time.within(this.process, () => time.after(RECONNECT_MS, () => void this.connect()))
  }

  private async connect(): Promise<void> {
    const node = this.world.pickNode()
    await this.world.delay()
    const isAnswered = time.within(node.process, () => Bun.sleep(0).then(() => this.open(node)))
    // A process that has died never answers; one that is paused is not waited for.
    const isConnected = await Promise.race([isAnswered, Bun.sleep(PATIENCE_MS).then(() => false)]).catch((error) => {
      this.world.trace(this.name, `cannot connect to ${node.name}`, error.message)
      return false
    })
    if (!isConnected && this.connection === undefined) this.connectSoon()
  }

  private async open(node: FeedNode): Promise<boolean> {
    const { world, filter } = this
    const asked = this.cursor
    const source = await node.feeds.of({ partition: 0 }, asked)
    // Another node was quicker.
    if (this.connection !== undefined || asked !== this.cursor) return true
    const { journal, hub } = source
    const { afterSeq, isLost } = startOf(source, world.workspaceId, asked, 'after')
    if (isLost) world.problem(`${this.name}: its cursor ${asked} counts as lost at ${journal.endSeq}`)
    if (asked === undefined) {
      this.startSeq = afterSeq
      this.cursor = encodeCursor(journal.epoch, afterSeq)
    }
    world.trace(this.name, `is connected to ${node.name} after ${afterSeq}`, `the end is ${journal.endSeq} there`)
    const connection: Connection = { node, queue: [], isOpen: true, sent: 0, end: () => {} }
    this.connection = connection
    const outlet = this.outletOf(connection, afterSeq, () => hub.resume(subscription))
    const subscription = hub.subscribe({ workspaceId: world.workspaceId, filter, afterSeq, outlet })
    const release = source.retain(() => this.cut('it closes the log'))
    connection.end = () => {
      release()
      hub.unsubscribe(subscription)
    }
    this.promisedSeqs.set(connection, subscription.promisedSeq)
    return true
  }

  private readonly promisedSeqs = new WeakMap<Connection, number>()

  private outletOf(connection: Connection, startSeq: number, resume: () => void): Outlet {
    let isFull = false
    let isReading = false
    const read = async () => {
      isReading = true
      for (let packet = connection.queue[0]; packet !== undefined; packet = connection.queue[0]) {
        await this.world.delay()
        if (this.stalledUntilMs > time.nowMs) await Bun.sleep(this.stalledUntilMs - time.nowMs)
        if (!connection.isOpen) return
        connection.queue.shift()
        this.receive(packet)
      }
      isReading = false
      if (isFull) resume()
      isFull = false
    }
    return {
      send: (packet) => {
        if (!connection.isOpen) return true
        if (connection.queue.length >= QUEUE_MAX) {
          isFull = true
          return false
        }
        connection.queue.push(packet)
        connection.sent += packet.items.length
        if (!isReading) void read()
        return true
      },
      gap: (afterSeq, resumedSeq) => {
        if (connection.isOpen)
          this.world.problem(`${this.name}: a gap after ${afterSeq} up to ${resumedSeq}, although no row is gone`)
      },
      caughtUp: () => {
        const promisedSeq = this.promisedSeqs.get(connection)
        if (connection.isOpen && promisedSeq !== undefined)
          this.promises.push({ afterSeq: startSeq, promisedSeq, sent: connection.sent })
      },
      failed: () => this.cut('it cannot read the log'),
    }
  }

  private receive({ epoch, items }: Packet): void {
    for (const { seq } of items) {
      const last = this.got.at(-1) ?? this.startSeq ?? 0
      if (seq <= last) this.world.problem(`${this.name}: gets ${seq} after ${last}`)
      this.got.push(seq)
      this.cursor = encodeCursor(epoch, seq)
    }
  }
}

/** How long a subscriber waits for a node that does not answer. */
const PATIENCE_MS = 15_000
