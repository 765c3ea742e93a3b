-- The current state of tenants, keys, agents, runs and tasks. History is in the journal and in ClickHouse. Free-form
-- JSON is `json`, not `jsonb`: it keeps the caller's text (64-bit integers, key order, \u0000) as it was sent.

create table workspaces (
  workspace_id uuid primary key,
  name         text not null,
  status       text not null default 'active' check (status in ('active', 'suspended')),
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null
);

create table agents (
  agent_id             uuid primary key,
  workspace_id         uuid not null references workspaces,
  name                 text not null,
  description          text,
  runtime_type         text not null check (runtime_type in ('hosted', 'external')),
  status               text not null default 'active' check (status in ('active', 'paused', 'archived')),
  model                text,
  prompt               text,
  tools                json,
  output_schema        json,
  allow_input_requests boolean,
  temperature          double precision,
  max_output_tokens    integer,
  max_steps            integer,
  timeout_seconds      integer,
  budget_usd           double precision,
  stale_after_seconds  integer,
  metadata             json not null,
  version              integer not null default 1,
  created_at           timestamptz(3) not null,
  updated_at           timestamptz(3) not null
);
create index agents_list on agents (workspace_id, agent_id desc);

-- A key is found by the SHA-256 of its text; the text itself is not stored.
create table api_keys (
  key_id       uuid primary key,
  workspace_id uuid not null references workspaces,
  agent_id     uuid references agents,
  type         text not null check (type in ('agent', 'workspace')),
  name         text,
  hash         bytea not null unique,
  prefix       text not null,
  last4        text not null,
  created_at   timestamptz(3) not null,
  last_used_at timestamptz(3),
  expires_at   timestamptz(3),
  revoked_at   timestamptz(3),
  -- The key that replaced this one by rotation.
  replaced_by  uuid references api_keys,
  check ((type = 'agent') = (agent_id is not null))
);
create index api_keys_list on api_keys (workspace_id, key_id desc);
create index api_keys_of_agent on api_keys (agent_id) where agent_id is not null;

create table runs (
  run_id           uuid primary key,
  workspace_id     uuid not null references workspaces,
  agent_id         uuid not null references agents,
  agent_version    integer not null,
  runtime_type     text not null,
  status           text not null check (status in ('queued', 'running', 'awaiting_approval', 'awaiting_input',
                                                   'completed', 'failed', 'cancelled', 'timed_out')),
  trigger_type     text not null check (trigger_type in ('manual', 'scheduled', 'webhook', 'sdk')),
  external_run_id  text,
  parent_run_id    uuid,
  session_id       uuid,
  external_user_id text,
  tags             text[] not null default '{}',
  metadata         json not null,
  input            json not null,
  output           json,
  error_message    text,
  error_detail     json,
  -- SHA-256 of the start request, to distinguish a repeated start with the same run_id from one with another body.
  start_hash       bytea,
  input_tokens     bigint not null default 0,
  output_tokens    bigint not null default 0,
  cost_usd         double precision not null default 0,
  event_count      bigint not null default 0,
  last_event_at    timestamptz(3),
  created_at       timestamptz(3) not null,
  started_at       timestamptz(3),
  completed_at     timestamptz(3)
);
create index runs_by_created on runs (workspace_id, created_at desc, run_id desc);
create index runs_of_agent on runs (agent_id, created_at desc, run_id desc);
create index runs_by_status on runs (workspace_id, status, created_at desc, run_id desc);
create index runs_by_external_id on runs (workspace_id, external_run_id) where external_run_id is not null;
create index runs_children on runs (parent_run_id) where parent_run_id is not null;
create index runs_of_session on runs (session_id) where session_id is not null;
create index runs_by_tag on runs using gin (tags) where tags <> '{}';
-- Read by the sweep for stale runs: few rows, however long the history. Not on last_event_at: counting events must not
-- touch an index.
create index runs_live on runs (agent_id) where status in ('queued', 'running', 'awaiting_approval', 'awaiting_input');

create table tasks (
  run_id         uuid not null references runs,
  task_id        uuid not null,
  workspace_id   uuid not null,
  agent_id       uuid not null,
  parent_task_id uuid,
  name           text not null,
  status         text not null check (status in ('pending', 'running', 'completed', 'failed', 'skipped')),
  input          json,
  output         json,
  error_message  text,
  created_at     timestamptz(3) not null,
  updated_at     timestamptz(3) not null,
  primary key (run_id, task_id)
);

-- State changes on their way to the journal. Written in the transaction of the change, deleted once appended. `body` is
-- the whole record after the change (RunRow or TaskRow of the journal).
create table outbox (
  outbox_id    bigint generated always as identity primary key,
  workspace_id uuid not null,
  kind         text not null check (kind in ('run', 'task')),
  body         json not null
);

-- Responses to requests with an Idempotency-Key, kept for 24 h. `response` is sealed with the caller's own key, because
-- it may contain a secret (a new API key) that we promise not to store.
create table idempotency_keys (
  key_id       uuid not null,
  idem_key     text not null,
  request_hash bytea not null,
  -- Identifiers that the call mints are derived from it, so that a retry after a crash mints the same ones.
  seed         uuid not null,
  -- The process that is working on it; a row of a process that is gone may be taken over.
  owner        uuid not null,
  status       integer,
  response     bytea,
  created_at   timestamptz(3) not null,
  primary key (key_id, idem_key)
);
create index idempotency_keys_age on idempotency_keys (created_at);

-- The position of each consumer of a journal, committed together with what it wrote here.
create table journal_consumers (
  epoch    text not null,
  consumer text not null,
  seq      bigint not null,
  primary key (epoch, consumer)
);

-- Processes of the service that share this database. Each caches keys that it has checked, and may trust its cache only
-- until `lease_until`; `applied` is the newest change of credentials that it has applied. A revocation responds once
-- every other process has applied it or has lost its lease.
create table instances (
  instance_id uuid primary key,
  started_at  timestamptz(3) not null,
  seen_at     timestamptz(3) not null,
  lease_until timestamptz(3) not null,
  applied     bigint not null
);

-- Credentials that were revoked or changed, in commit order, so that other processes evict them. Rows are deleted once
-- all processes have applied them.
create table credential_changes (
  change_id bigint generated always as identity primary key,
  scope     text not null check (scope in ('key', 'agent', 'workspace')),
  id        uuid not null,
  dead      boolean not null
);
