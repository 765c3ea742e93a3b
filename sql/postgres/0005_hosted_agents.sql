-- Hosted agents: runs that the service executes itself, their pauses, and sessions.

-- What a paused run waits for, as its record shows it.
alter table runs add column pending json;

-- System events of hosted runs take the same path as all state changes.
alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('run', 'task', 'event'));

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
  run_id       uuid primary key references runs,
  workspace_id uuid not null,
  agent_id     uuid not null,
  -- The run that was invoked: itself, or its topmost ancestor.
  root_run_id  uuid not null,
  -- The call of its parent that it carries out.
  parent_call_id uuid,
  session_id   uuid,
  -- Everything that determines the run, with the agent's settings at the time of the invocation.
  plan         json not null,
  -- waiting: for its turn in a session. queued: any process may claim it. executing: by `owner`. paused: waits
  -- for people.
  phase        text not null check (phase in ('waiting', 'queued', 'executing', 'paused', 'ended')),
  owner        uuid,
  queued_at    timestamptz(3) not null,
  -- The part of `timeout_seconds` that has been used.
  used_ms      bigint not null default 0
);
create index hosted_runs_queued on hosted_runs (workspace_id, queued_at, run_id) where phase = 'queued';
create index hosted_runs_queued_children on hosted_runs (queued_at) where phase = 'queued' and parent_call_id is not null;
create index hosted_runs_executing on hosted_runs (owner) where phase = 'executing';
create index hosted_runs_waiting on hosted_runs (session_id, queued_at, run_id) where phase = 'waiting';
create index hosted_runs_of_workspace on hosted_runs (workspace_id);

-- The answer of the model.
create table run_steps (
  run_id        uuid not null references runs,
  step          integer not null,
  workspace_id  uuid not null,
  -- Distinguishes this answer from one that broke off before it was stored.
  attempt       text not null,
  content       text,
  -- The calls exactly as the model made them, because they are sent back to it.
  tool_calls    json,
  -- The message to the model if its answer could not be accepted.
  remark        text,
  input_tokens  bigint not null,
  output_tokens bigint not null,
  created_at    timestamptz(3) not null,
  primary key (run_id, step)
);
create index run_steps_of_workspace on run_steps (workspace_id);

create table tool_calls (
  -- Also sent to the tool as the Idempotency-Key.
  call_id        uuid primary key,
  run_id         uuid not null references runs,
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
  finished_frame integer
);
create index tool_calls_of_run on tool_calls (run_id, step, position);
create index tool_calls_of_workspace on tool_calls (workspace_id);

-- What runs wait for: a person's approval, or a caller's answer.
create table pauses (
  pause_id     uuid primary key,
  workspace_id uuid not null,
  agent_id     uuid not null,
  run_id       uuid not null references runs,
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
  -- The key that decided.
  decided_by   uuid,
  decided_at   timestamptz(3),
  created_at   timestamptz(3) not null,
  expires_at   timestamptz(3),
  frame        integer not null
);
create index pauses_list on pauses (workspace_id, type, pause_id desc);
create index pauses_by_status on pauses (workspace_id, type, status, pause_id desc);
create index pauses_pending on pauses (run_id) where status = 'pending';
create index pauses_of_call on pauses (call_id);
create index pauses_expiring on pauses (expires_at) where status = 'pending' and expires_at is not null;
