import { t } from 'elysia'
import { Count, Described, Named, Nullable, Timestamp, Uuid } from '../../http/schema.ts'

/** Answer of `GET /api/v1/cluster`. */
export const Cluster = Named(
  'Cluster',
  t.Object({
    nodes: t.Array(
      t.Object({
        instance_id: Described(Uuid, 'The process.'),
        url: t.String({ description: 'Where other nodes reach it.' }),
        version: t.String({ description: 'The version that it runs.' }),
        started_at: Described(Timestamp, 'When it joined.'),
        alive: t.Boolean({ description: 'Whether it takes part. Others take over the partitions of a dead node.' }),
        is_this: t.Boolean({ description: 'Whether it is the node that answers.' }),
      }),
      { description: 'The nodes, oldest first. An embedded service is the only one.' },
    ),
    partitions: t.Array(
      t.Object({
        partition: Count('The number of the partition.'),
        owner: Described(Nullable(Uuid), 'The instance that writes it; null while no process does.'),
        generation: Count('How often it was claimed.'),
        epoch: t.String({ description: 'Identifies its sequence of positions.' }),
        end_seq: Count('Its last position, as its owner has last reported it.'),
        loaded_seq: Count('ClickHouse has everything up to this position.'),
        lag: Count('Rows that ClickHouse lacks.'),
      }),
      { description: 'The partitions of the journal.' },
    ),
  }),
)
export type Cluster = typeof Cluster.static
