-- What a paused run waits for, as feeds show it.
alter table {database}.run_changes add column if not exists pending Nullable(String) after last_event_at;
