-- Hosted agents: runs that the service drives itself, what they wait for, and what sessions remember.

-- What a paused run waits for, as its record shows it.
alter table runs add column pending json;

-- What a hosted run reports about itself goes the way of every change of state.
alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('run', 'task', 'event'));

create table sessions (
  session_id       uuid primary key,
  workspace_id     uuid not null references workspaces,
  agent_id         uuid not null references agents,
  external_user_id text,
  message_count    integer not null default 0,
  -- Whose turn it is. Locked by whoever gives the turn on or asks for it.
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

-- How far a hosted run has come. The rows of its steps and calls say what is done: nothing done is done again.
create table hosted_runs (
  run_id       uuid primary key references runs,
  workspace_id uuid not null,
  agent_id     uuid not null,
  -- The run that somebody has invoked: itself, or the one at the top of its parents.
  root_run_id  uuid not null,
  -- The call of its parent that it carries out.
  parent_call_id uuid,
  session_id   uuid,
  -- What is to be done, with the agent as it was when it was invoked.
  plan         json not null,
  -- waiting: for its turn in a session. queued: any process may take it. driven: by `owner`. paused: waits for people.
  phase        text not null check (phase in ('waiting', 'queued', 'driven', 'paused', 'over')),
  owner        uuid,
  queued_at    timestamptz(3) not null,
  -- Of `timeout_seconds`, what has been used up.
  used_ms      bigint not null default 0
);
create index hosted_runs_queued on hosted_runs (workspace_id, queued_at, run_id) where phase = 'queued';
create index hosted_runs_queued_children on hosted_runs (queued_at) where phase = 'queued' and parent_call_id is not null;
create index hosted_runs_driven on hosted_runs (owner) where phase = 'driven';
create index hosted_runs_waiting on hosted_runs (session_id, queued_at, run_id) where phase = 'waiting';
create index hosted_runs_of_workspace on hosted_runs (workspace_id);

-- What the model answered.
create table run_steps (
  run_id        uuid not null references runs,
  step          integer not null,
  workspace_id  uuid not null,
  -- Tells this answer from one that broke off before it was stored.
  attempt       text not null,
  content       text,
  -- The calls as the model made them: what is sent back to it must be what it said.
  tool_calls    json,
  -- What it was told of its answer, where that could not be taken.
  remark        text,
  input_tokens  bigint not null,
  output_tokens bigint not null,
  created_at    timestamptz(3) not null,
  primary key (run_id, step)
);
create index run_steps_of_workspace on run_steps (workspace_id);

create table tool_calls (
  -- Also what the other side gets as the Idempotency-Key.
  call_id        uuid primary key,
  run_id         uuid not null references runs,
  workspace_id   uuid not null,
  step           integer not null,
  position       integer not null,
  tool_call_id   text not null,
  tool           text not null,
  input          json not null,
  -- held: waits for a person. rejected, answered: a person has said so. ready: may be made. started: is being made, or
  -- was when a process died. finished, failed: the model may be told.
  status         text not null check (status in ('held', 'rejected', 'answered', 'ready', 'started', 'finished', 'failed')),
  -- The run that carries it out, where the tool is an agent.
  child_run_id   uuid,
  output         json,
  started_at     timestamptz(3),
  finished_at    timestamptz(3),
  duration_ms    integer,
  -- Places in the run's output stream.
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
