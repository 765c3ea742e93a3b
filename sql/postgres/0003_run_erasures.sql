-- Runs that are being or have been deleted. The rows stay: the id of a deleted run cannot be used again.
create table run_erasures (
  erasure_id      uuid primary key,
  run_id          uuid not null,
  workspace_id    uuid not null,
  partition       integer not null,
  -- In the order of the commits: every process looks at those after the last one that it has seen.
  number          bigint generated always as identity unique,
  requested_at    timestamptz(3) not null,
  -- Epochs of the journals that have deleted its rows.
  released_epochs text[] not null default '{}',
  done_at         timestamptz(3),
  unique (run_id, workspace_id)
);
create index run_erasures_open on run_erasures (partition, number) where done_at is null;
