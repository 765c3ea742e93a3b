-- A run_id is unique within its workspace only: callers choose run_ids, and no workspace may occupy one for the others or
-- learn of theirs. Every table already has the workspace of its runs; it moves into the keys.
--
-- Keys and indexes begin with the run_id, and no table below `runs` has an index that begins with the workspace: before
-- a new database has its first statistics, Postgres considers such an index as good as the key, keeps that plan, and
-- reads a whole workspace for one run.

alter table tasks drop constraint tasks_run_id_fkey, drop constraint tasks_pkey;
alter table hosted_runs drop constraint hosted_runs_run_id_fkey, drop constraint hosted_runs_pkey;
alter table run_steps drop constraint run_steps_run_id_fkey, drop constraint run_steps_pkey;
alter table tool_calls drop constraint tool_calls_run_id_fkey;
alter table pauses drop constraint pauses_run_id_fkey;

alter table runs drop constraint runs_pkey, add primary key (run_id, workspace_id);
drop index runs_children;
create index runs_children on runs (parent_run_id, workspace_id) where parent_run_id is not null;

alter table tasks
  add primary key (run_id, workspace_id, task_id),
  add foreign key (run_id, workspace_id) references runs;

alter table hosted_runs
  add primary key (run_id, workspace_id),
  add foreign key (run_id, workspace_id) references runs;
drop index hosted_runs_of_workspace;

alter table run_steps
  add primary key (run_id, workspace_id, step),
  add foreign key (run_id, workspace_id) references runs;
drop index run_steps_of_workspace;

alter table tool_calls add foreign key (run_id, workspace_id) references runs;
drop index tool_calls_of_run, tool_calls_of_workspace;
create index tool_calls_of_run on tool_calls (run_id, workspace_id, step, position);

alter table pauses add foreign key (run_id, workspace_id) references runs;
drop index pauses_pending;
create index pauses_pending on pauses (run_id, workspace_id) where status = 'pending';
