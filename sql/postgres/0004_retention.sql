-- How long events are kept, and the erasing of whole workspaces (docs/specification.md#retention and
-- docs/specification.md#erasure).

-- Null: as long as EVENT_RETENTION_DAYS says.
alter table workspaces add column retention_days integer check (retention_days > 0);
-- Suspended for good.
alter table workspaces add column is_erasing boolean not null default false;

-- Up to where activity may be missing because its retention has passed; written before it is deleted, so that a feed
-- which resumes below is told of the gap. A null workspace stands for all of them.
create table retention_horizons (
  epoch        text not null,
  workspace_id uuid,
  seq          bigint not null,
  unique nulls not distinct (epoch, workspace_id)
);

-- Workspaces that are being erased, and that have been: a journal that was away meanwhile may still hold rows of
-- theirs. What was deleted is counted, so that a call that is repeated can be answered.
create table erasures (
  workspace_id  uuid primary key,
  requested_at  timestamptz(3) not null,
  -- Postgres has nothing of it any more, so nothing more goes into a journal; from now on journals let go of it.
  state_gone_at timestamptz(3),
  -- Epochs of the journals that have let go.
  let_go        text[] not null default '{}',
  erased_at     timestamptz(3),
  events        bigint not null default 0,
  runs          bigint not null default 0,
  tasks         bigint not null default 0,
  agents        bigint not null default 0,
  keys          bigint not null default 0
);

-- The journal of each process: an erasure waits for those that are there.
alter table instances add column epoch text;
