import { randomBytes } from 'node:crypto'
import { StartError } from '../../base/start-error.ts'
import type { Epoch, Gap } from '../../journal/journal.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../postgres/connect.ts'
import type { SinkPosition } from '../../sink/position.ts'

/** A node of the cluster. */
export interface ClusterNode {
  readonly instanceId: string
  /** Where other nodes reach it. */
  readonly url: string
  readonly version: string
  readonly startedAt: Date
  readonly isAlive: boolean
}

type BeatingNode = Pick<ClusterNode, 'instanceId' | 'url' | 'version'>

export interface NewPartitions {
  readonly count: number
  /** The data directory that stores them (its journal's id); null: NATS servers. */
  readonly home: string | null
  /** Names the first epoch of a partition. */
  readonly epochOf: () => string
  /**
   * The last position in ClickHouse. Workspaces of an earlier service are in partition 0, whose positions must be above
   * theirs: the newest state of a run is the one with the highest.
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
  /** The owner's instance id; null while nobody owns it. */
  readonly owner: string | null
  readonly generation: number
  readonly position: SinkPosition
  /** What the owner has last reported. */
  readonly endSeq: number
  readonly oldestUnloadedMs: number | null
  /** Milliseconds since that report; null when there was none. */
  readonly reportAgeMs: number | null
}

/** The right to write a partition's log, until a later generation exists. */
export interface Claim {
  readonly partition: number
  readonly owner: string
  readonly generation: number
}

/** What an owner reports about its partition. */
export interface Report extends Claim {
  readonly endSeq: number
  readonly oldestUnloadedMs: number | null
}

interface StoredPartition {
  readonly partition: number
  readonly epoch: string
  readonly epochs: string
  readonly gaps: string
  readonly seal_key: Buffer
  readonly owner: string | null
  readonly generation: number
  readonly loaded_seq: number
  readonly in_flight_seq: number
  readonly reloads: number
  readonly clear_through_seq: number
  readonly end_seq: number
  readonly oldest_unloaded_ms: number | null
  readonly report_age_ms: number | null
}

const SEAL_KEY_BYTES = 32
const FORGET_NODES_AFTER = '1 day'

/** The tables `cluster_nodes` and `journal_partitions`. */
export class ClusterStore {
  constructor(private readonly sql: Sql) {}

