-- When a task began and ended. The defaults are for rows that an earlier version wrote: from the first report to the last.
alter table {database}.tasks
  add column if not exists started_at Nullable(DateTime64(3, 'UTC'))
    default if(status in ('pending', 'skipped'), null, created_at) after updated_at,
  add column if not exists completed_at Nullable(DateTime64(3, 'UTC'))
    default if(status in ('completed', 'failed', 'skipped'), updated_at, null) after started_at;

alter table {database}.task_changes
  add column if not exists started_at Nullable(DateTime64(3, 'UTC'))
    default if(status in ('pending', 'skipped'), null, created_at) after updated_at,
  add column if not exists completed_at Nullable(DateTime64(3, 'UTC'))
    default if(status in ('completed', 'failed', 'skipped'), updated_at, null) after started_at;
