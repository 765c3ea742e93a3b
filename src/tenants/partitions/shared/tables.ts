import { randomBytes } from 'node:crypto'
import { stopwatch } from '../../../base/clock.ts'
import { StartError } from '../../../base/start-error.ts'
import type { Epoch, Gap } from '../../../stores/journal/journal.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../../stores/postgres/connect.ts'
import { isGone, Liveness, type Sign } from '../../../stores/postgres/liveness.ts'
import type { SinkPosition } from '../../../stores/sink/position.ts'

interface NewPartitions {
  readonly count: number
  /** The id of the journal in the data directory that stores them; null for NATS servers. */
  readonly home: string | null
  /** Names the first epoch of a partition. */
  readonly epochOf: () => string
  /**
   * The highest position in ClickHouse. Workspaces of an earlier single-process service belong to partition 0, whose
   * positions must continue after it: the newest state of a run is the one with the highest position.
   */
  readonly highestSeq: () => Promise<number>
}

/** A partition as the database has it. */
export interface PartitionRow {
  readonly partition: number
  readonly epoch: string
  readonly epochs: readonly Epoch[]
  readonly gaps: readonly Gap[]
  readonly sealKey: Buffer
  /** The owner's instance id; null while no process owns it. */
  readonly owner: string | null
  readonly generation: number
  readonly position: SinkPosition
  /** The end of the log, as its owner last reported it. */
  readonly endSeq: number
  readonly oldestUnloadedMs: number | null
  /** Milliseconds since that report; null when there was none. */
  readonly reportAgeMs: number | null
}

/** A partition that has just been claimed. Every claim has a higher generation than the one before. */
export interface ClaimedRow extends PartitionRow {
  readonly owner: string
  /** How long ago the sink's last batch was announced, at least, in milliseconds. */
  readonly announcedAgeMs: () => number
}

/** The right to write a partition's log, until a later generation exists. */
export type Claim = Pick<ClaimedRow, 'partition' | 'owner' | 'generation'>

/** What an owner reports about its partition. */
interface Report extends Omit<Claim, 'owner'> {
  readonly endSeq: number
  readonly oldestUnloadedMs: number | null
}

interface StoredRow extends Omit<PartitionRow, 'epochs' | 'gaps' | 'position'>, SinkPosition {
  readonly epochs: string
  readonly gaps: string
}

interface StoredClaim extends StoredRow {
  /** By Postgres' clock at the claim; null when no batch was ever announced. */
  readonly announcedMs: number | null
}

const SEAL_KEY_BYTES = 32

/** The tables that the processes share. */
export interface SharedTables {
  readonly nodes: NodeStore
  readonly partitions: PartitionStore
}

/** The table `journal_partitions`. */
export class PartitionStore {
  /** How often {@link setPosition} was called. */
  private sinkWrites = 0

  constructor(private readonly sql: Sql) {}

  /**
   * Creates the partitions at the very first start. Later starts use what exists.
   * @returns how many there are
   * @throws StartError when the partitions are stored elsewhere
   */
  async create({ count, home, epochOf, highestSeq }: NewPartitions): Promise<number> {
    return inTransaction(this.sql, async (tx) => {
      await tx`lock table journal_partitions in share row exclusive mode`
      const rows = await tx<{ home: string | null }[]>`select home from journal_partitions`
      const elsewhere = rows.find((row) => row.home !== home)
      if (elsewhere !== undefined) {
        const where =
          elsewhere.home === null ? 'in the NATS servers of a cluster' : 'in the DATA_DIR of another service'
        throw new StartError(`the journal of this database is stored ${where}: use another database`)
      }
      if (rows.length > 0) return rows.length
      const earlierSeq = await highestSeq()
      for (let partition = 0; partition < count; partition++) {
        const epoch = epochOf()
        const seq = partition === 0 ? earlierSeq : 0
        await tx`
          insert into journal_partitions (partition, epoch, epochs, seal_key, home, loaded_seq, in_flight_seq, end_seq)
          values (${partition}, ${epoch}, ${JSON.stringify([{ epoch, firstSeq: 1 }])}::text::json,
            ${randomBytes(SEAL_KEY_BYTES)}, ${home}, ${seq}, ${seq}, ${seq})`
      }
      return count
    })
  }

  /** All partitions, in order. */
  async all(): Promise<PartitionRow[]> {
    const rows = await this.sql<StoredRow[]>`
      select ${this.columns()} from journal_partitions order by partition`
    return rows.map(toRow)
  }

