-- When a task started and ended, and whether the client reported it: a reported time replaces one set by the service.
alter table tasks
  add column started_at        timestamptz(3),
  add column completed_at      timestamptz(3),
  add column is_start_reported boolean not null default false,
  add column is_end_reported   boolean not null default false;

-- Existing tasks: from the first report to the last. Also in sql/clickhouse/0007_task_times.sql and src/live/activity.ts.
update tasks set
  started_at = case when status not in ('pending', 'skipped') then created_at end,
  completed_at = case when status in ('completed', 'failed', 'skipped') then updated_at end
where status <> 'pending';
