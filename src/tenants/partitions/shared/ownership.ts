import { assert } from '../../../base/assert.ts'
import type { Log } from '../../../base/log.ts'
import { type Loop, Loops } from '../../../base/loops.ts'
import { Wakeup } from '../../../base/wakeup.ts'
import { type OwnedPartition, oldestUnloadedOf } from '../partition.ts'
import type { Claim, ClaimedRow, NodeRow, OwnNode, PartitionRow, SharedTables } from './tables.ts'

/** A partition that this node owns and has opened. */
export interface OpenPartition extends OwnedPartition {
  /** Completes accepted appends and stops. @param isLost whether another node may own the partition already */
  stop(isLost: boolean): Promise<void>
}

interface OwnershipDeps {
  readonly tables: SharedTables
  readonly node: OwnNode
  /**
   * Opens the log of a claimed partition and starts its consumers.
   * @param onLost to be called once when another node has taken over the partition, or its log cannot be written
   */
  readonly open: (claimed: ClaimedRow, onLost: (reason: string) => void) => Promise<OpenPartition>
  /** Whether this node reaches the logs. While it does not, it counts as dead: the others can write its partitions. */
  readonly isConnected: () => boolean
  /** Called when a partition is free, to tell the other nodes. */
  readonly onReleased: () => void
  readonly log: Log
  readonly loops?: Loops
  readonly times?: Partial<OwnershipTimes>
}

/** Milliseconds. */
export interface OwnershipTimes {
  /** Time between two rounds. */
  readonly roundMs: number
  /** A node that has not completed a round for this long counts as dead. */
  readonly aliveMs: number
}

const TIMES: OwnershipTimes = { roundMs: 500, aliveMs: 2_000 }

/** A partition that this node has claimed. */
interface Held {
  readonly claim: ClaimedRow
  /** Undefined while it is being opened. */
  opened: OpenPartition | undefined
  isClosing: boolean
  /** Why it was lost while it was being opened. */
  lostBecause: string | undefined
}

/**
 * Decides which partitions this node owns. Each round writes a heartbeat, reads what the others own, claims partitions
 * whose owner is dead up to an even share, and gives up any surplus. Correctness does not depend on these rounds or on
 * clocks: every claim has a generation, and a log accepts only the newest, so two nodes never write the same log.
 */
export class Ownership {
  private readonly held = new Map<number, Held>()
  /** The generation of this node's last claim, by partition. */
  private readonly generations = new Map<number, number>()
  private rows: readonly PartitionRow[] = []
  private liveNodes: readonly NodeRow[] = []
  private readonly times: OwnershipTimes
  private readonly stopping = new AbortController()
  private readonly wakeup = new Wakeup()
  private finished: Promise<void> = Promise.resolve()
  private refreshing: Promise<void> | undefined
  private reporting: Promise<void> | undefined
  /** The opening and closing of partitions. */
  private readonly underway = new Set<Promise<void>>()
  private isDraining = false
  /** When this node last wrote its heartbeat, on the monotonic clock; undefined before the first time. */
  private beatMs: number | undefined
  /** No partition is claimed before this time, on the monotonic clock. */
  private claimAfterMs = 0

  constructor(private readonly deps: OwnershipDeps) {
    this.times = { ...TIMES, ...deps.times }
  }

  /** Runs the first round, then continues in the background. Does not wait until claimed partitions are open. */
  async start(): Promise<void> {
    await this.round()
    const { loops = new Loops(this.deps.log) } = this.deps
    this.finished = loops.run('cluster', this.stopping.signal, (loop) => this.run(loop))
  }

  /** The partitions that this node owns and has opened, in order. */
  all(): readonly OpenPartition[] {
    return [...this.held.values()]
      .flatMap(({ opened, isClosing }) => (opened === undefined || isClosing ? [] : [opened]))
      .sort((a, b) => a.id - b.id)
  }

  /** The partition, if this node owns it and has opened it. */
  get(partition: number): OpenPartition | undefined {
    const held = this.held.get(partition)
    return held === undefined || held.isClosing ? undefined : held.opened
  }

