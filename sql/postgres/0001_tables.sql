-- What the service stores in Postgres: the current state of everything but activity, whose history is in the journal and in
-- ClickHouse. Free-form JSON is `json`, not `jsonb`: it keeps the caller's text (64-bit integers, key order, \u0000) as
-- it was sent.
--
-- A run_id is unique within its workspace only: callers choose run_ids, and no workspace may occupy one for the others or
-- learn of theirs. Keys and indexes of runs begin with the run_id, and no table below `runs` has an index that begins with
-- the workspace: before a new database has its first statistics, Postgres considers such an index as good as the key,
-- keeps that plan, and reads a whole workspace for one run.

-- Workspaces, agents and keys ---------------------------------------------------------------------------------------------

create table workspaces (
  workspace_id   uuid primary key,
  name           text not null,
  status         text not null default 'active' check (status in ('active', 'suspended')),
  -- Permanently suspended.
  is_erasing     boolean not null default false,
  -- How long events are kept. Null: EVENT_RETENTION_DAYS applies.
  retention_days integer check (retention_days > 0),
  -- A workspace belongs to one partition of the journal: one log with one writer. An embedded service has one, number 0.
  partition      integer not null default 0,
  created_at     timestamptz(3) not null,
  updated_at     timestamptz(3) not null
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
  input_schema         json,
  expose               text[],
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
  -- When the current version was made.
  updated_at           timestamptz(3) not null,
  -- The key that made it; null: the service.
  version_created_by   uuid,
  -- Names of the fields that differ from the version before.
  version_changes      text[] not null default '{}',
  -- The version that a restore has copied.
  version_restored_from integer,
  -- For references that must stay within the workspace.
  unique (agent_id, workspace_id)
);
create index agents_list on agents (workspace_id, agent_id desc);
-- Agents that are tools of the MCP server.
create index agents_exposed on agents (workspace_id, agent_id) where cardinality(expose) > 0;

-- Earlier versions of agents: each is the row of `agents` that an edit has replaced. Only the newest of an agent are kept.
create table agent_versions (
  like agents,
  primary key (agent_id, version),
  foreign key (agent_id, workspace_id) references agents (agent_id, workspace_id)
);

-- People who have signed in by OpenID Connect, one row for each workspace that they have entered. What the provider said about
-- them when they last signed in.
create table people (
  person_id    uuid primary key,
  workspace_id uuid not null references workspaces,
  issuer       text not null,
  subject      text not null,
  name         text,
  email        text,
  role         text not null check (role in ('viewer', 'approver', 'admin')),
  status       text not null default 'active' check (status in ('active', 'suspended')),
  created_at   timestamptz(3) not null,
  signed_in_at timestamptz(3) not null,
  constraint people_subject unique (workspace_id, issuer, subject)
);
create index people_list on people (workspace_id, person_id desc);
create index people_of_subject on people (subject, issuer);

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
  -- The person who made it, or whose key made it; null for keys of the operator, of the first start and of other keys.
  created_by   uuid references people,
  last_used_at timestamptz(3),
  expires_at   timestamptz(3),
  revoked_at   timestamptz(3),
  -- The key that replaced this one by rotation.
  replaced_by  uuid references api_keys,
  check ((type = 'agent') = (agent_id is not null))
);
create index api_keys_list on api_keys (workspace_id, key_id desc);
create index api_keys_of_agent on api_keys (agent_id) where agent_id is not null;
create index api_keys_of_person on api_keys (created_by) where created_by is not null;

-- Feed tokens, which browsers put into the URL of a live feed instead of a key. A token is valid only as long as the key
-- that minted it. Only the SHA-256 of a token is stored; expired tokens are deleted.
create table feed_tokens (
  hash         bytea primary key,
  key_id       uuid not null references api_keys,
  workspace_id uuid not null,
  -- Limits the token to one agent: always set when the key is that agent's.
  agent_id     uuid references agents,
  -- Limits it to one run.
  run_id       uuid,
  -- The names of scores that it may write for that run, and how many more; null and 0 for a token that only reads.
  score_names  text[],
  scores_left  integer not null default 0,
  -- Whose scores they are; null: the token's own.
  score_subject text,
  created_at   timestamptz(3) not null,
  expires_at   timestamptz(3) not null
);
create index feed_tokens_expiry on feed_tokens (expires_at);

