-- Several processes of one machine share the journal's partitions, in files (docs/architecture.md#several-processes-on-one-machine).

-- The data directory that stores the partition: the id of its journal. Null: the NATS servers of a cluster.
alter table journal_partitions add column home uuid;
