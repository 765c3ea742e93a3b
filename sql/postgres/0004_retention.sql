-- How long events are kept, and the erasing of whole workspaces (docs/specification.md#retention and
-- docs/specification.md#erasure).

-- Null: EVENT_RETENTION_DAYS applies.
alter table workspaces add column retention_days integer check (retention_days > 0);
-- Permanently suspended.
alter table workspaces add column is_erasing boolean not null default false;

-- Retention watermarks: positions up to which retention may have deleted activity. Written before the deletion, so that a
-- feed that resumes at an earlier position reports a gap. A null workspace means all workspaces.
create table retention_horizons (
  epoch        text not null,
  workspace_id uuid,
  seq          bigint not null,
  unique nulls not distinct (epoch, workspace_id)
);

-- Workspaces that are being or have been erased: a journal of a stopped process may still hold their rows. The counts of
-- deleted rows are the response to a repeated call.
create table erasures (
  workspace_id  uuid primary key,
  requested_at  timestamptz(3) not null,
  -- When Postgres no longer had rows of it. From then on journals delete its rows.
  state_gone_at timestamptz(3),
  -- Epochs of the journals that have deleted its rows.
  let_go        text[] not null default '{}',
  erased_at     timestamptz(3),
  events        bigint not null default 0,
  runs          bigint not null default 0,
  tasks         bigint not null default 0,
  agents        bigint not null default 0,
  keys          bigint not null default 0
);

-- The journal of each process: an erasure waits for all live processes.
alter table instances add column epoch text;