-- Their sign-ins: what the cookie of a browser stands for, found by the SHA-256 of its token, like a key. Deleted when they end.
create table sign_ins (
  sign_in_id    uuid primary key,
  person_id     uuid not null references people,
  workspace_id  uuid not null,
  hash          bytea not null unique,
  -- The workspaces that the person may enter.
  workspace_ids uuid[] not null,
  -- It ends when it was not used for so long.
  idle_seconds  integer not null,
  created_at    timestamptz(3) not null,
  last_used_at  timestamptz(3) not null,
  expires_at    timestamptz(3) not null
);
create index sign_ins_of_person on sign_ins (person_id);
create index sign_ins_expiry on sign_ins (expires_at);

-- Credentials that were revoked or changed, in commit order, so that other processes evict them. Rows are deleted once
-- all processes have applied them.
create table credential_changes (
  change_id   bigint generated always as identity primary key,
  -- `maker`: the sign-ins of a person, and the keys that they made.
  scope       text not null check (scope in ('key', 'agent', 'workspace', 'person', 'maker')),
  id          uuid not null,
  -- Whether the keys in scope are no longer valid, so that their open connections must be closed, too.
  invalidates boolean not null
);

-- Secrets that tool headers refer to as {{secret:NAME}}. Encrypted with a key that is not in the database; the workspace
-- and the name are authenticated, so that a moved or renamed row cannot be decrypted.
create table secrets (
  workspace_id uuid not null references workspaces,
  name         text not null,
  sealed       bytea not null,
  -- Identifies the encryption key without revealing anything about it.
  key_id       text not null,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null,
  primary key (workspace_id, name)
);

