-- Of secrets, and of the tags and metadata of runs, as in 0002.
alter table secrets add column version integer not null default 1;
alter table runs add column version integer not null default 1;
