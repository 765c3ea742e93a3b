-- A run_id is unique within its workspace only: callers choose run_ids, and no workspace may occupy one for the others or
-- learn of theirs. Every table already has the workspace of its runs; it moves into the keys.

alter table tasks drop constraint tasks_run_id_fkey, drop constraint tasks_pkey;
alter table hosted_runs drop constraint hosted_runs_run_id_fkey, drop constraint hosted_runs_pkey;
alter table run_steps drop constraint run_steps_run_id_fkey, drop constraint run_steps_pkey;
alter table tool_calls drop constraint tool_calls_run_id_fkey;
alter table pauses drop constraint pauses_run_id_fkey;

alter table runs drop constraint runs_pkey, add primary key (workspace_id, run_id);
drop index runs_children;
create index runs_children on runs (workspace_id, parent_run_id) where parent_run_id is not null;

alter table tasks
  add primary key (workspace_id, run_id, task_id),
  add foreign key (workspace_id, run_id) references runs;

alter table hosted_runs
  add primary key (workspace_id, run_id),
  add foreign key (workspace_id, run_id) references runs;
alter table run_steps
  add primary key (workspace_id, run_id, step),
  add foreign key (workspace_id, run_id) references runs;
-- The primary keys begin with the workspace now.
drop index hosted_runs_of_workspace, run_steps_of_workspace;

alter table tool_calls add foreign key (workspace_id, run_id) references runs;
drop index tool_calls_of_run, tool_calls_of_workspace;
create index tool_calls_of_run on tool_calls (workspace_id, run_id, step, position);

alter table pauses add foreign key (workspace_id, run_id) references runs;
drop index pauses_pending;
create index pauses_pending on pauses (workspace_id, run_id) where status = 'pending';