  /** All partitions, as of the last round. */
  get partitions(): readonly PartitionRow[] {
    return this.rows
  }

  /** The live nodes, as of the last round. */
  get nodes(): readonly NodeRow[] {
    return this.liveNodes
  }

  /** The node that owned the partition at the last round; null when none did. */
  ownerOf(partition: number): string | null {
    return this.rows.find((row) => row.partition === partition)?.owner ?? null
  }

  /** Where a node is reached, if it was alive at the last round. */
  urlOf(instanceId: string): string | null {
    // Empty while the node starts.
    return this.liveNodes.find((node) => node.instanceId === instanceId)?.url || null
  }

  /** Begins the next round now. */
  wake(): void {
    this.wakeup.wake()
  }

  /** Reads the nodes and partitions now. Concurrent calls share one read. */
  refresh(): Promise<void> {
    this.refreshing ??= this.read().finally(() => {
      this.refreshing = undefined
    })
    return this.refreshing
  }

  /** Gives up all partitions and leaves the cluster. */
  async stop(): Promise<void> {
    this.isDraining = true
    this.stopping.abort()
    await this.finished
    for (const held of this.held.values()) this.begin(this.giveUp(held, false))
    while (this.underway.size > 0) await Promise.all(this.underway)
    const { tables, node } = this.deps
    await tables.nodes.remove(node.instanceId).catch(() => {})
  }

  private async run(loop: Loop): Promise<void> {
    const { signal } = this.stopping
    while (!signal.aborted) {
      await this.wakeup.next(this.times.roundMs, signal)
      if (signal.aborted) return
      await this.round()
      loop.succeeded()
    }
  }

  private async round(): Promise<void> {
    const isConnected = this.deps.isConnected()
    if (isConnected) await this.beat()
    await this.read()
    this.dropLost()
    if (!isConnected) return
    await this.releaseLeft()
    const { tables, node } = this.deps
    const { fair, surplus } = this.share()
    const wanted = fair - this.held.size
    if (wanted > 0 && !this.isDraining && performance.now() >= this.claimAfterMs) {
      const claimed = await tables.partitions.claim(node.instanceId, wanted, tables.nodes.gone(), [...this.held.keys()])
      for (const row of claimed) {
        assert(!this.held.has(row.partition), `partition ${row.partition} is held once`)
        this.begin(this.take(row))
      }
    }
    for (const held of surplus) this.begin(this.giveUp(held, false))
    // Reads from the logs, which may take seconds to answer: the next heartbeat must not wait for that.
    this.reporting ??= this.report().finally(() => {
      this.reporting = undefined
    })
  }

  /**
   * Writes this node's heartbeat. After an outage of the database or of NATS for all nodes, the first one to return would
   * see all others as dead, so it gives them time to return before it claims their partitions.
   */
  private async beat(): Promise<void> {
    const { tables, node } = this.deps
    const { aliveMs } = this.times
    await tables.nodes.beat(node, aliveMs)
    const now = performance.now()
    if (this.beatMs !== undefined && now - this.beatMs > aliveMs) this.claimAfterMs = now + aliveMs
    this.beatMs = now
  }

  private async read(): Promise<void> {
    const { tables } = this.deps
    const [nodes, rows] = await Promise.all([tables.nodes.all(), tables.partitions.all()])
    this.liveNodes = nodes.filter(({ isAlive }) => isAlive)
    this.rows = rows
  }

  private begin(work: Promise<void>): void {
    this.underway.add(work)
    void work.finally(() => this.underway.delete(work))
  }

  /** Stops the partitions that another node owns according to the database. */
  private dropLost(): void {
    const { instanceId } = this.deps.node
    for (const held of this.held.values()) {
      const row = this.rows.find(({ partition }) => partition === held.claim.partition)
      const isOurs = row?.owner === instanceId && row.generation === held.claim.generation
      // A claim of this round may be newer than the rows that were read.
      const isNewer = row !== undefined && row.generation < held.claim.generation
      if (!isOurs && !isNewer && held.opened !== undefined) this.begin(this.lose(held, 'another node owns it'))
    }
  }

