-- Rises with each write of the sink's position by the owner of a partition, from 0 at each claim: one that arrives late is refused.
alter table journal_partitions add column sink_writes bigint not null default 0;
