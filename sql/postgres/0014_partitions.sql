-- A workspace belongs to one partition of the journal: one log with one writer. An embedded service has one, number 0.
alter table workspaces add column partition integer not null default 0;

-- The partition of an erased workspace, whose row is gone before every log has dropped its activity.
alter table erasures add column partition integer not null default 0;