  /** How many partitions this node may own, and which ones it has to give up. */
  private share(): { fair: number; surplus: readonly Held[] } {
    const nodes = Math.max(1, this.liveNodes.length)
    const total = this.rows.length
    const least = Math.floor(total / nodes)
    const most = Math.ceil(total / nodes)
    const counts = this.liveNodes.map(({ instanceId }) => this.rows.filter(({ owner }) => owner === instanceId).length)
    const isAnyShort = counts.some((count) => count < least)
    const held = [...this.held.values()].filter(({ isClosing }) => !isClosing)
    const keep = isAnyShort ? least : most
    return { fair: most, surplus: held.filter(({ opened }) => opened !== undefined).slice(keep) }
  }

  private async take(claim: ClaimedRow): Promise<void> {
    const { log, open } = this.deps
    const { partition, generation } = claim
    const held: Held = { claim, opened: undefined, isClosing: false, lostBecause: undefined }
    this.held.set(partition, held)
    const startedAt = performance.now()
    try {
      assert(generation > (this.generations.get(partition) ?? 0), `the generation of partition ${partition} increases`)
      this.generations.set(partition, generation)
      held.opened = await open(claim, (reason) => this.begin(this.lose(held, reason)))
      if (held.lostBecause !== undefined) return await this.lose(held, held.lostBecause)
      const fields = { partition, generation, ms: Math.round(performance.now() - startedAt) }
      log.info('cluster: this node owns a partition', fields)
      if (this.isDraining) await this.giveUp(held, false)
    } catch (error) {
      log.warn('cluster: cannot open a partition; trying again', { partition, generation, error })
      this.held.delete(partition)
      await this.release(claim)
    }
  }

  private async lose(held: Held, reason: string): Promise<void> {
    const { partition, generation } = held.claim
    if (held.isClosing) return
    held.lostBecause = reason
    if (held.opened === undefined) return
    this.deps.log.warn('cluster: this node has lost a partition', { partition, generation, reason })
    await this.giveUp(held, true)
  }

  private async giveUp(held: Held, isLost: boolean): Promise<void> {
    if (held.isClosing || held.opened === undefined) return
    held.isClosing = true
    const { partition, generation } = held.claim
    await held.opened.stop(isLost).catch((error) => {
      this.deps.log.warn('cluster: cannot close a partition', { partition, error })
    })
    this.held.delete(partition)
    await this.release(held.claim)
    this.deps.log.info('cluster: this node has given up a partition', { partition, generation })
  }

  /**
   * Releases what this node owns according to the database but does not hold: the answer to a claim was lost, or a release
   * has failed. Nobody else may claim it, and neither would this node while it holds its share of others.
   */
  private async releaseLeft(): Promise<void> {
    const { instanceId: owner } = this.deps.node
    const left = this.rows.filter((row) => row.owner === owner && !this.held.has(row.partition))
    for (const { partition, generation } of left) await this.release({ partition, owner, generation })
  }

  private async release(claim: Claim): Promise<void> {
    await this.deps.tables.partitions.release(claim).catch((error) => {
      this.deps.log.warn('cluster: cannot release a partition; trying again', { partition: claim.partition, error })
    })
    this.deps.onReleased()
  }

  /** What cannot be read or stored is reported in a later round: others take a report that is old for what it is. */
  private async report(): Promise<void> {
    const reports = [...this.held.values()].flatMap(({ claim: { partition, generation }, opened }) => {
      if (opened === undefined) return []
      const { endSeq } = opened.journal
      return oldestUnloadedOf(opened).then((oldestUnloadedMs) => ({ partition, generation, endSeq, oldestUnloadedMs }))
    })
    const read = (await Promise.allSettled(reports)).flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
    await this.deps.tables.partitions.report(read).catch((error) => {
      this.deps.log.info('cluster: cannot store how far the partitions are; trying again', { error })
    })
  }
}
