import { inTransaction, type Sql, type TransactionSql } from '../../postgres/connect.ts'

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

const FORGET_AFTER = '1 day'

/** The table `cluster_nodes`. */
export class NodeStore {
  constructor(private readonly sql: Sql) {}

  /** All nodes that are registered, dead ones included, oldest first. */
  async all(): Promise<NodeRow[]> {
    return this.sql<NodeRow[]>`
      select instance_id as "instanceId", url, version, started_at as "startedAt", alive_until > now() as "isAlive"
      from cluster_nodes order by started_at, instance_id`
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
      where instance_id = ${instanceId} or alive_until < now() - ${FORGET_AFTER}::interval`
  }
}

async function beat(sql: Sql | TransactionSql, node: OwnNode, aliveMs: number): Promise<void> {
  const { instanceId, url, version } = node
  await sql`
    insert into cluster_nodes (instance_id, url, version, started_at, alive_until)
    values (${instanceId}, ${url}, ${version}, now(), now() + ${aliveMs} * interval '1 millisecond')
    on conflict (instance_id) do update set url = excluded.url, alive_until = excluded.alive_until`
}