  /**
   * Creates the partitions at the very first start. Later starts use what exists.
   * @returns how many there are
   * @throws StartError when the partitions are stored elsewhere
   */
  async createPartitions({ count, home, epochOf, highestSeq }: NewPartitions): Promise<number> {
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
      const seqOfBefore = await highestSeq()
      for (let partition = 0; partition < count; partition++) {
        const epoch = epochOf()
        const seq = partition === 0 ? seqOfBefore : 0
        await tx`
          insert into journal_partitions (partition, epoch, epochs, seal_key, home, loaded_seq, in_flight_seq, end_seq)
          values (${partition}, ${epoch}, ${JSON.stringify([{ epoch, firstSeq: 1 }])}::text::json,
            ${randomBytes(SEAL_KEY_BYTES)}, ${home}, ${seq}, ${seq}, ${seq})`
      }
      return count
    })
  }

  /**
   * Registers the nodes that are about to start, so that each one claims only its share, and removes all earlier ones,
   * which have ended, so that nobody waits for their leases.
   * @param endedId a process that was no node, and has ended
   */
  async replaceNodes(
    instanceIds: readonly string[],
    endedId: string | undefined,
    version: string,
    aliveMs: number,
  ): Promise<void> {
    await inTransaction(this.sql, async (tx) => {
      await tx`
        delete from instances
        where instance_id in (select instance_id from cluster_nodes) or instance_id = ${endedId ?? null}`
      await tx`delete from cluster_nodes`
      for (const instanceId of instanceIds) await beat(tx, { instanceId, url: '', version }, aliveMs)
    })
  }

  /** Records that a node is alive for another `aliveMs`, and registers it first if necessary. */
  async beat(node: BeatingNode, aliveMs: number): Promise<void> {
    await beat(this.sql, node, aliveMs)
  }

  /** Registers the node that will replace one that has ended. At no time do both, or neither, count. */
  async replaceNode(node: BeatingNode, previousId: string, aliveMs: number): Promise<void> {
    await inTransaction(this.sql, async (tx) => {
      await tx`delete from cluster_nodes where instance_id = ${previousId}`
      await beat(tx, node, aliveMs)
    })
  }

  /** Removes a node, so that nobody waits until it counts as dead; and nodes that have been dead for long. */
  async removeNode(instanceId: string): Promise<void> {
    await this.sql`
      delete from cluster_nodes
      where instance_id = ${instanceId} or alive_until < now() - ${FORGET_NODES_AFTER}::interval`
  }

  /** All nodes that are registered, dead ones included, oldest first. */
  async nodes(): Promise<ClusterNode[]> {
    return this.sql<ClusterNode[]>`
      select instance_id as "instanceId", url, version, started_at as "startedAt", alive_until > now() as "isAlive"
      from cluster_nodes order by started_at, instance_id`
  }

  /** All partitions, in order. */
  async partitions(): Promise<PartitionRow[]> {
    const rows = await this.sql<StoredPartition[]>`
      select ${this.columns()} from journal_partitions order by partition`
    return rows.map(toRow)
  }

  /**
   * Claims up to `count` partitions whose owner is gone, or could not be released by `owner` itself.
   * @param held what `owner` holds
   * @returns those claimed
   */
  async claim(owner: string, count: number, held: readonly number[]): Promise<PartitionRow[]> {
    const rows = await this.sql<StoredPartition[]>`
      with free as (
        select p.partition from journal_partitions p
        where case when p.owner = ${owner} then not p.partition = any(${held as number[]}::int[])
          else not exists (select from cluster_nodes n where n.instance_id = p.owner and n.alive_until > now()) end
        order by p.partition limit ${count} for update skip locked
      )
      update journal_partitions p set owner = ${owner}, generation = generation + 1
      from free where p.partition = free.partition
      returning ${this.columns('p')}`
    return rows.map(toRow).sort((a, b) => a.partition - b.partition)
  }

  /** Gives a claim up, unless it was taken over already. */
  async release({ partition, owner, generation }: Claim): Promise<void> {
    await this.sql`
      update journal_partitions set owner = null
      where partition = ${partition} and owner = ${owner} and generation = ${generation}`
  }

  /** Stores the reports of an owner, apart from those whose claim was taken over. */
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

  /** Stores the sink's position. @returns false when the claim was taken over */
  async setPosition({ partition, generation }: Claim, position: SinkPosition): Promise<boolean> {
    const { loadedSeq, inFlightSeq, reloads, clearThroughSeq } = position
    const updated = await this.sql`
      update journal_partitions set loaded_seq = ${loadedSeq}, in_flight_seq = ${inFlightSeq}, reloads = ${reloads},
        clear_through_seq = ${clearThroughSeq}
      where partition = ${partition} and generation = ${generation}`
    return updated.count > 0
  }

  /** Begins a new epoch. @throws Error when the claim was taken over */
  async beginEpoch({ partition, generation }: Claim, epochs: readonly Epoch[]): Promise<void> {
    const updated = await this.sql`
      update journal_partitions set epoch = ${epochs[epochs.length - 1].epoch}, epochs = ${JSON.stringify(epochs)}::text::json
      where partition = ${partition} and generation = ${generation}`
    if (updated.count === 0) throw new Error('another node has taken this partition over')
  }

  /** Stores all gaps of a partition, unless the claim was taken over. */
  async setGaps({ partition, generation }: Claim, gaps: readonly Gap[]): Promise<void> {
    await this.sql`
      update journal_partitions set gaps = ${JSON.stringify(gaps)}::text::json
      where partition = ${partition} and generation = ${generation}`
  }

  /** How far a partition is loaded into ClickHouse, as its owner has stored it. */
  async loadedSeq(partition: number): Promise<number> {
    const [row] = await this.sql<{ loaded_seq: number }[]>`
      select loaded_seq from journal_partitions where partition = ${partition}`
    return row?.loaded_seq ?? 0
  }

  /** The newest row of a partition in the outbox; 0 when there is none. */
  async lastOutboxId(partition: number): Promise<number> {
    const [{ last }] = await this.sql<[{ last: number }]>`
      select coalesce(max(o.outbox_id), 0) as last from outbox o join workspaces w using (workspace_id)
      where w.partition = ${partition}`
    return last
  }

  /** Whether the outbox still has a row of the partition up to `outboxId`. */
  async hasOutboxRow(partition: number, outboxId: number): Promise<boolean> {
    const [{ some }] = await this.sql<[{ some: boolean }]>`
      select exists (
        select from outbox o join workspaces w using (workspace_id)
        where w.partition = ${partition} and o.outbox_id <= ${outboxId}
      ) as some`
    return some
  }

  /** The last position of an epoch that the run statistics have counted. */
  async countedSeq(epoch: string): Promise<number> {
    const [{ seq }] = await this.sql<[{ seq: number }]>`
      select coalesce(max(seq), 0) as seq from journal_consumers where epoch = ${epoch}`
    return seq
  }

  private columns(table = 'journal_partitions') {
    return this.sql.unsafe(
      `${table}.partition, epoch, epochs::text as epochs, gaps::text as gaps, seal_key, owner, generation, loaded_seq,
       in_flight_seq, reloads, clear_through_seq, end_seq, oldest_unloaded_ms,
       extract(epoch from now() - reported_at)::float8 * 1000 as report_age_ms`,
    )
  }
}

async function beat(
  sql: Sql | TransactionSql,
  { instanceId, url, version }: BeatingNode,
  aliveMs: number,
): Promise<void> {
  await sql`
    insert into cluster_nodes (instance_id, url, version, started_at, alive_until)
    values (${instanceId}, ${url}, ${version}, now(), now() + ${aliveMs} * interval '1 millisecond')
    on conflict (instance_id) do update set url = excluded.url, alive_until = excluded.alive_until`
}

function toRow(row: StoredPartition): PartitionRow {
  return {
    partition: row.partition,
    epoch: row.epoch,
    epochs: JSON.parse(row.epochs),
    gaps: JSON.parse(row.gaps),
    sealKey: row.seal_key,
    owner: row.owner,
    generation: row.generation,
    position: {
      loadedSeq: row.loaded_seq,
      inFlightSeq: row.in_flight_seq,
      reloads: row.reloads,
      clearThroughSeq: row.clear_through_seq,
    },
    endSeq: row.end_seq,
    oldestUnloadedMs: row.oldest_unloaded_ms,
    reportAgeMs: row.report_age_ms,
  }
}
