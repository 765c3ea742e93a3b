-- Several nodes share the journal's partitions (docs/architecture.md#several-nodes). An embedded service has no rows here.

-- The nodes. One that has not extended `alive_until` in time counts as dead, and others take over its partitions.
create table cluster_nodes (
  instance_id uuid primary key,
  -- Where other nodes reach it.
  url         text not null,
  version     text not null,
  started_at  timestamptz(3) not null,
  alive_until timestamptz(3) not null
);

create table journal_partitions (
  partition          integer primary key,
  -- The current epoch, and all of them in order, as [{"epoch", "firstSeq"}].
  epoch              text not null,
  epochs             json not null,
  -- Known gaps, as [{"afterSeq", "throughSeq", "loadedSeq"}].
  gaps               json not null default '[]',
  -- Seals the frames, so that nobody can forge one.
  seal_key           bytea not null,
  owner              uuid,
  -- Incremented by each claim: what an earlier owner still tries to write is refused.
  generation         bigint not null default 0,
  -- The sink's position.
  loaded_seq         bigint not null default 0,
  in_flight_seq      bigint not null default 0,
  reloads            integer not null default 0,
  clear_through_seq  bigint not null default 0,
  -- What the owner has last reported.
  end_seq            bigint not null default 0,
  oldest_unloaded_ms bigint,
  reported_at        timestamptz(3)
);