  /**
   * Claims up to `count` partitions that have no live owner.
   * @param gone nodes that are dead
   * @param held partitions that `owner` holds, or has lost and is still closing
   * @returns those claimed
   */
  async claim(owner: string, count: number, gone: readonly Sign[], held: readonly number[]): Promise<ClaimedRow[]> {
    const askedFor = stopwatch()
    const rows = await this.sql<StoredClaim[]>`
      with free as (
        select p.partition from journal_partitions p
        where not p.partition = any(${held as number[]}::int[]) and not exists (
          select from cluster_nodes n where n.instance_id = p.owner and not ${isGone(this.sql, 'n', gone)})
        order by p.partition limit ${count} for update skip locked
      )
      update journal_partitions p set owner = ${owner}, generation = generation + 1, sink_writes = 0
      from free where p.partition = free.partition
      returning ${this.columns('p')},
        extract(epoch from clock_timestamp() - announced_at)::float8 * 1000 as "announcedMs"`
    const claimed = rows.map(({ announcedMs, ...row }) => {
      // In the future: the clock was set back, so nobody knows.
      const ageMs = announcedMs === null || announcedMs < 0 ? Number.POSITIVE_INFINITY : announcedMs
      return { ...toRow(row), owner, announcedAgeMs: () => ageMs + askedFor() }
    })
    return claimed.sort((a, b) => a.partition - b.partition)
  }

  /** Gives up a claim, unless it was already taken over. */
  async release({ partition, owner, generation }: Claim): Promise<void> {
    await this.sql`
      update journal_partitions set owner = null
      where partition = ${partition} and owner = ${owner} and generation = ${generation}`
  }

  /** Stores the reports of an owner, except those whose claim was taken over. */
  async report(reports: readonly Report[]): Promise<void> {
    if (reports.length === 0) return
    await this.sql`
      update journal_partitions p
      set end_seq = greatest(p.end_seq, i.end_seq), oldest_unloaded_ms = i.oldest_unloaded_ms, reported_at = now()
      from unnest(
        ${reports.map(({ partition }) => partition)}::int[], ${reports.map(({ generation }) => generation)}::bigint[],
        ${reports.map(({ endSeq }) => endSeq)}::bigint[],
        ${reports.map(({ oldestUnloadedMs }) => oldestUnloadedMs)}::bigint[]
      ) as i (partition, generation, end_seq, oldest_unloaded_ms)
      where p.partition = i.partition and p.generation = i.generation`
  }

  /**
   * Stores the sink's position, and for a new batch that it is announced now, before it is sent. One call at a time. A
   * statement that the server gets only after its connection was given up, and after later ones, changes nothing: it would
   * take back the announcement of a batch that is on its way. An owner that has not learned that its batch counts as loaded
   * announces it again: the batch stays as old as it was.
   * @returns false when the claim was taken over
   */
  async setPosition({ partition, generation }: Claim, position: SinkPosition): Promise<boolean> {
    const { loadedSeq, inFlightSeq, reloads, clearThroughSeq } = position
    const number = ++this.sinkWrites
    const updated = await this.sql`
      update journal_partitions set loaded_seq = ${loadedSeq}, in_flight_seq = ${inFlightSeq}, reloads = ${reloads},
        clear_through_seq = ${clearThroughSeq}, sink_writes = ${number},
        announced_at = case when (in_flight_seq, reloads) = (${inFlightSeq}, ${reloads})
          then announced_at else clock_timestamp() end
      where partition = ${partition} and generation = ${generation} and sink_writes < ${number}`
    return updated.count > 0
  }

  /** Begins a new epoch. @throws Error when the claim was taken over */
  async beginEpoch({ partition, generation }: Claim, epochs: readonly Epoch[]): Promise<void> {
    const updated = await this.sql`
      update journal_partitions set epoch = ${epochs[epochs.length - 1].epoch}, epochs = ${JSON.stringify(epochs)}::text::json
      where partition = ${partition} and generation = ${generation}`
    if (updated.count === 0) throw new Error('another node has taken over this partition')
  }

  /**
   * Stores all gaps of a partition, unless the claim was taken over. A statement that the server gets late, after one with
   * more gaps, changes nothing: no gap is ever forgotten.
   */
  async setGaps({ partition, generation }: Claim, gaps: readonly Gap[]): Promise<void> {
    await this.sql`
      update journal_partitions p set gaps = n.gaps from (select ${JSON.stringify(gaps)}::text::json as gaps) as n
      where p.partition = ${partition} and p.generation = ${generation} and not exists (
        select from json_to_recordset(p.gaps) as known ("afterSeq" bigint, "throughSeq" bigint)
        where not exists (
          select from json_to_recordset(n.gaps) as gap ("afterSeq" bigint, "throughSeq" bigint)
          where gap."afterSeq" <= known."afterSeq" and gap."throughSeq" >= known."throughSeq"))`
  }

  /** Whether no later claim exists. */
  async hasGeneration(partition: number, generation: number): Promise<boolean> {
    const found = await this.sql`
      select from journal_partitions where partition = ${partition} and generation = ${generation}`
    return found.length > 0
  }

