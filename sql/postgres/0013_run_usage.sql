-- Tokens and cost of external runs are sums over their model calls, unless the end of the run reports them.
alter table runs
  add column is_usage_reported boolean not null default false,
  add column is_cost_reported  boolean not null default false;

-- Runs whose usage has changed since they were last written to the outbox. Live runs are written in intervals, not after each model call.
create table run_usage_changes (
  run_id       uuid not null,
  workspace_id uuid not null,
  due_at       timestamptz(3) not null,
  primary key (run_id, workspace_id),
  foreign key (run_id, workspace_id) references runs
);

create index run_usage_changes_due on run_usage_changes (due_at);
