-- Count the edits, so that an edit of an earlier version is refused (docs/api.md#versions).
alter table saved_queries add column version integer not null default 1;
alter table run_views add column version integer not null default 1;