  /** How far a partition is loaded into ClickHouse, as its owner has stored it. */
  async loadedSeq(partition: number): Promise<number> {
    const [row] = await this.sql<{ loaded_seq: number }[]>`
      select loaded_seq from journal_partitions where partition = ${partition}`
    return row?.loaded_seq ?? 0
  }

  private columns(table = 'journal_partitions') {
    return this.sql.unsafe(
      `${table}.partition, epoch, epochs::text as epochs, gaps::text as gaps, seal_key as "sealKey", owner, generation,
       loaded_seq as "loadedSeq", in_flight_seq as "inFlightSeq", reloads, clear_through_seq as "clearThroughSeq",
       end_seq as "endSeq", oldest_unloaded_ms as "oldestUnloadedMs",
       extract(epoch from now() - reported_at)::float8 * 1000 as "reportAgeMs"`,
    )
  }
}

function toRow({ loadedSeq, inFlightSeq, reloads, clearThroughSeq, epochs, gaps, ...row }: StoredRow): PartitionRow {
  const position = { loadedSeq, inFlightSeq, reloads, clearThroughSeq }
  return { ...row, epochs: JSON.parse(epochs), gaps: JSON.parse(gaps), position }
}

/** A process that shares the partitions with others: a node of a cluster, or a worker. */
export interface NodeRow {
  readonly instanceId: string
  /** Where other nodes reach it; empty while it starts. */
  readonly url: string
  readonly version: string
  readonly startedAt: Date
  readonly isAlive: boolean
}

/** What a node writes about itself. */
export type OwnNode = Pick<NodeRow, 'instanceId' | 'url' | 'version'>

const FORGET_MS = 86_400_000

/** The table `cluster_nodes`, as this process has seen it. */
export class NodeStore {
  private readonly liveness = new Liveness()

  constructor(private readonly sql: Sql) {}

  /** All nodes that are registered, dead ones included, oldest first. */
  async all(): Promise<NodeRow[]> {
    const rows = await this.sql<(Omit<NodeRow, 'isAlive'> & Sign)[]>`
      select instance_id as "instanceId", url, version, started_at as "startedAt", beats, lease_ms as "leaseMs"
      from cluster_nodes order by started_at, instance_id`
    this.liveness.look(rows)
    return rows.map((row) => ({ ...row, isAlive: !this.liveness.isGone(row.instanceId) }))
  }

  /** The nodes that are dead, as of the last call of {@link all}. */
  gone(): readonly Sign[] {
    return this.liveness.gone()
  }

  /** Records that a node is alive for another `aliveMs`, and registers it first if necessary. */
  async beat(node: OwnNode, aliveMs: number): Promise<void> {
    await beat(this.sql, node, aliveMs)
  }

  /** Registers the node that will replace one that has ended. Exactly one of the two is registered at any time. */
  async replace(node: OwnNode, previousId: string, aliveMs: number): Promise<void> {
    await inTransaction(this.sql, async (tx) => {
      await tx`delete from cluster_nodes where instance_id = ${previousId}`
      await beat(tx, node, aliveMs)
    })
  }

  /**
   * Registers the nodes that are about to start, so that each one claims only its share, and removes all earlier ones,
   * which have ended, so that no process waits for their leases.
   * @param endedId the previous holder of the data directory, which has ended: a supervisor, or a service without workers
   */
  async replaceAll(nodes: readonly OwnNode[], endedId: string | undefined, aliveMs: number): Promise<void> {
    await inTransaction(this.sql, async (tx) => {
      await tx`
        delete from instances
        where instance_id in (select instance_id from cluster_nodes) or instance_id = ${endedId ?? null}`
      await tx`delete from cluster_nodes`
      for (const node of nodes) await beat(tx, node, aliveMs)
    })
  }

  /** Removes a node, so that no process waits until it counts as dead, and all nodes that have long been dead. */
  async remove(instanceId: string): Promise<void> {
    await this.sql`
      delete from cluster_nodes
      where instance_id = ${instanceId} or ${isGone(this.sql, 'cluster_nodes', this.liveness.gone(FORGET_MS))}`
  }
}

/** `alive_until` is for people who read the table; no decision depends on it. */
async function beat(sql: Sql | TransactionSql, node: OwnNode, aliveMs: number): Promise<void> {
  const { instanceId, url, version } = node
  await sql`
    insert into cluster_nodes (instance_id, url, version, started_at, beats, lease_ms, alive_until)
    values (${instanceId}, ${url}, ${version}, now(), floor(random() * 1e12), ${aliveMs},
      now() + make_interval(secs => ${aliveMs / 1_000}))
    on conflict (instance_id) do update set url = excluded.url, beats = cluster_nodes.beats + 1,
      lease_ms = excluded.lease_ms, alive_until = excluded.alive_until`
}