-- Named queries of a workspace (docs/sql.md#saved-queries). `params` are the default values of the query's
-- placeholders; `chart` says how its result is drawn, null as a table.
create table saved_queries (
  query_id     uuid primary key,
  workspace_id uuid not null references workspaces,
  name         text not null,
  description  text,
  query        text not null,
  params       json not null,
  chart        json,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null,
  constraint saved_queries_name unique (workspace_id, name)
);
create index saved_queries_list on saved_queries (workspace_id, query_id desc);

-- Pages of saved queries (docs/sql.md#boards). `charts` refers to them in order; `version` counts the edits, so
-- that an edit of an earlier version is refused.
create table boards (
  board_id     uuid primary key,
  workspace_id uuid not null references workspaces,
  name         text not null,
  charts       json not null,
  version      integer not null,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null,
  constraint boards_name unique (workspace_id, name)
);
create index boards_list on boards (workspace_id, board_id desc);

-- Filters, columns and order of the page's list of runs, by name (docs/runs.md#views).
create table run_views (
  workspace_id uuid not null references workspaces,
  name         text not null,
  query        text not null,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null,
  primary key (workspace_id, name)
);

-- Webhooks and alerts -------------------------------------------------------------------------------------------------------

-- Endpoints that activity is sent to (docs/webhooks.md), and how far each has got: everything up to `position`
-- has been delivered, or is in `webhook_retries`. So a delivery that succeeds needs no row.
create table webhooks (
  webhook_id      uuid primary key,
  workspace_id    uuid not null references workspaces,
  url             text not null,
  description     text,
  -- As a feed's; null: ends of runs and pauses that wait for a person.
  filter          json,
  format          text not null check (format in ('standard', 'slack')),
  signing         text not null check (signing in ('v1', 'v1a')),
  ordering        text not null check (ordering in ('run', 'strict')),
  status          text not null default 'active' check (status in ('active', 'disabled')),
  -- Why the service has disabled it.
  disabled_reason text,
  -- Sealed with SECRETS_KEY, as secrets are. Those that were replaced less than a day ago sign as well.
  secret          bytea not null,
  key_id          text not null,
  public_key      text,
  previous_secrets bytea,
  previous_key_id text,
  -- Counts the edits, so that the process that delivers notices them.
  version         integer not null default 1,
  created_at      timestamptz(3) not null,
  updated_at      timestamptz(3) not null,
  -- The end of the journal when it was created: where polling begins.
  created_cursor  text not null,
  -- The version that has the current filter, and the end of the journal then: a process that still delivers by an earlier
  -- filter does not move the position beyond it.
  filter_version  integer not null default 1,
  filter_from     bigint not null default 0,
  -- Belong to the process that delivers.
  epoch           text not null,
  position        bigint not null,
  is_behind       boolean not null default false,
  failing_since   timestamptz(3),
  -- The time over which attempts have failed since then: what lies between two of them counts up to a limit.
  failing_ms      bigint not null default 0,
  succeeded_at    timestamptz(3),
  failed_at       timestamptz(3),
  -- A second position, which delivers an earlier part of the log again.
  recover_position bigint,
  recover_until    bigint
);
create index webhooks_list on webhooks (workspace_id, webhook_id desc);

-- Deliveries of which an attempt has failed, and those that wait behind one of the same run.
create table webhook_retries (
  webhook_id   uuid not null references webhooks on delete cascade,
  workspace_id uuid not null,
  seq          bigint not null,
  -- Stays the same when the journal begins a new epoch.
  delivery_id  text not null,
  run_id       uuid,
  type         text not null,
  body         text not null,
  -- Attempts made. 0: waits for an earlier delivery of its run.
  attempt      integer not null,
  -- Null while it waits for an earlier one.
  next_at      timestamptz(3),
  http_status  integer,
  response     text,
  created_at   timestamptz(3) not null,
  primary key (webhook_id, seq)
);
create index webhook_retries_due on webhook_retries (webhook_id, next_at) where next_at is not null;
create index webhook_retries_of_run on webhook_retries (webhook_id, run_id, seq);

-- Standing queries (docs/alerts.md). `states` has the state of each series; it changes in the statement that
-- writes the transitions to the outbox, once for each tick.
create table alerts (
  alert_id              uuid primary key,
  workspace_id          uuid not null references workspaces,
  name                  text not null,
  query_id              uuid references saved_queries,
  query                 text,
  params                json not null,
  every_seconds         integer not null,
  window_seconds        integer,
  by_columns            text[] not null,
  -- Null: any row fires it.
  condition             json,
  for_seconds           integer not null,
  keep_firing_seconds   integer not null,
  no_data               text not null check (no_data in ('ok', 'last', 'alert', 'zero')),
  on_error              text not null check (on_error in ('last', 'alert')),
  renotify_seconds      integer,
  notify                uuid[] not null,
  is_enabled            boolean not null,
  version               integer not null default 1,
  states                json not null,
  -- What the API shows of them: the first series, and the number of all.
  shown_states          json not null,
  series_count          integer not null,
  -- The tick that was evaluated last, and the next one.
  evaluated_at          timestamptz(3),
  next_at               timestamptz(3),
  error                 text,
  created_at            timestamptz(3) not null,
  updated_at            timestamptz(3) not null,
  unique (workspace_id, name)
);
create index alerts_list on alerts (workspace_id, alert_id desc);
create index alerts_due on alerts (next_at) where is_enabled;

-- Runs and tasks ----------------------------------------------------------------------------------------------------------

create table runs (
  run_id            uuid not null,
  workspace_id      uuid not null,
  agent_id          uuid not null,
  agent_version     integer not null,
  runtime_type      text not null,
  status            text not null check (status in ('queued', 'running', 'awaiting_approval', 'awaiting_input',
                                                    'completed', 'failed', 'cancelled', 'timed_out')),
  trigger_type      text not null check (trigger_type in ('manual', 'scheduled', 'webhook', 'sdk')),
  external_run_id   text,
  parent_run_id     uuid,
  session_id        text,
  external_user_id  text,
  tags              text[] not null default '{}',
  metadata          json not null,
  input             json not null,
  output            json,
  error_message     text,
  error_detail      json,
  -- What a paused run waits for, as its record shows it.
  pending           json,
  -- Time that it has waited for people, in milliseconds, without the wait that began at waiting_since.
  waiting_ms        bigint not null default 0,
  waiting_since     timestamptz(3),
  -- SHA-256 of the start request, to distinguish a repeated start with the same run_id from one with another body.
  start_hash        bytea,
  -- Tokens and cost of external runs are sums over their model calls, unless the end of the run reports them.
  input_tokens      bigint not null default 0,
  output_tokens     bigint not null default 0,
  -- Of the input, what providers read from and wrote to their caches; of the output, reasoning.
  cache_read_tokens  bigint not null default 0,
  cache_write_tokens bigint not null default 0,
  reasoning_tokens  bigint not null default 0,
  cost_usd          double precision not null default 0,
  is_usage_reported boolean not null default false,
  is_cost_reported  boolean not null default false,
  event_count       bigint not null default 0,
  last_event_at     timestamptz(3),
  created_at        timestamptz(3) not null,
  started_at        timestamptz(3),
  completed_at      timestamptz(3),
  foreign key (agent_id, workspace_id) references agents (agent_id, workspace_id)
);
create index runs_by_created on runs (workspace_id, created_at desc, run_id desc);
create index runs_of_agent on runs (agent_id, created_at desc, run_id desc);
create index runs_by_status on runs (workspace_id, status, created_at desc, run_id desc);
create index runs_by_external_id on runs (workspace_id, external_run_id) where external_run_id is not null;
create index runs_children on runs (parent_run_id, workspace_id) where parent_run_id is not null;
create index runs_of_session on runs (session_id, workspace_id, created_at desc, run_id desc) where session_id is not null;
create index runs_of_user on runs (external_user_id, workspace_id, created_at desc, run_id desc)
  where external_user_id is not null;
-- Lists of sessions walk these: of a kind, of all by merging both, of an agent. Runs without a session cost them nothing. An
-- index for each kind, because Postgres knows its size; of values in one index it may have old statistics, or none.
create index runs_of_hosted_sessions on runs (workspace_id, created_at desc, run_id desc)
  where session_id is not null and runtime_type = 'hosted';
create index runs_of_external_sessions on runs (workspace_id, created_at desc, run_id desc)
  where session_id is not null and runtime_type = 'external';
create index runs_of_session_agent on runs (agent_id, created_at desc, run_id desc) where session_id is not null;
create index runs_by_tag on runs using gin (tags) where tags <> '{}';
-- Read by the sweep for stale runs: few rows, however long the history. Not on last_event_at: counting events must not
-- touch an index.
create index runs_live on runs (agent_id) where status in ('queued', 'running', 'awaiting_approval', 'awaiting_input');
-- Last, because of indexes that seem equally good Postgres takes the newest. While a database has no statistics, the lists
-- of a workspace, which end with the run_id, seem as good as the key for finding one run.
alter table runs add primary key (run_id, workspace_id);

-- Runs whose usage has changed since they were last written to the outbox. Live runs are written in intervals, not after
-- each model call.
create table run_usage_changes (
  run_id       uuid not null,
  workspace_id uuid not null,
  due_at       timestamptz(3) not null,
  primary key (run_id, workspace_id),
  foreign key (run_id, workspace_id) references runs
);
create index run_usage_changes_due on run_usage_changes (due_at);

create table tasks (
  run_id            uuid not null,
  task_id           uuid not null,
  workspace_id      uuid not null,
  agent_id          uuid not null,
  parent_task_id    uuid,
  name              text not null,
  status            text not null check (status in ('pending', 'running', 'completed', 'failed', 'skipped')),
  input             json,
  output            json,
  error_message     text,
  -- When it started and ended, and whether the client reported it: a reported time replaces one set by the service.
  started_at        timestamptz(3),
  completed_at      timestamptz(3),
  is_start_reported boolean not null default false,
  is_end_reported   boolean not null default false,
  created_at        timestamptz(3) not null,
  updated_at        timestamptz(3) not null,
  primary key (run_id, workspace_id, task_id),
  foreign key (run_id, workspace_id) references runs
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

-- Hosted agents: runs that the service executes itself, their pauses, and sessions ------------------------------------------

create table sessions (
  session_id       uuid primary key,
  workspace_id     uuid not null references workspaces,
  agent_id         uuid not null references agents,
  external_user_id text,
  message_count    integer not null default 0,
  -- The run that has the session's turn. The row is locked to pass the turn on or to ask for it.
  turn_run_id      uuid,
  created_at       timestamptz(3) not null,
  updated_at       timestamptz(3) not null
);
create index sessions_list on sessions (workspace_id, session_id desc);
create index sessions_of_user on sessions (workspace_id, external_user_id, session_id desc)
  where external_user_id is not null;

create table session_messages (
  session_id   uuid not null references sessions on delete cascade,
  position     integer not null,
  workspace_id uuid not null,
  run_id       uuid not null,
  role         text not null check (role in ('user', 'assistant')),
  content      text not null,
  created_at   timestamptz(3) not null,
  primary key (session_id, position)
);
create index session_messages_of_workspace on session_messages (workspace_id);

-- The progress of a hosted run. Its steps and calls are stored as rows, so that nothing is done twice.
create table hosted_runs (
  run_id         uuid not null,
  workspace_id   uuid not null,
  agent_id       uuid not null,
  -- The run that was invoked: itself, or its topmost ancestor.
  root_run_id    uuid not null,
  -- The call of its parent that it carries out.
  parent_call_id uuid,
  session_id     uuid,
  -- Everything that determines the run, with the agent's settings at the time of the invocation.
  plan           json not null,
  -- waiting: for its turn in a session. queued: any process may claim it. executing: by `owner`. paused: waits for people.
  phase          text not null check (phase in ('waiting', 'queued', 'executing', 'paused', 'ended')),
  owner          uuid,
  queued_at      timestamptz(3) not null,
  -- The part of `timeout_seconds` that has been used.
  used_ms        bigint not null default 0,
  -- A budget covers its run and the child runs that execute its calls: the runs whose budgets cover this one, itself
  -- included. Null: none.
  budgeted_by    uuid[],
  -- Cost of its model calls; a model without a known price counts as the most expensive one.
  spent_usd      double precision not null default 0,
  -- Maximum cost of the current model call. Counts while an executor runs it.
  reserved_usd   double precision not null default 0,
  primary key (run_id, workspace_id),
  foreign key (run_id, workspace_id) references runs
);
create index hosted_runs_queued on hosted_runs (workspace_id, queued_at, run_id) where phase = 'queued';
create index hosted_runs_queued_children on hosted_runs (queued_at) where phase = 'queued' and parent_call_id is not null;
create index hosted_runs_executing on hosted_runs (owner) where phase = 'executing';
create index hosted_runs_waiting on hosted_runs (session_id, queued_at, run_id) where phase = 'waiting';
create index hosted_runs_budgeted on hosted_runs (workspace_id, root_run_id) where budgeted_by is not null;

-- The answer of the model.
create table run_steps (
  run_id        uuid not null,
  step          integer not null,
  workspace_id  uuid not null,
  -- Distinguishes this answer from one that broke off before it was stored.
  attempt       text not null,
  content       text,
  -- The calls exactly as the model made them, because they are sent back to it.
  tool_calls    json,
  -- Members of the message that its provider wants back within the run, such as reasoning; those of its calls are in `tool_calls`.
  extra         json,
  -- The message to the model if its answer could not be accepted.
  remark        text,
  input_tokens  bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  created_at    timestamptz(3) not null,
  primary key (run_id, workspace_id, step),
  foreign key (run_id, workspace_id) references runs
);

create table tool_calls (
  -- Also sent to the tool as the Idempotency-Key.
  call_id        uuid primary key,
  run_id         uuid not null,
  workspace_id   uuid not null,
  step           integer not null,
  position       integer not null,
  tool_call_id   text not null,
  tool           text not null,
  input          json not null,
  -- held: waits for a person. rejected, answered: decided by a person. ready: may be made. started: is being made, or
  -- was when a process died. finished, failed: has a result for the model.
  status         text not null check (status in ('held', 'rejected', 'answered', 'ready', 'started', 'finished', 'failed')),
  -- The run that carries it out, where the tool is an agent.
  child_run_id   uuid,
  output         json,
  started_at     timestamptz(3),
  finished_at    timestamptz(3),
  duration_ms    integer,
  -- Frame numbers in the run's output stream.
  started_frame  integer,
  finished_frame integer,
  foreign key (run_id, workspace_id) references runs
);
create index tool_calls_of_run on tool_calls (run_id, workspace_id, step, position);

-- What runs wait for: a person's approval, or a caller's answer.
create table pauses (
  pause_id     uuid primary key,
  workspace_id uuid not null,
  agent_id     uuid not null,
  run_id       uuid not null,
  call_id      uuid not null references tool_calls,
  type         text not null check (type in ('approval', 'input')),
  status       text not null check (status in ('pending', 'approved', 'rejected', 'answered', 'expired', 'cancelled')),
  tool         text,
  input        json,
  edited_input json,
  question     text,
  options      json,
  answer       text,
  comment      text,
  -- The key that decided, or the person.
  decided_by   uuid,
  decided_at   timestamptz(3),
  created_at   timestamptz(3) not null,
  expires_at   timestamptz(3),
  frame        integer not null,
  foreign key (run_id, workspace_id) references runs
);
create index pauses_list on pauses (workspace_id, type, pause_id desc);
create index pauses_by_status on pauses (workspace_id, type, status, pause_id desc);
create index pauses_pending on pauses (run_id, workspace_id) where status = 'pending';
-- On an expression, so that only the list of all pauses uses it: without statistics, Postgres would find those of a run by
-- reading all that wait in the workspace.
create index pauses_waiting on pauses ((workspace_id::text), pause_id) where status = 'pending';
create index pauses_decided on pauses (workspace_id, decided_at, pause_id) where decided_at is not null;
create index pauses_of_call on pauses (call_id);
create index pauses_expiring on pauses (expires_at) where status = 'pending' and expires_at is not null;

-- The journal ---------------------------------------------------------------------------------------------------------------

-- State changes and system events on their way to the journal. Written in the transaction of the change, deleted once
-- appended. `body` is the whole record after the change, as in the journal.
create table outbox (
  outbox_id    bigint generated always as identity primary key,
  -- Tells the journal which rows it has. `outbox_id` defines the order, but a restored database assigns the same numbers
  -- again.
  entry_id     uuid not null default gen_random_uuid(),
  workspace_id uuid not null,
  kind         text not null check (kind in ('run', 'task', 'event')),
  body         json not null
);

-- Rows of the outbox that the journal cannot store. They would stop all others, so they wait here for an operator: the newest
-- 10,000, for 30 days (src/service/retention/set-aside.ts).
create table outbox_set_aside (
  outbox_id    bigint not null,
  entry_id     uuid primary key,
  workspace_id uuid not null,
  kind         text not null,
  body         json not null,
  set_aside_at timestamptz(3) not null default now()
);

-- Recounts of the usage of a workspace's runs. The runs from the newest down to the one named here are done.
create table recounts (
  workspace_id     uuid primary key,
  recount_id       uuid not null,
  requested_at     timestamptz(3) not null,
  after_created_at timestamptz(3),
  after_run_id     uuid,
  done_at          timestamptz(3)
);

-- The position of each consumer of a journal, committed together with what it wrote here.
create table journal_consumers (
  epoch    text not null,
  consumer text not null,
  seq      bigint not null,
  primary key (epoch, consumer)
);

-- The progress of each journal at its last beat. Compared with the marks in the journal's directory and in ClickHouse, it
-- shows whether one of the three stores has gone back to an earlier state (see src/service/store-marks).
create table store_marks (
  journal_id     uuid primary key,
  -- Incremented with every update.
  beat           bigint not null,
  -- The newest beat that ClickHouse is known to have stored.
  columnar_beat  bigint not null,
  epoch          text not null,
  end_seq        bigint not null,
  loaded_seq     bigint not null,
  seen_at        timestamptz(3) not null
);

-- Positions whose rows are lost. ClickHouse has the same in `gaps`.
create table journal_gaps (
  epoch       text not null,
  after_seq   bigint not null,
  through_seq bigint not null,
  reason      text not null,
  noticed_at  timestamptz(3) not null,
  primary key (epoch, after_seq, through_seq)
);

-- Several processes and nodes -----------------------------------------------------------------------------------------------

-- Processes of the service that share this database. Each caches keys that it has checked, and may trust its cache only
-- while its lease lasts; `applied` is the newest change of credentials that it has applied. A revocation responds once
-- every other process has applied it or has lost its lease.
create table instances (
  instance_id uuid primary key,
  started_at  timestamptz(3) not null,
  seen_at     timestamptz(3) not null,
  -- Another number with each renewal of the lease, and how long it lasts then; null: until the row is deleted. Others measure
  -- that on their own monotonic clocks, from when they have seen the number (src/stores/postgres/liveness.ts).
  beats       bigint not null,
  lease_ms    bigint,
  applied     bigint not null,
  -- Its journal: an erasure waits for those of all live processes.
  epoch       text
);

-- Several nodes share the journal's partitions (docs/architecture.md#several-nodes), or several processes of one machine
-- (docs/architecture.md#several-processes-on-one-machine). An embedded service has no rows in these two tables.

-- The nodes. One whose `beats` has not changed for `lease_ms` counts as dead, and others take over its partitions.
create table cluster_nodes (
  instance_id uuid primary key,
  -- Where other nodes reach it.
  url         text not null,
  version     text not null,
  started_at  timestamptz(3) not null,
  -- A row without them, which no node has written, counts as dead.
  beats       bigint not null default 0,
  lease_ms    bigint not null default 0,
  -- For people only: until when the lease lasts by the clock of Postgres, as of the last heartbeat. Nothing reads it, because
  -- a step of that clock would end all leases at once.
  alive_until timestamptz(3)
);

create table journal_partitions (
  partition          integer primary key,
  -- The data directory that stores the partition: the id of its journal. Null: the NATS servers of a cluster.
  home               uuid,
  -- The current epoch, and all of them in order, as [{"epoch", "firstSeq"}].
  epoch              text not null,
  epochs             json not null,
  -- Known gaps, as [{"afterSeq", "throughSeq", "loadedSeq"}].
  gaps               json not null default '[]',
  -- Seals the frames, so that only processes of the service can write one.
  seal_key           bytea not null,
  owner              uuid,
  -- Incremented by each claim: what an earlier owner still tries to write is refused.
  generation         bigint not null default 0,
  -- The sink's position.
  loaded_seq         bigint not null default 0,
  in_flight_seq      bigint not null default 0,
  reloads            integer not null default 0,
  clear_through_seq  bigint not null default 0,
  -- When the batch that is in flight was first announced.
  announced_at       timestamptz,
  -- What the owner has last reported.
  end_seq            bigint not null default 0,
  oldest_unloaded_ms bigint,
  reported_at        timestamptz(3)
);

-- Retention and erasure (docs/workspaces.md#retention and docs/workspaces.md#erasure) ---------------------------------

-- The retention clock: a system clock that jumps ahead must not delete everything.
create table retention_clock (
  only_row    boolean primary key default true check (only_row),
  -- Unix milliseconds. The current time for retention.
  now_ms      bigint not null,
  -- The system clock when the row was last updated.
  observed_ms bigint not null
);

-- Positions up to which retention may have deleted activity. Written before the deletion, so that a feed that resumes at
-- an earlier position reports a gap. A null workspace means all workspaces.
create table retention_floors (
  epoch        text not null,
  workspace_id uuid,
  seq          bigint not null,
  unique nulls not distinct (epoch, workspace_id)
);

-- Workspaces that are being or have been erased: a journal of a stopped process may still hold their rows. The counts of
-- deleted rows are the response to a repeated call.
create table erasures (
  workspace_id    uuid primary key,
  -- Its partition, because the row in `workspaces` is gone before every log has dropped its activity.
  partition       integer not null default 0,
  requested_at    timestamptz(3) not null,
  -- When Postgres no longer had rows of it. From then on journals delete its rows.
  state_gone_at   timestamptz(3),
  -- Epochs of the journals that have deleted its rows.
  released_epochs text[] not null default '{}',
  erased_at       timestamptz(3),
  events          bigint not null default 0,
  runs            bigint not null default 0,
  tasks           bigint not null default 0,
  agents          bigint not null default 0,
  keys            bigint not null default 0
);
